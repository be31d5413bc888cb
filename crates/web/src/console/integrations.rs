//! Connections to external tool servers: what the mailbox agent may use besides the mailbox.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::integrations::{Connection, ConnectionStatus, NewConnection};
use operations::{Error, Result, integrations};
use serde_json::{Map, Value, json};

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::{FormState, Labels},
    members::Makers,
    page::{self, html},
    shell::Shell,
    text::counted,
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/integrations";
const LABELS: Labels = &[("name", "name", "Name"), ("url", "url", "URL"), ("headers", "headers", "Headers")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/console/integrations/new", get(new_page))
        .route("/console/integrations/{connection}/sync", post(sync))
        .route("/console/integrations/{connection}/tools", post(set_tools))
        .route("/console/integrations/{connection}/delete", post(delete))
}

struct ToolRow {
    name: String,
    allowed: bool,
}

struct Row {
    id: String,
    name: String,
    host: String,
    headers: String,
    ready: bool,
    paused: bool,
    maker: String,
    fault: String,
    tools: Vec<ToolRow>,
    allowed: usize,
    synced: Option<When>,
}

fn row(zone: &Zone, makers: &Makers, one: Connection) -> Row {
    let tools: Vec<ToolRow> = one
        .tools
        .into_iter()
        .map(|name| ToolRow { allowed: one.allowed_tools.contains(&name), name })
        .collect();
    Row {
        id: one.id.as_str().to_owned(),
        name: one.name,
        host: one.url_host,
        headers: one.header_names.join(", "),
        ready: one.status == ConnectionStatus::Ready,
        paused: one.status == ConnectionStatus::Paused,
        maker: makers.name(one.created_by.as_ref()),
        fault: one.last_error.unwrap_or_default(),
        allowed: tools.iter().filter(|tool| tool.allowed).count(),
        tools,
        synced: one.synced_at.map(|at| zone.when(at)),
    }
}

#[derive(Template)]
#[template(path = "console/integrations.html")]
struct IntegrationsPage {
    shell: Shell,
    rows: Vec<Row>,
    may_change: bool,
    said: String,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/integration_new.html")]
struct NewPage {
    shell: Shell,
    form: FormState,
}

async fn show(visit: &Visit, said: String) -> Result<Response> {
    let shell = visit.shell("Integrations", "integrations").await?;
    let all = integrations::list(visit.app(), &visit.call(&integrations::LIST)?).await?;
    let makers = Makers::load(visit).await?;
    let rows = all.into_iter().map(|one| row(&shell.zone, &makers, one)).collect();
    let (may_change, form) = (visit.may(&integrations::CREATE), FormState::default());
    html(&IntegrationsPage { shell, rows, may_change, said, form })
}

async fn show_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&integrations::CREATE)?;
    html(&NewPage { shell: visit.shell("New connection", "integrations").await?, form })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, String::new())).await
}

async fn new_page(visit: Visit) -> Response {
    visit.answer(show_form(&visit, FormState::default())).await
}

/// Lines such as `Authorization: Bearer …`.
fn headers(text: &str) -> Result<Map<String, Value>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let pair =
                line.split_once(':').map(|(name, value)| (name.trim().to_owned(), json!(value.trim())));
            pair.ok_or_else(|| {
                Error::invalid(
                    "headers",
                    "write each header on its own line, such as Authorization: Bearer …",
                )
            })
        })
        .collect()
}

async fn create(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let request: NewConnection = input(&json!({
            "name": fields.get("name"),
            "url": fields.get("url").trim(),
            "headers": headers(fields.get("headers"))?,
        }))?;
        integrations::create(visit.app(), &visit.call(&integrations::CREATE)?, request).await
    };
    match created.await {
        Ok(created) if created.status == ConnectionStatus::Ready => {
            let said = format!("{} is connected.", created.name);
            visit.act(HERE, async { Ok((HERE.to_owned(), said)) }).await
        }
        Ok(created) => {
            let why = created.last_error.unwrap_or_default();
            let said = format!("{} was saved but does not work yet: {why}", created.name);
            visit.answer(show(&visit, said)).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_form(&visit, form)).await
        }
    }
}

async fn sync(visit: Visit, Path(connection): Path<String>) -> Response {
    visit
        .act(HERE, async {
            let call = visit.call(&integrations::SYNC)?;
            let synced = integrations::sync(visit.app(), &call, connection.into()).await?;
            let said = if let Some(why) = synced.last_error {
                format!("The tools of {} could not be refreshed: {why}", synced.name)
            } else {
                let tools = i64::try_from(synced.tools.len()).unwrap_or(i64::MAX);
                format!("{} has {}.", synced.name, counted(tools, "tool"))
            };
            Ok((HERE.to_owned(), said))
        })
        .await
}

async fn set_tools(visit: Visit, Path(connection): Path<String>, request: Request) -> Response {
    visit
        .act(HERE, async {
            let fields = Fields::read(request).await?;
            let change = input(&json!({ "allowed_tools": fields.all("tool") }))?;
            let call = visit.call(&integrations::UPDATE)?;
            integrations::update(visit.app(), &call, connection.into(), change).await?;
            Ok((HERE.to_owned(), "Tools saved.".to_owned()))
        })
        .await
}

async fn delete(visit: Visit, Path(connection): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Remove this connection?",
        text: "The mailbox agent can no longer use its tools.",
        button: "Remove connection",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            let call = visit.call(&integrations::DELETE)?;
            integrations::delete(visit.app(), &call, connection.into()).await?;
            Ok((HERE.to_owned(), "Connection removed.".to_owned()))
        })
    })
    .await
}
