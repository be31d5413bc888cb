//! All routes of the console: its pages under one rate limit, its session as JSON, its static files.

use axum::{
    Router,
    extract::{Request, State as Extracted},
    http::HeaderMap,
    middleware::{Next, from_fn, from_fn_with_state},
    response::Response,
    routing::{any, get},
};
use operations::Error;

use super::{
    agent, assets, audit, auth, compose, domains, events, integrations, invites, key_edit, keys, knowledge,
    live, mail, mail_actions, mailboxes, members, message_source, operator, overview, page, reader,
    review_decisions, review_link, reviews, scheduled, send_policy, session_api, settings, suppressions,
    telegram, test_message, triage, undo_send, unsubscribe, usage, webhooks,
};
use crate::{State, request::client_address};

/// The routes.
pub(crate) fn routes(state: &State) -> Router<State> {
    let pages = Router::new()
        .merge(auth::routes())
        .merge(invites::routes())
        .merge(overview::routes())
        .merge(keys::routes())
        .merge(key_edit::routes())
        .merge(mailboxes::routes())
        .merge(mail::routes())
        .merge(mail_actions::routes())
        .merge(test_message::routes())
        .merge(reader::routes())
        .merge(message_source::routes())
        .merge(live::routes())
        .merge(compose::routes())
        .merge(undo_send::routes())
        .merge(scheduled::routes())
        .merge(reviews::routes())
        .merge(review_decisions::routes())
        .merge(review_link::routes())
        .merge(suppressions::routes())
        .merge(unsubscribe::routes())
        .merge(agent::routes())
        .merge(triage::routes())
        .merge(telegram::routes())
        .merge(members::routes())
        .merge(domains::routes())
        .merge(webhooks::routes())
        .merge(integrations::routes())
        .merge(knowledge::routes())
        .merge(events::routes())
        .merge(audit::routes())
        .merge(usage::routes())
        .merge(settings::routes())
        .merge(send_policy::routes())
        .merge(operator::routes())
        .route("/console/{*unknown}", any(unknown))
        .layer(from_fn(page::finish))
        .layer(from_fn_with_state(state.clone(), limit));
    session_api::routes().merge(pages).route("/console/assets/{name}", get(assets::serve))
}

/// A page that does not exist.
async fn unknown(headers: HeaderMap) -> Response {
    page::failure(&headers, &Error::not_found("There is no such page."))
}

/// Rate-limits pages by client address, since the API's metering does not apply.
async fn limit(Extracted(state): Extracted<State>, request: Request, next: Next) -> Response {
    let address = client_address(&request);
    match state.pages.count(address, state.app.now()) {
        Ok(()) => next.run(request).await,
        Err(refused) => page::failure(request.headers(), &refused),
    }
}
