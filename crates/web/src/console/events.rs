//! The event log, newest first, updated live.

use askama::Template;
use axum::{Router, response::Response, routing::get};
use model::events::EventType;
use operations::events;

use super::{links::encoded, page::html, shell::Shell, time::When, visit::Visit};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/events", get(show))
}

struct Row {
    sequence: i64,
    kind: &'static str,
    mark: &'static str,
    at: When,
    mailbox: String,
    mailbox_url: String,
    data: String,
}

#[derive(Template)]
#[template(path = "console/events.html")]
struct EventsPage {
    shell: Shell,
    rows: Vec<Row>,
    /// How many the page shows at most.
    newest: i64,
}

async fn show(visit: Visit) -> Response {
    visit
        .answer(async {
            let shell = visit.shell("Events", "events").await?;
            let call = visit.call(&events::LIST)?;
            let newest = visit.limits().newest_shown;
            let last = events::last_sequence(visit.app(), &call.workspace).await?;
            let page = events::page(visit.app(), &call, (last - newest).max(0), newest).await?;
            let rows = page
                .events
                .into_iter()
                .rev()
                .map(|event| {
                    let id = event.mailbox_id.as_ref().map(model::Id::as_str).unwrap_or_default();
                    let known = shell.mailboxes.iter().find(|one| one.id == id);
                    Row {
                        sequence: event.sequence,
                        kind: event.kind.as_str(),
                        mark: match event.kind {
                            EventType::MessageBounced
                            | EventType::MessageComplained
                            | EventType::ScheduleFailed
                            | EventType::ReviewRejected => "bad",
                            EventType::MessageDeferred
                            | EventType::MessageHeld
                            | EventType::ReviewRequested
                            | EventType::ReviewExpired => "warn",
                            EventType::MessageReceived => "info",
                            EventType::ReviewApproved => "ok",
                            _ => "",
                        },
                        at: shell.zone.when(event.occurred_at),
                        mailbox: known.map(|one| one.name.clone()).unwrap_or_default(),
                        mailbox_url: known
                            .map(|one| format!("/console/m/{}/f/inbox", encoded(&one.id)))
                            .unwrap_or_default(),
                        data: serde_json::to_string_pretty(&event.data).unwrap_or_default(),
                    }
                })
                .collect();
            html(&EventsPage { shell, rows, newest })
        })
        .await
}
