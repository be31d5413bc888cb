//! The page that a link for unsubscribing leads to, for people without an account. Looking at it changes nothing; its button,
//! and the programs of mail providers (RFC 8058), post to the same address.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State as Extracted},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use operations::{
    Error, ErrorKind, Result,
    unsubscribing::{self, Subscription},
};

use super::{
    auth::Form,
    page::{self, html},
};
use crate::State;

/// Below the path that links are made with.
const HERE: &str = "/unsubscribe/{token}";
const TITLE: &str = "Unsubscribe";

pub(super) fn routes() -> Router<State> {
    Router::new().route(HERE, get(look).post(unsubscribe))
}

#[derive(Template)]
#[template(path = "console/unsubscribe.html")]
struct UnsubscribePage {
    form: Form,
    token: String,
    subscription: Option<Subscription>,
}

fn answer(headers: &HeaderMap, token: String, outcome: Result<Subscription>) -> Response {
    let (status, subscription) = match outcome {
        Ok(subscription) => (StatusCode::OK, Some(subscription)),
        Err(refused) if refused.kind() == ErrorKind::NotFound => (StatusCode::NOT_FOUND, None),
        Err(refused) => return page::failure(headers, &refused),
    };
    match html(&UnsubscribePage { form: Form::new(headers, TITLE), token, subscription }) {
        Ok(mut response) => {
            *response.status_mut() = status;
            response
        }
        Err(refused) => page::failure(headers, &refused),
    }
}

async fn look(Extracted(state): Extracted<State>, Path(token): Path<String>, headers: HeaderMap) -> Response {
    let outcome = unsubscribing::look(&state.app, &token).await;
    answer(&headers, token, outcome)
}

/// The body of the request says nothing that the link does not say: it is not read.
async fn unsubscribe(
    Extracted(state): Extracted<State>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    let outcome: std::result::Result<_, Error> = unsubscribing::unsubscribe(&state.app, &token).await;
    answer(&headers, token, outcome)
}
