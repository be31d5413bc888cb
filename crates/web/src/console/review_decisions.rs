//! Decisions about messages in review: approving, with or without edits, rejecting, several at once, and taking an approval
//! back while the message has not left.

use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::post,
};
use model::{
    ReviewId,
    reviews::{Approval, Refusal, Review, ReviewQuery},
};
use operations::{
    Error, ErrorKind, Result,
    reviews::{self, decide},
};
use serde_json::{Value, json};

use super::{
    fields::{Fields, input},
    form_state::{FormState, Labels},
    links::{encoded, safe_next},
    page,
    review_words::explain,
    reviews::{HERE, Wanted, show},
    text::counted,
    undo::{Outcome, Undo},
    visit::Visit,
};
use crate::State;

/// Reviews that one form decides about.
const MAX_REVIEWS: usize = 100;
const UNDO: &str = "/console/reviews/undo";
const LABELS: Labels =
    &[("edits.subject", "subject", "Subject"), ("edits.text", "text", "Text"), ("text", "text", "Text")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/reviews/decide", post(decide_selected))
        .route("/console/reviews/undo", post(take_back))
        .route("/console/reviews/{review}/approve", post(approve))
        .route("/console/reviews/{review}/reject", post(reject))
}

/// The error in the words of this page.
async fn in_words(visit: &Visit, refused: Error) -> Error {
    match (refused.kind(), visit.zone().await) {
        (ErrorKind::ValidationFailed | ErrorKind::Internal, _) | (_, Err(_)) => refused,
        (kind, Ok(zone)) => Error::with_message(kind, explain(&refused, &zone, visit.app().now())),
    }
}

/// What a form changes about a message: fields that are as they were are left out, since new text replaces HTML too.
fn edits(fields: &Fields) -> Value {
    let changed = |name: &str| {
        let plain = |field: &str| fields.get(field).replace("\r\n", "\n");
        let (new, old) = (plain(name), plain(&format!("{name}_before")));
        (new.trim_end() != old.trim_end()).then_some(new)
    };
    match (changed("subject"), changed("text")) {
        (None, None) => Value::Null,
        (subject, text) => {
            let mut edits = json!({});
            if let Some(subject) = subject {
                edits["subject"] = json!(subject);
            }
            if let Some(text) = text {
                edits["text"] = json!(text);
            }
            edits
        }
    }
}

/// Approves one message, as a form or a list says.
async fn approve_one(visit: &Visit, id: &str, digest: &str, edits: &Value) -> Result<Review> {
    let mut approval = json!({ "digest": digest });
    if !edits.is_null() {
        approval["edits"] = edits.clone();
    }
    let approval: Approval = input(&approval)?;
    reviews::approve(visit.app(), &visit.call(&reviews::APPROVE)?, id.into(), approval).await
}

async fn approve(visit: Visit, Path(id): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let is_edited = fields.ticked("edited");
    let edits = if is_edited { edits(&fields) } else { Value::Null };
    let back = format!("{HERE}/{}", encoded(&id));
    let next = next_after(&visit, &[&id]).await;
    let approved = async {
        let approved = approve_one(&visit, &id, fields.get("digest"), &edits).await?;
        let target = next?;
        let said = match approved.scheduled_send_at {
            Some(at) => format!("Approved. It leaves {}.", visit.zone().await?.when(at).full),
            None => "Approved. It is on its way.".to_owned(),
        };
        let undo = undo_of(&[approved]);
        Ok(Outcome { target, said, undo })
    };
    match approved.await {
        Ok(outcome) => visit.leave(&back, Ok(outcome)),
        Err(refused) => {
            let refused = in_words(&visit, refused).await;
            let is_decided = refused.kind() == ErrorKind::ReviewDecided;
            if is_edited && !is_decided {
                let form = FormState::refused(fields, &refused, LABELS);
                let wanted = Wanted { id: Some(id), form, ..Wanted::default() };
                return visit.again(&refused, Box::pin(show(&visit, wanted))).await;
            }
            visit.leave(&back, Err(refused))
        }
    }
}

/// How approvals of messages that have not left are taken back.
fn undo_of(approved: &[Review]) -> Option<Undo> {
    let waiting = approved.iter().filter(|review| review.scheduled_send_at.is_some());
    let ids: Vec<&str> = waiting.map(|review| review.id.as_str()).collect();
    (!ids.is_empty()).then(|| Undo { action: UNDO.to_owned(), data: ids.join(".") })
}

