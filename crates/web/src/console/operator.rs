//! Pages for operators: the server's health, its nodes, its workspaces and their plans, its queue, storage, and money.

mod money;
mod nodes;
mod storage;

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{Plan, WorkspaceId};
use operations::{Error, admin};

use super::{
    fields::Fields,
    links::encoded,
    page::html,
    shell::Shell,
    time::{When, number},
    ui,
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/operator", get(server))
        .route("/console/operator/workspaces", get(list))
        .route("/console/operator/workspaces/{workspace}/plan", post(set_plan))
        .route("/console/operator/queue", get(queue))
        .merge(money::routes())
        .merge(nodes::routes())
        .merge(storage::routes())
}

/// A check: its name, whether it passed, and its text.
type Check = (&'static str, bool, String);

#[derive(Template)]
#[template(path = "console/operator.html")]
struct ServerPage {
    shell: Shell,
    accounts: String,
    workspaces: String,
    waiting: String,
    version: &'static str,
    checks: Vec<Check>,
    facts: Vec<(&'static str, String)>,
}

async fn server(visit: Visit) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let shell = visit.shell("Server", "operator").await?;
            let app = visit.app();
            let health = admin::health(app).await?;
            let waiting: i64 = admin::queue(app, 1000).await?.iter().map(|one| one.count).sum();
            let settings = app.settings();
            let blobs = health.blob_fault.clone();
            let checks = vec![
                ("Database", true, format!("connected, schema {}", health.schema)),
                (
                    "Blob store",
                    blobs.is_none(),
                    blobs.unwrap_or_else(|| format!("{} is available", settings.blob_provider)),
                ),
                (
                    "Receiving",
                    settings.receives_mail,
                    if settings.receives_mail { "accepts mail".into() } else { "off".into() },
                ),
            ];
            let facts = vec![
                ("URL", settings.public_url.clone()),
                ("Mail server name", settings.hostname.clone()),
                ("Hosted domains", settings.hosted_domains.join(", ")),
                ("Outbound mail", settings.outbound.mode.to_string()),
                ("Sign-up", if settings.sign_up.open { "open".into() } else { "invite only".into() }),
                ("Blob store", format!("{} {}", settings.blob_provider, settings.blob_bucket)),
                (
                    "Largest message",
                    super::time::size(i64::try_from(settings.max_message_bytes).unwrap_or(i64::MAX)),
                ),
            ];
            html(&ServerPage {
                accounts: number(health.accounts),
                workspaces: number(health.workspaces),
                waiting: number(waiting),
                version: env!("CARGO_PKG_VERSION"),
                checks,
                facts,
                shell,
            })
        })
        .await
}

struct WorkspaceRow {
    id: String,
    name: String,
    plan: &'static str,
    mailboxes: String,
    keys: String,
    made: When,
}

#[derive(Template)]
#[template(path = "console/operator_workspaces.html")]
struct WorkspacesPage {
    shell: Shell,
    rows: Vec<WorkspaceRow>,
    plans: Vec<(&'static str, &'static str)>,
    next: Option<String>,
}

async fn list(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let shell = visit.shell("Workspaces", "operator-workspaces").await?;
            let after = WorkspaceId::from(fields.get("after"));
            let limit = visit.limits().conversations_per_page;
            let found = admin::list_workspaces(visit.app(), after, limit + 1).await?;
            let page_size = usize::try_from(limit).map_err(Error::internal)?;
            let more = found.len() > page_size;
            let rows: Vec<WorkspaceRow> = found
                .into_iter()
                .take(page_size)
                .map(|one| WorkspaceRow {
                    id: one.id.as_str().to_owned(),
                    name: one.name,
                    plan: one.plan.as_str(),
                    mailboxes: number(one.mailbox_count),
                    keys: number(one.api_key_count),
                    made: shell.zone.when(one.created_at),
                })
                .collect();
            let next = rows.last().filter(|_| more);
            let next = next.map(|last| format!("/console/operator/workspaces?after={}", encoded(&last.id)));
            let plans = Plan::ALL.into_iter().map(|plan| (plan.as_str(), plan.display_name())).collect();
            html(&WorkspacesPage { shell, rows, plans, next })
        })
        .await
}

async fn set_plan(visit: Visit, Path(workspace): Path<String>, request: Request) -> Response {
    let back = "/console/operator/workspaces";
    visit
        .act(back, async {
            visit.require_operator()?;
            let fields = Fields::read(request).await?;
            let plan: Plan =
                fields.get("plan").parse().map_err(|said: String| Error::invalid("plan", said))?;
            admin::set_plan(visit.app(), workspace.into(), plan, &visit.author()).await?;
            Ok((back.to_owned(), format!("Plan changed to {}.", plan.display_name())))
        })
        .await
}

struct QueueRow {
    destination: String,
    count: String,
    attempts: i64,
    next: Option<When>,
    resting: Option<When>,
}

#[derive(Template)]
#[template(path = "console/operator_queue.html")]
struct QueuePage {
    shell: Shell,
    rows: Vec<QueueRow>,
    mode: String,
}

async fn queue(visit: Visit) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let shell = visit.shell("Queue", "operator-queue").await?;
            let now = visit.app().now();
            let rows = admin::queue(visit.app(), 200)
                .await?
                .into_iter()
                .map(|one| QueueRow {
                    destination: if one.destination.is_empty() {
                        "this server".to_owned()
                    } else {
                        one.destination
                    },
                    count: number(one.count),
                    attempts: one.attempts,
                    next: one.next_attempt_at.map(|at| shell.zone.when(at)),
                    resting: one
                        .backoff_until
                        .filter(|until| *until > now)
                        .map(|until| shell.zone.when(until)),
                })
                .collect();
            let mode = visit.app().settings().outbound.mode.to_string();
            html(&QueuePage { shell, rows, mode })
        })
        .await
}
