//! A review by the link in a mail, without logging in: looking at it changes nothing, and its form decides once. Without a
//! link the same address opens the queue.

use askama::Template;
use axum::{
    Router,
    extract::{FromRequestParts, Path, RawQuery, Request, State as Extracted},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use model::{
    ReviewId,
    reviews::{Approval, Refusal},
};
use operations::{
    Call, Error, ErrorKind, Operation, RequestInfo, Result, attachments, emails,
    reviews::{self, links},
    workspaces,
};
use serde_json::json;

use super::{
    auth::{Form, open_form},
    fields::{Fields, input},
    links::encoded,
    page::{self, html},
    review_message::{self, Body, PendingMessage},
    review_words::explain,
    reviews::open_page,
    time::Zone,
    visit::Visit,
};
use crate::{State, error, request::request_info};

const TITLE: &str = "Review a message";

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/reviews/{review}", get(open).post(decide))
        .route("/console/reviews/{review}/frame", get(frame))
}

#[derive(Template)]
#[template(path = "console/review_link.html")]
struct LinkPage {
    form: Form,
    token: String,
    message: PendingMessage,
}

/// What is said when there is nothing to decide, or not any more.
#[derive(Template)]
#[template(path = "console/review_end.html")]
struct EndPage {
    form: Form,
    heading: &'static str,
    said: String,
}

/// A request that brings a token instead of a session.
struct Link {
    state: State,
    headers: HeaderMap,
    request: RequestInfo,
    review: ReviewId,
    token: String,
}

impl Link {
    /// The call of the person that the link is for.
    async fn call(&self, operation: &'static Operation) -> Result<Call> {
        links::call(&self.state.app, &self.review, &self.token, operation, self.request.clone()).await
    }

    async fn zone(&self) -> Result<Zone> {
        let call = self.call(&workspaces::GET).await?;
        let workspace = workspaces::get(&self.state.app, &call).await?;
        Ok(Zone::new(&workspace.timezone, self.state.app.now()))
    }

    /// The message with its buttons, and what stood against a decision.
    async fn page(&self, said: String) -> Result<Response> {
        let (reading, opening) = (self.call(&reviews::GET).await?, self.call(&emails::GET).await?);
        let zone = self.zone().await?;
        let token: String = form_urlencoded::byte_serialize(self.token.as_bytes()).collect();
        let frame = format!("/console/reviews/{}/frame?token={token}", encoded(self.review.as_str()));
        let calls = (&reading, &opening);
        let message =
            review_message::load(&self.state.app, calls, self.review.clone(), (&zone, frame)).await?;
        let form = Form { said, ..Form::new(&self.headers, TITLE) };
        html(&LinkPage { form, token: self.token.clone(), message })
    }

    /// A link that is not there, not for this review, or used.
    fn refuse(&self, refused: &Error) -> Response {
        if !matches!(refused.kind(), ErrorKind::NotFound | ErrorKind::ReviewDecided) {
            return page::failure(&self.headers, refused);
        }
        let said =
            "The message was decided already, or the link is not complete. Log in to see what became of it.";
        self.end(StatusCode::NOT_FOUND, "This link does not work any more", said.to_owned())
    }

    fn end(&self, status: StatusCode, heading: &'static str, said: String) -> Response {
        let form = Form::new(&self.headers, heading);
        match html(&EndPage { form, heading, said }) {
            Ok(mut response) => {
                *response.status_mut() = status;
                response
            }
            Err(refused) => page::failure(&self.headers, &refused),
        }
    }

    async fn decide(&self, fields: &Fields) -> Result<String> {
        let (app, id) = (&self.state.app, self.review.clone());
        if fields.get("action") != "approve" {
            let refusal: Refusal = input(&json!({ "reason": fields.given("reason") }))?;
            reviews::reject(app, &self.call(&reviews::REJECT).await?, id, refusal).await?;
            return Ok("The message is not sent. It is a draft again.".to_owned());
        }
        let approval: Approval = input(&json!({ "digest": fields.get("digest") }))?;
        // The link ends with the decision.
        let zone = self.zone().await?;
        let approved = reviews::approve(app, &self.call(&reviews::APPROVE).await?, id, approval).await?;
        Ok(match approved.scheduled_send_at {
            Some(at) => format!("The message leaves {}.", zone.when(at).full),
            None => "The message is on its way.".to_owned(),
        })
    }
}

/// The token of a request, if it has one.
fn token(query: Option<&str>) -> Option<String> {
    Fields::parse(query.unwrap_or_default().as_bytes()).given("token").map(ToOwned::to_owned)
}

async fn open(
    Extracted(state): Extracted<State>,
    Path(review): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let Some(token) = token(query.as_deref()) else {
        return match Visit::from_request_parts(&mut parts, &state).await {
            Ok(visit) => open_page(&visit, review, query).await,
            Err(response) => response,
        };
    };
    let request = request_info(&parts.extensions, &parts.uri);
    let link = Link { state, headers: parts.headers, request, review: review.as_str().into(), token };
    match link.page(String::new()).await {
        Ok(response) => response,
        Err(refused) => link.refuse(&refused),
    }
}

async fn decide(
    Extracted(state): Extracted<State>,
    Path(review): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let info = request_info(request.extensions(), request.uri());
    let fields = match open_form(&state, request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&headers, &refused),
    };
    let token = fields.get("token").to_owned();
    let link = Link { state, headers, request: info, review: review.as_str().into(), token };
    match link.decide(&fields).await {
        Ok(said) => {
            let heading = if fields.get("action") == "approve" { "Approved" } else { "Rejected" };
            link.end(StatusCode::OK, heading, said)
        }
        Err(refused) => again(&link, refused).await,
    }
}

/// The page again with what stands against the decision, as long as the link works.
async fn again(link: &Link, refused: Error) -> Response {
    let said = match link.zone().await {
        Ok(zone) if refused.kind() != ErrorKind::ValidationFailed => {
            explain(&refused, &zone, link.state.app.now())
        }
        _ => page::explain(&refused),
    };
    match link.page(said).await {
        Ok(mut response) => {
            *response.status_mut() = error::status(refused.kind());
            response
        }
        Err(later) => link.refuse(&later),
    }
}

/// The HTML of the message, for the person of the session or of a link.
async fn frame(
    Extracted(state): Extracted<State>,
    Path(review): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let id: ReviewId = review.as_str().into();
    let Some(token) = token(query.as_deref()) else {
        let visit = match Visit::from_request_parts(&mut parts, &state).await {
            Ok(visit) => visit,
            Err(response) => return response,
        };
        return visit
            .answer(async {
                let reading = visit.call(&reviews::GET)?;
                let (opening, fetching) =
                    (visit.call(&emails::GET)?, visit.call(&attachments::GET_OF_EMAIL)?);
                review_message::frame(visit.app(), (&reading, &opening, &fetching), id).await
            })
            .await;
    };
    let request = request_info(&parts.extensions, &parts.uri);
    let link = Link { state, headers: parts.headers, request, review: id.clone(), token };
    let work = async {
        let (reading, opening) = (link.call(&reviews::GET).await?, link.call(&emails::GET).await?);
        let fetching = link.call(&attachments::GET_OF_EMAIL).await?;
        review_message::frame(&link.state.app, (&reading, &opening, &fetching), id).await
    };
    match work.await {
        Ok(response) => response,
        Err(refused) => link.refuse(&refused),
    }
}
