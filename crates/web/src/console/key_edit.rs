//! The page of one API key, where admins rename it, narrow it, and let it expire sooner.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::get,
};
use model::{
    Role,
    api_keys::{ApiKey, ApiKeyChange},
};
use operations::{Error, Result, api_keys};
use serde_json::{Map, Value, json};

use super::{
    fields::{Fields, input},
    form_state::FormState,
    key_access::{self, Access, LABELS},
    page::{self, html},
    shell::{Shell, SideMailbox},
    time::When,
    visit::Visit,
};
use crate::State;

const KEYS: &str = "/console/keys";
/// The days after which a key can be made to expire.
const EXPIRIES: [(i64, &str); 4] =
    [(1, "Tomorrow"), (30, "In 30 days"), (90, "In 90 days"), (365, "In a year")];

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/keys/{key}", get(edit_page).post(update))
}

#[derive(Template)]
#[template(path = "console/key_edit.html")]
struct EditPage {
    shell: Shell,
    id: String,
    name: String,
    access: String,
    narrower: Vec<&'static Access>,
    is_admin: bool,
    mailboxes: String,
    /// Those of which it can lose some.
    own_mailboxes: Vec<SideMailbox>,
    expires: Option<When>,
    expiries: Vec<(i64, &'static str)>,
    form: FormState,
}

async fn find(visit: &Visit, id: &str) -> Result<ApiKey> {
    let keys = api_keys::list(visit.app(), &visit.call(&api_keys::LIST)?).await?;
    keys.into_iter().find(|key| key.id.as_str() == id).ok_or_else(|| Error::not_found("API key not found"))
}

async fn show(visit: &Visit, id: &str, form: FormState) -> Result<Response> {
    visit.call(&api_keys::UPDATE)?;
    let key = find(visit, id).await?;
    let shell = visit.shell(&key.name, "keys").await?;
    let mailboxes = key_access::mailboxes_in_words(&key, &shell.mailboxes);
    let is_own = |one: &SideMailbox| {
        key.mailbox_ids.as_ref().is_none_or(|ids| ids.iter().any(|id| id.as_str() == one.id))
    };
    let own_mailboxes = shell.mailboxes.iter().filter(|one| is_own(one)).cloned().collect();
    let now = visit.app().now();
    let is_sooner = |days: i64| key.expires_at.is_none_or(|end| now.plus_seconds(days * 86_400) < end);
    html(&EditPage {
        id: key.id.to_string(),
        access: key_access::in_words(key.scopes.as_deref()),
        narrower: key_access::narrower(&key),
        is_admin: key.role == Role::Admin,
        mailboxes,
        own_mailboxes,
        expires: key.expires_at.map(|at| shell.zone.when(at)),
        expiries: EXPIRIES.into_iter().filter(|(days, _)| is_sooner(*days)).collect(),
        name: key.name,
        form,
        shell,
    })
}

async fn edit_page(visit: Visit, Path(key): Path<String>) -> Response {
    visit.answer(show(&visit, &key, FormState::default())).await
}

/// What the form changes: nothing of what it leaves as it is.
fn change(visit: &Visit, fields: &Fields) -> Result<ApiKeyChange> {
    let mut wanted = Map::from_iter([("name".to_owned(), json!(fields.get("name")))]);
    let mut add = |name: &str, value: Value| wanted.insert(name.to_owned(), value);
    if let Some(role) = fields.given("role") {
        add("role", json!(role));
    }
    if fields.given("access").is_some() {
        add("scopes", key_access::chosen_scopes(fields));
    }
    if fields.ticked("some_mailboxes") {
        add("mailbox_ids", key_access::chosen_mailboxes(fields));
    }
    if let Some(days) = fields.given("expires") {
        let days: i64 =
            days.parse().map_err(|_| Error::invalid("expires_at", "choose when the key expires"))?;
        let end = visit.app().now().plus_seconds(days.clamp(1, 3650) * 86_400);
        add("expires_at", json!(end.to_string()));
    }
    input(&Value::Object(wanted))
}

async fn update(visit: Visit, Path(key): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let updated = async {
        let change = change(&visit, &fields)?;
        api_keys::update(visit.app(), &visit.call(&api_keys::UPDATE)?, key.as_str().into(), change).await
    };
    match updated.await {
        Ok(_) => visit.act(KEYS, async { Ok((KEYS.to_owned(), "API key changed.".to_owned())) }).await,
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show(&visit, &key, form)).await
        }
    }
}
