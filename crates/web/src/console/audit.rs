//! The audit log: who changed what in the workspace.

use askama::Template;
use axum::{Router, extract::RawQuery, response::Response, routing::get};
use model::audit::{ActorKind, AuditEntry, AuditQuery};
use operations::{Result, api_keys, audit, audited, members, require_audited};
use serde_json::{Value, json};

use super::{
    fields::{Fields, input},
    page::html,
    shell::Shell,
    time::When,
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/audit";
/// The filters, in the order of the form.
const FILTERS: [&str; 7] = ["actor", "operation", "mailbox", "since", "until", "resource", "routine"];

pub(super) fn routes() -> Router<State> {
    Router::new().route(HERE, get(show))
}

/// A changed field, as a page shows it.
struct Change {
    field: String,
    from: String,
    to: String,
    hidden: bool,
}

struct Row {
    at: When,
    actor: String,
    actor_kind: &'static str,
    actor_url: String,
    title: String,
    resource_kind: String,
    resource_id: String,
    resource_url: String,
    mailbox: String,
    address: String,
    changes: Vec<Change>,
    request_id: String,
    subject: String,
}

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditPage {
    shell: Shell,
    rows: Vec<Row>,
    /// Actors to choose from: id and name.
    actors: Vec<(String, String)>,
    /// Operations to choose from: id and title.
    operations: Vec<(&'static str, String)>,
    fields: Fields,
    is_filtered: bool,
    next: Option<String>,
    /// Whether this page continues another one.
    continues: bool,
}

impl AuditPage {
    /// The first page with the same filters.
    fn first(&self) -> String {
        url(&self.fields, &[])
    }
}

async fn show(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(page(&visit, fields)).await
}

async fn page(visit: &Visit, fields: Fields) -> Result<Response> {
    let call = visit.call(&audit::LIST)?;
    let shell = visit.shell("Audit log", "audit").await?;
    require_audited(fields.given("operation"))?;
    let day = |name: &str| fields.given(name).map(|text| shell.zone.day(name, text)).transpose();
    let (since, until) = (day("since")?.map(|(start, _)| start), day("until")?.map(|(_, end)| end));
    let request: AuditQuery = input(&json!({
        "actor": fields.given("actor"), "operation": fields.given("operation"),
        "mailbox_id": fields.given("mailbox"), "resource": fields.given("resource"),
        "since": since, "until": until, "include_routine": fields.ticked("routine"),
        "limit": visit.limits().rows_per_page, "cursor": fields.given("cursor"),
    }))?;
    let found = audit::list(visit.app(), &call, request).await?;
    let rows = found.entries.into_iter().map(|entry| row(&shell, &fields, entry)).collect();
    let mut operations: Vec<_> = audited().into_iter().map(|name| (name, title(name))).collect();
    operations.sort_by(|one, other| one.1.cmp(&other.1));
    html(&AuditPage {
        rows,
        actors: actors(visit, fields.get("actor")).await?,
        operations,
        is_filtered: FILTERS.iter().any(|name| fields.given(name).is_some()),
        next: found.next_cursor.map(|cursor| url(&fields, &[("cursor", &cursor)])),
        continues: fields.given("cursor").is_some(),
        fields,
        shell,
    })
}

/// Members and keys, and the chosen actor if it is another one.
async fn actors(visit: &Visit, chosen: &str) -> Result<Vec<(String, String)>> {
    let people = members::list(visit.app(), &visit.call(&members::LIST)?).await?;
    let keys = api_keys::list(visit.app(), &visit.call(&api_keys::LIST)?).await?;
    let people = people.into_iter().map(|one| (one.id.to_string(), one.email));
    let keys = keys.into_iter().map(|one| (one.id.to_string(), format!("Key {}", one.name)));
    let mut all: Vec<_> = people.chain(keys).collect();
    if !chosen.is_empty() && all.iter().all(|(id, _)| id != chosen) {
        all.push((chosen.to_owned(), chosen.to_owned()));
    }
    Ok(all)
}

/// The page with these filters and others.
fn url(fields: &Fields, others: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for name in FILTERS {
        if let Some(value) = fields.given(name).filter(|_| others.iter().all(|(other, _)| *other != name)) {
            pairs.append_pair(name, value);
        }
    }
    pairs.extend_pairs(others);
    format!("{HERE}?{}", pairs.finish())
}

fn row(shell: &Shell, fields: &Fields, entry: AuditEntry) -> Row {
    let mailbox = entry.mailbox_id.as_ref().map(|id| {
        let known = shell.mailboxes.iter().find(|one| one.id == id.as_str());
        known.map_or_else(|| id.to_string(), |one| one.name.clone())
    });
    Row {
        at: shell.zone.when(entry.at),
        actor_url: url(fields, &[("actor", &entry.actor.id)]),
        actor_kind: match entry.actor.kind {
            ActorKind::Key => "API key",
            ActorKind::Person => "",
            ActorKind::Wallet => "Wallet",
            ActorKind::Chat => "Telegram",
            ActorKind::Operator => "Operator",
            ActorKind::Service => "This service",
        },
        actor: entry.actor.name.unwrap_or(entry.actor.id),
        title: title(&entry.operation),
        resource_url: url(fields, &[("resource", &entry.resource.id)]),
        resource_kind: entry.resource.kind.replace('_', " ").replace("api ", "API "),
        resource_id: entry.resource.id,
        mailbox: mailbox.unwrap_or_default(),
        address: entry.address.unwrap_or_default(),
        changes: entry
            .changes
            .into_iter()
            .map(|one| Change {
                field: one.field.replace(['_', '.'], " "),
                from: shown(&one.from),
                to: shown(&one.to),
                hidden: one.hidden,
            })
            .collect(),
        request_id: entry.request_id,
        subject: entry.subject,
    }
}

/// A value of a field; empty when there is none.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| (name.replace('_', " "), shown(value)));
            let parts =
                filled.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}: {value}"));
            parts.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

/// The name of an operation in words: "Create API key".
fn title(operation: &str) -> String {
    let mut words = String::new();
    for character in operation.chars() {
        if character.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(if words.is_empty() {
            character.to_ascii_uppercase()
        } else {
            character.to_ascii_lowercase()
        });
    }
    words.replace(" api ", " API ").replace(" dkim ", " DKIM ").replace(" telegram", " Telegram")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_in_words() {
        for (operation, words) in [
            ("createApiKey", "Create API key"),
            ("logIn", "Log in"),
            ("rotateDkimKeys", "Rotate DKIM keys"),
            ("linkTelegramChat", "Link Telegram chat"),
            ("remember", "Remember"),
        ] {
            assert_eq!(title(operation), words);
        }
    }

    #[test]
    fn values_are_shown_in_words() {
        for (value, words) in [
            (json!(null), ""),
            (json!("a"), "a"),
            (json!(true), "on"),
            (json!(["a", "b"]), "a, b"),
            (json!([1]), "[1]"),
            (json!(7), "7"),
            (json!({ "allow": ["a", "b"], "per_day": 7, "per_hour": null }), "allow: a, b; per day: 7"),
        ] {
            assert_eq!(shown(&value), words);
        }
    }
}
