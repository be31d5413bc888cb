//! API keys: created, listed and revoked by admins; `key_edit.rs` changes them. The whole key is shown once, with code that uses it.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::api_keys::{ApiKey, NewApiKey};
use operations::{Error, Result, api_keys};
use serde_json::json;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    form_state::FormState,
    key_access::{self, CHOICES, LABELS},
    page::{self, html},
    shell::Shell,
    snippets::{Snippet, snippets},
    time::When,
    visit::Visit,
};
use crate::State;

const HERE: &str = "/console/keys";
/// The days after which a new key may expire; empty for never. The suggested one comes first.
const EXPIRIES: [(&str, &str); 4] =
    [("90", "In 90 days (recommended)"), ("30", "In 30 days"), ("365", "In a year"), ("", "Never")];
/// A key of the console manages nothing, unless its maker wants that.
const ROLES: [(&str, &str); 2] = [("member", "Member"), ("admin", "Admin: may manage the workspace")];

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/console/keys/new", get(new_page))
        .route("/console/keys/{key}/revoke", post(revoke))
}

struct Row {
    id: String,
    name: String,
    role: &'static str,
    access: String,
    mailboxes: String,
    hint: String,
    created: When,
    used: Option<When>,
    expires: Option<When>,
}

/// A key that was just created.
struct FreshKey {
    key: String,
    snippets: Vec<Snippet>,
}

#[derive(Template)]
#[template(path = "console/keys.html")]
struct KeysPage {
    shell: Shell,
    rows: Vec<Row>,
    fresh: Option<FreshKey>,
    form: FormState,
}

#[derive(Template)]
#[template(path = "console/key_new.html")]
struct NewPage {
    shell: Shell,
    form: FormState,
}

fn row(shell: &Shell, key: ApiKey) -> Row {
    Row {
        id: key.id.as_str().to_owned(),
        access: key_access::in_words(key.scopes.as_deref()),
        mailboxes: key_access::mailboxes_in_words(&key, &shell.mailboxes),
        name: key.name,
        role: key.role.as_str(),
        hint: key.hint,
        created: shell.zone.when(key.created_at),
        used: key.last_used_at.map(|at| shell.zone.when(at)),
        expires: key.expires_at.map(|at| shell.zone.when(at)),
    }
}

async fn show(visit: &Visit, fresh: Option<String>) -> Result<Response> {
    let call = visit.call(&api_keys::LIST)?;
    let shell = visit.shell("API keys", "keys").await?;
    let keys = api_keys::list(visit.app(), &call).await?;
    let rows = keys.into_iter().map(|key| row(&shell, key)).collect();
    let url = &visit.app().settings().public_url;
    let fresh = fresh.map(|key| FreshKey { snippets: snippets(url, &key), key });
    html(&KeysPage { shell, rows, fresh, form: FormState::default() })
}

async fn show_form(visit: &Visit, form: FormState) -> Result<Response> {
    visit.call(&api_keys::CREATE)?;
    html(&NewPage { shell: visit.shell("New API key", "keys").await?, form })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, None)).await
}

async fn new_page(visit: Visit) -> Response {
    visit.answer(show_form(&visit, FormState::default())).await
}

async fn create(visit: Visit, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let created = async {
        let expires = match fields.given("expires") {
            Some(days) => {
                let days: i64 =
                    days.parse().map_err(|_| Error::invalid("expires_at", "choose when the key expires"))?;
                Some(visit.app().now().plus_seconds(days.clamp(1, 3650) * 86_400))
            }
            None => None,
        };
        let request: NewApiKey = input(&json!({
            "name": fields.get("name"), "role": fields.given("role").unwrap_or("member"),
            "scopes": key_access::chosen_scopes(&fields), "mailbox_ids": key_access::chosen_mailboxes(&fields),
            "expires_at": expires.map(|at| at.to_string()),
        }))?;
        api_keys::create(visit.app(), &visit.call(&api_keys::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => visit.answer(show(&visit, Some(created.key))).await,
        Err(refused) => {
            let form = FormState::refused(fields, &refused, LABELS);
            visit.again(&refused, show_form(&visit, form)).await
        }
    }
}

async fn revoke(visit: Visit, Path(key): Path<String>, request: Request) -> Response {
    let question = Question {
        title: "Revoke this API key?",
        text: "Programs that use it stop working within a second. This cannot be undone.",
        button: "Revoke key",
        cancel: HERE,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(HERE, async {
            api_keys::revoke(visit.app(), &visit.call(&api_keys::REVOKE)?, key.into()).await?;
            Ok((HERE.to_owned(), "API key revoked.".to_owned()))
        })
    })
    .await
}
