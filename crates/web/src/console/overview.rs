//! The overview page: mailboxes, unread counts, what is left of the plan, and the first steps for a new workspace.

use askama::Template;
use axum::{
    Router,
    extract::{RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{accounts::SwitchWorkspace, usage::HistoryQuery};
use operations::{accounts, api_keys, usage};
use serde_json::json;

use super::{
    fields::{Fields, input},
    page::html,
    shell::Shell,
    sidebar::fill_sidebar,
    time::{When, number},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console", get(overview))
        .route("/console/workspace", post(switch))
        .route("/console/side", get(side))
}

/// One of the first steps.
struct Steps {
    mailbox: bool,
    key: bool,
    mail: bool,
}

impl Steps {
    fn done(&self) -> bool {
        self.mailbox && self.key && self.mail
    }
}

/// A mailbox with its figures.
struct Row {
    id: String,
    name: String,
    email: String,
    ready: bool,
    unread: i64,
    received: String,
    sent: String,
}

#[derive(Template)]
#[template(path = "console/overview.html")]
struct OverviewPage {
    shell: Shell,
    rows: Vec<Row>,
    steps: Steps,
    unread: String,
    mails_in: String,
    mails_out: String,
    credits: String,
    credits_of: String,
    /// Credits used, in percent.
    used: i64,
    renewed: When,
    address: String,
}

async fn overview(visit: Visit) -> Response {
    visit
        .answer(async {
            let shell = visit.shell("Overview", "overview").await?;
            let app = visit.app();
            let credits = usage::credits(app, &visit.call(&usage::CREDITS)?).await?;
            let email_usage = usage::email(app, &visit.call(&usage::EMAIL)?).await?;
            let history =
                usage::history(app, &visit.call(&usage::HISTORY)?, HistoryQuery { days: 1 }).await?;
            let today = history.days.last().map_or((0, 0), |day| (day.mails_in, day.mails_out));
            let keys = match visit.call(&api_keys::LIST) {
                Ok(call) => !api_keys::list(app, &call).await?.is_empty(),
                // Only admins create keys; a member can skip this step.
                Err(_) => true,
            };
            let rows: Vec<Row> = shell
                .mailboxes
                .iter()
                .map(|mailbox| {
                    let figures = email_usage.mailboxes.iter().find(|one| one.id.as_str() == mailbox.id);
                    Row {
                        id: mailbox.id.clone(),
                        name: mailbox.name.clone(),
                        email: mailbox.email.clone(),
                        ready: mailbox.ready,
                        unread: mailbox.unread,
                        received: number(figures.map_or(0, |one| one.received)),
                        sent: number(figures.map_or(0, |one| one.sent)),
                    }
                })
                .collect();
            let steps = Steps {
                mailbox: !rows.is_empty(),
                key: keys,
                mail: email_usage.mailboxes.iter().any(|one| one.received > 0),
            };
            html(&OverviewPage {
                unread: number(rows.iter().map(|row| row.unread).sum()),
                mails_in: number(today.0),
                mails_out: number(today.1),
                credits: credits.remaining.map_or_else(|| "Unlimited".to_owned(), number),
                credits_of: credits.limit.map_or_else(
                    || format!("{} used this month", number(credits.used)),
                    |limit| format!("of {} this month", number(limit)),
                ),
                used: credits.limit.map_or(0, |limit| (credits.used * 100 / limit.max(1)).clamp(0, 100)),
                renewed: shell.zone.when(credits.period_end),
                address: rows.first().map(|row| row.email.clone()).unwrap_or_default(),
                rows,
                steps,
                shell,
            })
        })
        .await
}

async fn switch(visit: Visit, request: Request) -> Response {
    visit
        .act("/console", async {
            let fields = Fields::read(request).await?;
            let chosen: SwitchWorkspace = input(&json!({ "workspace_id": fields.get("workspace_id") }))?;
            accounts::switch_workspace(visit.app(), &visit.caller, chosen).await?;
            Ok(("/console".to_owned(), String::new()))
        })
        .await
}

#[derive(Template)]
#[template(path = "console/side_part.html")]
struct SidebarPart {
    shell: Shell,
}

/// The sidebar's mailboxes, refreshed on an open page when mail arrives.
async fn side(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let mut shell = visit.shell("", fields.get("active")).await?;
            let known = shell.mailboxes.iter().any(|one| one.id == fields.get("mailbox"));
            if known {
                fill_sidebar(&visit, &mut shell, fields.get("mailbox")).await?;
            }
            html(&SidebarPart { shell })
        })
        .await
}