/// The page of the review that comes after these in the list, or of the newest one, or the empty list.
async fn next_after(visit: &Visit, decided: &[&str]) -> Result<String> {
    let query: ReviewQuery = input(&json!({ "state": "pending", "limit": 100 }))?;
    let page = reviews::list(visit.app(), &visit.call(&reviews::LIST)?, query).await?;
    let is_decided = |review: &Review| decided.contains(&review.id.as_str());
    let last = page.reviews.iter().rposition(is_decided).map_or(0, |index| index + 1);
    let mut others = page.reviews.iter().skip(last).chain(page.reviews.iter().take(last));
    let next = others.find(|review| !is_decided(review));
    Ok(next.map_or_else(|| HERE.to_owned(), |review| format!("{HERE}/{}", encoded(review.id.as_str()))))
}

async fn reject_one(visit: &Visit, id: &str, reason: Option<&str>) -> Result<Review> {
    let refusal: Refusal = input(&json!({ "reason": reason }))?;
    reviews::reject(visit.app(), &visit.call(&reviews::REJECT)?, id.into(), refusal).await
}

async fn reject(visit: Visit, Path(id): Path<String>, request: Request) -> Response {
    let back = format!("{HERE}/{}", encoded(&id));
    let rejected = async {
        let fields = Fields::read(request).await?;
        let next = next_after(&visit, &[&id]).await?;
        reject_one(&visit, &id, fields.given("reason")).await?;
        Ok((next, "Rejected. The message is a draft again.".to_owned()).into())
    };
    let outcome: Result<Outcome> = rejected.await;
    match outcome {
        Ok(outcome) => visit.leave(&back, Ok(outcome)),
        Err(refused) => visit.leave(&back, Err(in_words(&visit, refused).await)),
    }
}

/// Decides about the selected messages, each for itself: what stands against one does not keep the others.
async fn decide_selected(visit: Visit, request: Request) -> Response {
    let work = async {
        visit.call(&reviews::APPROVE)?;
        let fields = Fields::read(request).await?;
        let chosen: Vec<(&str, &str)> = fields
            .all("review")
            .into_iter()
            .filter_map(|chosen| chosen.split_once(':'))
            .take(MAX_REVIEWS)
            .collect();
        if chosen.is_empty() {
            return Err(Error::invalid("selection", "select at least one message"));
        }
        let is_approval = fields.get("action") == "approve";
        let (mut done, mut faults) = (Vec::new(), Vec::new());
        for (id, digest) in &chosen {
            let decided = if is_approval {
                approve_one(&visit, id, digest, &Value::Null).await
            } else {
                reject_one(&visit, id, fields.given("reason")).await
            };
            match decided {
                Ok(review) => done.push(review),
                Err(refused) => faults.push(in_words(&visit, refused).await),
            }
        }
        let count = |number: usize| counted(i64::try_from(number).unwrap_or(i64::MAX), "message");
        let verb = if is_approval { "approved" } else { "rejected" };
        let Some(fault) = faults.first() else {
            let undo = if is_approval { undo_of(&done) } else { None };
            let target = HERE.to_owned();
            return Ok(Outcome { target, said: format!("{} {verb}.", count(done.len())), undo });
        };
        let others = if faults.len() == 1 { String::new() } else { format!("{} not. ", count(faults.len())) };
        let said = format!("{} {verb}. {others}{}", count(done.len()), page::explain(fault));
        Err(Error::with_message(fault.kind(), said))
    };
    let outcome = work.await;
    visit.leave(HERE, outcome)
}

/// Takes approvals back: the messages are in review again.
async fn take_back(visit: Visit, request: Request) -> Response {
    let work = async {
        let fields = Fields::read(request).await?;
        let mut target = HERE.to_owned();
        let ids: Vec<&str> =
            fields.get("data").split('.').filter(|id| !id.is_empty()).take(MAX_REVIEWS).collect();
        for id in &ids {
            let review = ReviewId::from(*id);
            let call = visit.call(&reviews::REJECT)?;
            let back =
                decide::take_back(visit.app(), &call, review).await.map_err(|refused| {
                    match refused.kind() {
                        ErrorKind::ReviewDecided | ErrorKind::DraftLocked => Error::with_message(
                            refused.kind(),
                            "The message has already left, so the approval can no longer be undone.",
                        ),
                        _ => refused,
                    }
                })?;
            target = format!("{HERE}/{}", encoded(back.id.as_str()));
        }
        let said = if ids.len() == 1 {
            "Undone. The message is in review again."
        } else {
            "Undone. The messages are in review again."
        };
        Ok((safe_next(&target).to_owned(), said.to_owned()).into())
    };
    let outcome: Result<Outcome> = work.await;
    visit.leave(HERE, outcome)
}
