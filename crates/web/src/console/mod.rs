//! The web console: pages for people, made on the server, and the session behind them as JSON.
//!
//! Pages call the same operations as the API, under the same roles and plans, but unmetered (`Visit::call`). Nothing
//! is loaded from elsewhere and nothing inline runs; `page::POLICY` says so to browsers.

mod agent;
mod assets;
mod auth;
mod chart;
mod compose;
mod domains;
mod events;
mod flash;
mod integrations;
mod invites;
mod keys;
mod knowledge;
mod letter_form;
mod live;
mod mail;
mod mailboxes;
mod members;
mod operator;
mod overview;
mod page;
mod passing;
mod reader;
mod scheduled;
mod session_api;
mod settings;
mod telegram;
mod text;
mod time;
mod triage;
mod triage_form;
mod ui;
mod usage;
mod visit;
mod webhooks;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{any, get},
};

use crate::State;

pub(crate) fn routes(state: &State) -> Router<State> {
    let pages = Router::new()
        .merge(auth::routes())
        .merge(invites::routes())
        .merge(overview::routes())
        .merge(keys::routes())
        .merge(mailboxes::routes())
        .merge(mail::routes())
        .merge(reader::routes())
        .merge(live::routes())
        .merge(compose::routes())
        .merge(scheduled::routes())
        .merge(agent::routes())
        .merge(triage::routes())
        .merge(telegram::routes())
        .merge(members::routes())
        .merge(domains::routes())
        .merge(webhooks::routes())
        .merge(integrations::routes())
        .merge(knowledge::routes())
        .merge(events::routes())
        .merge(usage::routes())
        .merge(settings::routes())
        .merge(operator::routes())
        .route("/console/{*unknown}", any(unknown))
        .layer(from_fn(page::finish))
        .layer(from_fn_with_state(state.clone(), limit));
    session_api::routes().merge(pages).route("/console/assets/{name}", get(assets::serve))
}

/// A page that does not exist, for people.
async fn unknown(headers: axum::http::HeaderMap) -> axum::response::Response {
    page::failure(&headers, &operations::Error::not_found("There is no such page."))
}

/// How much of the console one may see at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleLimits {
    /// Pages that one client address may ask for in a minute.
    pub pages_per_minute: u64,
    /// Conversations, drafts, scheduled messages or workspaces that a page lists: 1 to 100.
    pub conversations_per_page: i64,
    /// Rows of other lists that a page shows: 1 to 100.
    pub rows_per_page: i64,
    /// How many of the newest are shown where there is no next page.
    pub newest_shown: i64,
}

impl Default for ConsoleLimits {
    fn default() -> Self {
        // A person reads far fewer pages.
        Self { pages_per_minute: 1200, conversations_per_page: 50, rows_per_page: 25, newest_shown: 100 }
    }
}

/// Counts pages against the client's address, since the meter of the API does not.
async fn limit(
    axum::extract::State(state): axum::extract::State<State>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let address = crate::request::client_address(&request);
    match state.pages.count(address, state.app.now()) {
        Ok(()) => next.run(request).await,
        Err(refused) => page::failure(request.headers(), &refused),
    }
}
