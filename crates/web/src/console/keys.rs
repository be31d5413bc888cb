//! API keys: created, listed and revoked by admins. The whole key is shown once.

use askama::Template;
use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::{get, post},
};
use model::api_keys::{ApiKey, NewApiKey};
use operations::{Result, api_keys};
use serde_json::json;

use super::{
    fields::{Fields, input},
    page::{self, html},
    shell::Shell,
    time::When,
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/keys", get(list).post(create))
        .route("/console/keys/{key}/revoke", post(revoke))
}

struct Row {
    id: String,
    name: String,
    role: &'static str,
    hint: String,
    created: When,
    used: Option<When>,
    expires: Option<When>,
}

#[derive(Template)]
#[template(path = "console/keys.html")]
struct KeysPage {
    shell: Shell,
    rows: Vec<Row>,
    /// The key that was just created, and a command to try it with.
    fresh: Option<(String, String)>,
    said: String,
}

fn row(shell: &Shell, key: ApiKey) -> Row {
    Row {
        id: key.id.as_str().to_owned(),
        name: key.name,
        role: key.role.as_str(),
        hint: key.hint,
        created: shell.zone.when(key.created_at),
        used: key.last_used_at.map(|at| shell.zone.when(at)),
        expires: key.expires_at.map(|at| shell.zone.when(at)),
    }
}

async fn show(visit: &Visit, fresh: Option<(String, String)>, said: String) -> Result<Response> {
    let call = visit.call(&api_keys::LIST)?;
    let shell = visit.shell("API keys", "keys").await?;
    let keys = api_keys::list(visit.app(), &call).await?;
    let rows = keys.into_iter().map(|key| row(&shell, key)).collect();
    html(&KeysPage { shell, rows, fresh, said })
}

async fn list(visit: Visit) -> Response {
    visit.answer(show(&visit, None, String::new())).await
}

async fn create(visit: Visit, request: Request) -> Response {
    let created = async {
        let fields = Fields::read(request).await?;
        let expires = match fields.given("expires") {
            Some(days) => {
                let days: i64 =
                    days.parse().map_err(|_| operations::Error::invalid("expires", "choose a time"))?;
                Some(visit.app().now().plus_seconds(days.clamp(1, 3650) * 86_400))
            }
            None => None,
        };
        let request: NewApiKey = input(&json!({
            "name": fields.get("name"), "role": fields.given("role").unwrap_or("admin"),
            "expires_at": expires.map(|at| at.to_string()),
        }))?;
        api_keys::create(visit.app(), &visit.call(&api_keys::CREATE)?, request).await
    };
    match created.await {
        Ok(created) => {
            let url = &visit.app().settings().public_url;
            let command = format!("curl -H \"x-api-key: {}\" {url}/api/v1/mailboxes", created.key);
            visit.answer(show(&visit, Some((created.key, command)), String::new())).await
        }
        Err(refused) => visit.answer(show(&visit, None, page::explain(&refused))).await,
    }
}

async fn revoke(visit: Visit, Path(key): Path<String>) -> Response {
    visit
        .act("/console/keys", async {
            api_keys::revoke(visit.app(), &visit.call(&api_keys::REVOKE)?, key.into()).await?;
            Ok(("/console/keys".to_owned(), "The key is revoked.".to_owned()))
        })
        .await
}
