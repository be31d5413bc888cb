//! Scheduled messages, and messages captured by the sandbox.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    drafts::{DraftListQuery, DraftState},
    emails::{Email, ListQuery},
    sending::OutboundMode,
};
use operations::{Result, emails, scheduled_sends};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    links::encoded,
    page::html,
    shell::Shell,
    sidebar::fill_sidebar,
    text::people,
    time::When,
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/scheduled", get(list))
        .route("/console/m/{mailbox}/scheduled/{send}/move", post(reschedule))
        .route("/console/m/{mailbox}/scheduled/{send}/cancel", post(cancel))
        .route("/console/sandbox", get(sandbox))
}

struct Row {
    id: String,
    to: String,
    subject: String,
    at: When,
    field: String,
    state: &'static str,
    kind: &'static str,
    waits: bool,
    fault: String,
}

#[derive(Template)]
#[template(path = "console/scheduled.html")]
struct ScheduledPage {
    shell: Shell,
    rows: Vec<Row>,
    next: Option<String>,
    zone: String,
    earliest: String,
}

async fn list(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let mut shell = visit.shell("Scheduled", "scheduled").await?;
            fill_sidebar(&visit, &mut shell, &mailbox).await?;
            let request: DraftListQuery = input(
                &json!({ "limit": visit.limits().conversations_per_page, "cursor": fields.given("cursor") }),
            )?;
            let call = visit.call(&scheduled_sends::LIST)?;
            let page = scheduled_sends::list(visit.app(), &call, &mailbox, request).await?;
            let rows = page
                .scheduled_sends
                .into_iter()
                .map(|send| Row {
                    id: send.id.as_str().to_owned(),
                    to: people(&send.recipient),
                    subject: if send.subject.is_empty() { "(no subject)".to_owned() } else { send.subject },
                    at: shell.zone.when(send.scheduled_send_at),
                    field: shell.zone.field(send.scheduled_send_at),
                    state: match send.status {
                        DraftState::Deferred => "Deferred: limit reached",
                        DraftState::Failed => "Failed",
                        DraftState::Sending => "Sending",
                        _ => "Scheduled",
                    },
                    kind: match send.status {
                        DraftState::Scheduled => "info",
                        DraftState::Failed => "bad",
                        _ => "warn",
                    },
                    waits: send.status.waits(),
                    fault: send.last_error.unwrap_or_default(),
                })
                .collect();
            let next = page.next_cursor.map(|cursor| {
                let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
                format!("/console/m/{}/scheduled?cursor={cursor}", encoded(&mailbox))
            });
            let (zone, earliest) = (shell.zone.name.clone(), shell.zone.field(visit.app().now()));
            html(&ScheduledPage { shell, rows, next, zone, earliest })
        })
        .await
}

async fn reschedule(
    visit: Visit,
    Path((mailbox, send)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("/console/m/{}/scheduled", encoded(&mailbox));
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let zone = visit.zone().await?;
            let at = zone.parse(fields.get("at"))?;
            let change = input(&json!({ "scheduled_send_at": at.to_string() }))?;
            let call = visit.call(&scheduled_sends::UPDATE)?;
            scheduled_sends::update(visit.app(), &call, &mailbox, send.into(), change).await?;
            Ok((back.clone(), format!("Scheduled for {}.", zone.when(at).full)))
        })
        .await
}

async fn cancel(visit: Visit, Path((mailbox, send)): Path<(String, String)>, request: Request) -> Response {
    let back = format!("/console/m/{}/scheduled", encoded(&mailbox));
    let question = Question {
        title: "Cancel this send?",
        text: "The message will not be sent. It moves back to Drafts.",
        button: "Cancel send",
        cancel: &back,
        typed: "",
    };
    let cancel = async |_| {
        let work = async {
            let call = visit.call(&scheduled_sends::CANCEL)?;
            scheduled_sends::cancel(visit.app(), &call, &mailbox, send.into()).await?;
            Ok((back.clone(), "Send canceled. The message is back in Drafts.".to_owned()))
        };
        visit.act(&back, work).await
    };
    confirmed(&visit, request, &question, cancel).await
}

/// A message captured by the sandbox.
struct SandboxRow {
    url: String,
    from: String,
    to: String,
    subject: String,
    snippet: String,
    at: When,
}

#[derive(Template)]
#[template(path = "console/sandbox.html")]
struct SandboxPage {
    shell: Shell,
    rows: Vec<SandboxRow>,
    on: bool,
    mode: &'static str,
}

async fn sandbox(visit: Visit) -> Response {
    visit
        .answer(async {
            let shell = visit.shell("Sandbox", "sandbox").await?;
            let mut found: Vec<(String, String, Email)> = Vec::new();
            let max_mailboxes = usize::try_from(visit.limits().rows_per_page).unwrap_or_default();
            for mailbox in shell.mailboxes.iter().take(max_mailboxes) {
                let sent = sandboxed(&visit, &mailbox.id).await?;
                found
                    .extend(sent.into_iter().map(|email| (mailbox.id.clone(), mailbox.email.clone(), email)));
            }
            found.sort_by_key(|(_, _, email)| std::cmp::Reverse(email.date));
            let rows = found
                .into_iter()
                .map(|(id, from, email)| SandboxRow {
                    url: format!(
                        "/console/m/{}/f/sent/{}",
                        encoded(&id),
                        email.thread_id.as_ref().map(|thread| encoded(thread.as_str())).unwrap_or_default()
                    ),
                    from,
                    to: people(&email.to),
                    subject: if email.subject.is_empty() { "(no subject)".to_owned() } else { email.subject },
                    snippet: email.snippet.unwrap_or_default(),
                    at: shell.zone.when(email.date),
                })
                .collect();
            let mode = visit.app().settings().outbound.mode;
            html(&SandboxPage { shell, rows, on: mode == OutboundMode::Sandbox, mode: mode.as_str() })
        })
        .await
}

async fn sandboxed(visit: &Visit, mailbox: &str) -> Result<Vec<Email>> {
    let limit = visit.limits().conversations_per_page;
    let query: ListQuery = input(&json!({ "folder": "sent", "limit": limit }))?;
    let page = emails::list(visit.app(), &visit.call(&emails::LIST)?, mailbox, query).await?;
    let is_sandboxed = |email: &Email| email.delivery_status.as_deref() == Some("sandboxed");
    Ok(page.emails.into_iter().filter(is_sandboxed).collect())
}
