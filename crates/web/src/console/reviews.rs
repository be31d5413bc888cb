//! The queue of reviews: messages that a person decides about, and what became of earlier ones.

use std::collections::HashMap;

use askama::Template;
use axum::{
    Router,
    extract::{RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    EmailId, MailboxId, ReviewId,
    emails::{Email, EmailQuery},
    reviews::{Review, ReviewQuery, ReviewState},
};
use operations::{
    ErrorKind, Result, emails,
    reviews::{self, watching},
    threads,
};
use serde_json::json;

use super::{
    fields::{Fields, input},
    form_state::FormState,
    links::encoded,
    message_badges::Badge,
    page::{self, html},
    review_message::{self, Body, PendingMessage, expires_soon},
    review_words::{decider, names, reason_badge, requester, state_badge},
    shell::{Shell, SideMailbox},
    text::{initial, people, person},
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

pub(super) const HERE: &str = "/console/reviews";
/// Earlier messages of the conversation that are listed.
const MAX_EARLIER: usize = 20;

pub(super) fn routes() -> Router<State> {
    Router::new().route(HERE, get(list_page)).route("/console/reviews/watch", post(watch))
}

/// A review in the list.
struct Row {
    id: String,
    digest: String,
    url: String,
    is_open: bool,
    to: String,
    subject: String,
    from: String,
    requester: String,
    reasons: Vec<Badge>,
    /// The time until which it is pending, or that of the decision.
    at: When,
    is_urgent: bool,
    /// What became of it: the badge, and who decided.
    decided: Option<(&'static str, &'static str, String)>,
}

/// A page of reviews.
struct Listing {
    rows: Vec<Row>,
    /// Whether these are the ones that were decided.
    is_decided: bool,
    next: Option<String>,
    first: Option<String>,
    url: String,
}

#[derive(Template)]
#[template(path = "console/reviews.html")]
struct ReviewsPage {
    shell: Shell,
    listing: Listing,
    pending: i64,
    is_watching: bool,
    open: Option<OpenReview>,
}

#[derive(Template)]
#[template(path = "console/review_rows.html")]
struct Rows {
    listing: Listing,
}

/// A message of the conversation, collapsed.
struct Earlier {
    id: String,
    name: String,
    initial: String,
    snippet: String,
    at: When,
    base: String,
}

/// What became of a review.
struct Decision {
    badge: (&'static str, &'static str),
    by: String,
    at: When,
    reason: String,
    /// When the message leaves; until then the approval can be taken back.
    leaves: Option<When>,
    reasons: Vec<Badge>,
    requester: String,
    subject: String,
}

/// What is open beside the list.
#[derive(Template)]
#[template(path = "console/review.html")]
struct OpenReview {
    id: String,
    pending: Option<PendingMessage>,
    decision: Option<Decision>,
    earlier: Vec<Earlier>,
    is_editing: bool,
    form: FormState,
    list_url: &'static str,
}

/// What was asked for: the list and what is open beside it.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) id: Option<String>,
    pub(super) is_editing: bool,
    pub(super) form: FormState,
    pub(super) is_decided: bool,
    pub(super) cursor: Option<String>,
}

impl Wanted {
    fn of(id: Option<String>, query: Option<String>) -> Self {
        let fields = Fields::parse(query.unwrap_or_default().as_bytes());
        Self {
            id,
            is_editing: fields.ticked("edit"),
            is_decided: fields.get("state") == "decided",
            cursor: fields.given("cursor").map(ToOwned::to_owned),
            form: FormState::default(),
        }
    }
}

async fn list_page(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit.answer(Box::pin(show(&visit, Wanted::of(None, query)))).await
}

/// The queue with one review open.
pub(super) async fn open_page(visit: &Visit, id: String, query: Option<String>) -> Response {
    visit.answer(Box::pin(show(visit, Wanted::of(Some(id), query)))).await
}

/// The whole page, or the requested part of it.
pub(super) async fn show(visit: &Visit, mut wanted: Wanted) -> Result<Response> {
    visit.call(&reviews::APPROVE)?;
    let target = visit.headers.get("hx-target").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let is_partial = page::is_partial(&visit.headers);
    if is_partial && target == "reader" {
        return html(&open(visit, &visit.zone().await?, &wanted).await?);
    }
    let shell = visit.shell("Reviews", "reviews").await?;
    if is_partial && target == "rows" {
        return html(&Rows { listing: list(visit, &shell, &wanted).await? });
    }
    let mut opened = None;
    if wanted.id.is_some() {
        let open = open(visit, &shell.zone, &wanted).await?;
        wanted.is_decided = open.decision.is_some();
        opened = Some(open);
    }
    let is_watching = watching::is_watching(visit.app(), &visit.call(&reviews::LIST)?).await?;
    html(&ReviewsPage {
        listing: list(visit, &shell, &wanted).await?,
        pending: shell.reviews,
        is_watching,
        open: opened,
        shell,
    })
}

/// A page of reviews.
async fn list(visit: &Visit, shell: &Shell, wanted: &Wanted) -> Result<Listing> {
    let state = (!wanted.is_decided).then_some("pending");
    let limit = visit.limits().rows_per_page;
    let query: ReviewQuery = input(&json!({ "state": state, "limit": limit, "cursor": wanted.cursor }))?;
    let page = reviews::list(visit.app(), &visit.call(&reviews::LIST)?, query).await?;
    let names = if wanted.is_decided { names(visit).await? } else { HashMap::new() };
    let mut rows = Vec::with_capacity(page.reviews.len());
    for review in page.reviews {
        if !wanted.is_decided || review.state != ReviewState::Pending {
            rows.push(row(visit, shell, wanted, &names, review).await?);
        }
    }
    let base = if wanted.is_decided { "/console/reviews?state=decided" } else { HERE };
    let at = |cursor: &str| {
        let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        format!("{base}{}cursor={cursor}", if wanted.is_decided { '&' } else { '?' })
    };
    Ok(Listing {
        rows,
        is_decided: wanted.is_decided,
        next: page.next_cursor.as_deref().map(at),
        first: wanted.cursor.is_some().then(|| base.to_owned()),
        url: wanted.cursor.as_deref().map_or_else(|| base.to_owned(), at),
    })
}

async fn row(
    visit: &Visit,
    shell: &Shell,
    wanted: &Wanted,
    names: &HashMap<String, String>,
    review: Review,
) -> Result<Row> {
    let email = metadata(visit, &review.mailbox_id, &review.email_id).await?;
    let is_pending = review.state == ReviewState::Pending;
    let decided = (!is_pending).then(|| {
        let (kind, text) = state_badge(review.state);
        (kind, text, decider(&review, names))
    });
    let id = review.id.as_str().to_owned();
    Ok(Row {
        url: format!("{HERE}/{}", encoded(&id)),
        is_open: wanted.id.as_ref() == Some(&id),
        to: email.as_ref().map(|email| people(&email.to)).unwrap_or_default(),
        subject: email.map_or_else(|| "(deleted)".to_owned(), |email| titled(email.subject)),
        from: mailbox_name(&shell.mailboxes, &review.mailbox_id),
        requester: requester(&review),
        reasons: review.reasons.iter().map(|reason| reason_badge(*reason)).collect(),
        at: shell.zone.when(review.decided_at.unwrap_or(review.expires_at)),
        is_urgent: is_pending && expires_soon(&review, visit.app().now()),
        digest: review.digest,
        decided,
        id,
    })
}

fn titled(subject: String) -> String {
    if subject.is_empty() { "(no subject)".to_owned() } else { subject }
}

fn mailbox_name(mailboxes: &[SideMailbox], id: &MailboxId) -> String {
    let known = mailboxes.iter().find(|one| one.id == id.as_str());
    known.map_or_else(|| id.to_string(), |one| one.name.clone())
}

/// An email without its text; `None` if it was deleted.
async fn metadata(visit: &Visit, mailbox: &MailboxId, email: &EmailId) -> Result<Option<Email>> {
    let query: EmailQuery = input(&json!({ "metadata_only": true, "include_held": true }))?;
    let call = visit.call(&emails::GET)?;
    match emails::get(visit.app(), &call, mailbox.as_str(), email.clone(), query).await {
        Ok(email) => Ok(Some(email)),
        Err(refused) if refused.kind() == ErrorKind::NotFound => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// The review that is open: its message while it is pending, else what became of it.
async fn open(visit: &Visit, zone: &Zone, wanted: &Wanted) -> Result<OpenReview> {
    let id = ReviewId::from(wanted.id.as_deref().unwrap_or_default());
    let review = reviews::get(visit.app(), &visit.call(&reviews::GET)?, id.clone()).await?;
    let (reading, opening) = (visit.call(&reviews::GET)?, visit.call(&emails::GET)?);
    let frame = format!("{HERE}/{}/frame", encoded(id.as_str()));
    let mut part = OpenReview {
        id: id.as_str().to_owned(),
        pending: None,
        decision: None,
        earlier: Vec::new(),
        is_editing: wanted.is_editing || wanted.form.is_refused(),
        form: wanted.form.clone(),
        list_url: if review.state == ReviewState::Pending { HERE } else { "/console/reviews?state=decided" },
    };
    let email = if review.state == ReviewState::Pending {
        let calls = (&reading, &opening);
        let pending = review_message::load(visit.app(), calls, id, (zone, frame)).await?;
        let email = pending.email.clone();
        part.pending = Some(pending);
        Some(email)
    } else {
        let email = metadata(visit, &review.mailbox_id, &review.email_id).await?;
        part.decision = Some(decision(visit, zone, &review, email.as_ref()).await?);
        email
    };
    if let Some(email) = email {
        part.earlier = conversation(visit, zone, &review, &email).await?;
    }
    Ok(part)
}

async fn decision(visit: &Visit, zone: &Zone, review: &Review, email: Option<&Email>) -> Result<Decision> {
    let names = names(visit).await?;
    let is_unsent = email.is_some_and(|email| email.folder_id.as_str() == "scheduled");
    let leaves = review.scheduled_send_at.filter(|_| review.state == ReviewState::Approved && is_unsent);
    Ok(Decision {
        badge: state_badge(review.state),
        by: decider(review, &names),
        at: zone.when(review.decided_at.unwrap_or(review.created_at)),
        reason: review.reason.clone().unwrap_or_default(),
        leaves: leaves.map(|at| zone.when(at)),
        reasons: review.reasons.iter().map(|reason| reason_badge(*reason)).collect(),
        requester: requester(review),
        subject: email.map_or_else(|| "(deleted)".to_owned(), |email| titled(email.subject.clone())),
    })
}

/// The conversation, newest first: without the message itself while that is shown in full.
async fn conversation(visit: &Visit, zone: &Zone, review: &Review, email: &Email) -> Result<Vec<Earlier>> {
    let Some(thread) = email.thread_id.clone() else { return Ok(Vec::new()) };
    let query = input(&json!({ "metadata_only": true }))?;
    let (mailbox, call) = (review.mailbox_id.as_str(), visit.call(&threads::GET)?);
    let emails = threads::get(visit.app(), &call, mailbox, thread, query).await?;
    let is_shown = |other: &Email| review.state == ReviewState::Pending && other.id == email.id;
    let others = emails.into_iter().rev().filter(|other| !is_shown(other)).take(MAX_EARLIER);
    let row = |other: Email| {
        let name = person(&other.sender).0;
        Earlier {
            base: format!("/console/m/{}/e/{}", encoded(mailbox), encoded(other.id.as_str())),
            id: other.id.as_str().to_owned(),
            initial: initial(&name),
            snippet: other.snippet.unwrap_or(other.subject),
            at: zone.when(other.date),
            name,
        }
    };
    Ok(others.map(row).collect())
}

/// Switches mails about new reviews on or off, for the person alone.
async fn watch(visit: Visit, request: Request) -> Response {
    visit
        .act(HERE, async {
            let on = Fields::read(request).await?.ticked("on");
            watching::set_watching(visit.app(), &visit.call(&watching::WATCH)?, on).await?;
            let said =
                if on { "You get an email about each new review." } else { "Emails about reviews are off." };
            Ok((HERE.to_owned(), said.to_owned()))
        })
        .await
}
