//! Suppressed addresses: searched, added, removed with a reason, and carried in and out as CSV.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use model::suppressions::{
    NewSuppression, Suppression, SuppressionQuery, SuppressionReason, SuppressionRemoval,
};
use operations::{
    Error, Result,
    suppressions::{self, csv},
};
use serde_json::json;

use super::{
    fields::{Fields, input},
    form_state::FormState,
    message_form::read_form,
    page::{self, html},
    shell::Shell,
    time::When,
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/suppressions";
const LABELS: &[(&str, &str, &str)] = &[
    ("address", "address", "Address"),
    ("note", "note", "Note"),
    ("mailbox_id", "mailbox_id", "Stops messages of"),
    ("file", "file", "File"),
];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(show).post(add))
        .route("/console/suppressions.csv", get(export))
        .route("/console/suppressions/import", post(import))
        .route("/console/suppressions/{id}/remove", post(remove))
}

struct Row {
    id: String,
    address: String,
    reason: (&'static str, &'static str),
    scope: String,
    note: String,
    since: When,
}

#[derive(Template)]
#[template(path = "console/suppressions.html")]
struct SuppressionsPage {
    shell: Shell,
    rows: Vec<Row>,
    query: Fields,
    next: Option<String>,
    is_filtered: bool,
    form: FormState,
}

/// A reason in words, with the kind of its badge.
const fn in_words(reason: SuppressionReason) -> (&'static str, &'static str) {
    match reason {
        SuppressionReason::HardBounce => ("bad", "Hard bounce"),
        SuppressionReason::Complaint => ("bad", "Complaint"),
        SuppressionReason::Unsubscribe => ("warn", "Unsubscribed"),
        SuppressionReason::Manual => ("", "Added by hand"),
    }
}

/// The reasons to filter by.
fn reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    SuppressionReason::ALL.iter().map(|reason| (reason.as_str(), in_words(*reason).1))
}

fn row(shell: &Shell, one: Suppression) -> Row {
    let mailbox = one.mailbox_id.as_ref().map(|id| {
        let known = shell.mailboxes.iter().find(|mailbox| mailbox.id == id.as_str());
        known.map_or_else(|| id.to_string(), |mailbox| mailbox.name.clone())
    });
    Row {
        id: one.id.to_string(),
        address: one.address,
        reason: in_words(one.reason),
        scope: mailbox.map_or_else(|| "All mailboxes".to_owned(), |name| format!("{name} only")),
        note: one.note.unwrap_or_default(),
        since: shell.zone.when(one.created_at),
    }
}

/// The page with these filters.
fn url(fields: &Fields, cursor: Option<&str>) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for name in ["q", "reason", "mailbox"] {
        if let Some(value) = fields.given(name) {
            pairs.append_pair(name, value);
        }
    }
    if let Some(cursor) = cursor {
        pairs.append_pair("cursor", cursor);
    }
    format!("{HERE}?{}", pairs.finish())
}

async fn page_with(visit: &Visit, query: Fields, form: FormState) -> Result<Response> {
    let call = visit.call(&suppressions::LIST)?;
    let shell = visit.shell("Suppressions", "suppressions").await?;
    let asked: SuppressionQuery = input(&json!({
        "q": query.given("q"), "reason": query.given("reason"), "mailbox_id": query.given("mailbox"),
        "limit": visit.limits().rows_per_page, "cursor": query.given("cursor"),
    }))?;
    let found = suppressions::list(visit.app(), &call, asked).await?;
    let rows = found.suppressions.into_iter().map(|one| row(&shell, one)).collect();
    html(&SuppressionsPage {
        shell,
        rows,
        next: found.next_cursor.map(|cursor| url(&query, Some(&cursor))),
        is_filtered: ["q", "reason", "mailbox"].iter().any(|name| query.given(name).is_some()),
        query,
        form,
    })
}

async fn show(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(page_with(&visit, query, FormState::default())).await
}

async fn add(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let added = async {
        let asked: NewSuppression = input(&json!({
            "address": fields.get("address"), "note": fields.given("note"), "mailbox_id": fields.given("mailbox_id"),
        }))?;
        suppressions::create(visit.app(), &visit.call(&suppressions::CREATE)?, asked).await
    };
    match added.await {
        Ok(one) => {
            let said = format!("{} gets no more messages.", one.address);
            visit.act(HERE, async { Ok((HERE.to_owned(), said)) }).await
        }
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, page_with(&visit, Fields::default(), form)).await
        }
    }
}

async fn remove(visit: Visit, Path(id): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    visit
        .act(HERE, async {
            let removal: SuppressionRemoval = input(&json!({ "reason": fields.given("reason") }))?;
            suppressions::delete(visit.app(), &visit.call(&suppressions::DELETE)?, id.into(), removal)
                .await?;
            Ok((HERE.to_owned(), "Suppression removed. The address can be written to again.".to_owned()))
        })
        .await
}

/// All suppressions as a file.
async fn export(visit: Visit) -> Response {
    visit
        .answer(async {
            let all = suppressions::all(visit.app(), &visit.call(&suppressions::LIST)?).await?;
            let mut response = csv::write(&all).into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
            let name = HeaderValue::from_static("attachment; filename=\"suppressions.csv\"");
            headers.insert(header::CONTENT_DISPOSITION, name);
            Ok(response)
        })
        .await
}

/// Adds the addresses of a file, or none of them if a line is wrong.
async fn import(visit: Visit, request: Request) -> Response {
    let imported = async {
        let form = read_form(&visit, request).await?;
        let content = form.files.first().and_then(|file| file["content"].as_str()).unwrap_or_default();
        let bytes = STANDARD.decode(content).map_err(|_| Error::invalid("file", "cannot be read"))?;
        let call = visit.call(&suppressions::CREATE)?;
        suppressions::import(visit.app(), &call, csv::read(&bytes)?).await
    };
    match imported.await {
        Ok(outcome) => {
            let said = format!(
                "{} {} added, {} suppressed already.",
                outcome.added,
                if outcome.added == 1 { "address" } else { "addresses" },
                outcome.known
            );
            visit.act(HERE, async { Ok((HERE.to_owned(), said)) }).await
        }
        Err(refused) => {
            let form = FormState::refused(Fields::default(), &refused, LABELS);
            visit.again(&refused, page_with(&visit, Fields::default(), form)).await
        }
    }
}
