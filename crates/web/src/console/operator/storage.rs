//! The server's storage, and the workspaces that use most of it.

use askama::Template;
use axum::{Router, response::Response, routing::get};
use operations::admin;

use crate::{
    State,
    console::{
        page::html,
        shell::Shell,
        time::{number, size},
        visit::Visit,
    },
};

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/operator/storage", get(storage))
}

struct Row {
    id: String,
    name: String,
    plan: &'static str,
    kept: String,
    limit: String,
    objects: String,
}

#[derive(Template)]
#[template(path = "console/operator_storage.html")]
struct StoragePage {
    shell: Shell,
    kept: String,
    objects: String,
    place: String,
    fault: Option<String>,
    rows: Vec<Row>,
}

async fn storage(visit: Visit) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let shell = visit.shell("Storage", "operator-storage").await?;
            let app = visit.app();
            let ((bytes, objects), largest) = admin::storage(app, visit.limits().newest_shown).await?;
            let rows = largest.into_iter().map(|one| {
                let limit = app.limits(one.plan).storage_bytes.get();
                let limit = limit.map(|most| size(i64::try_from(most).unwrap_or(i64::MAX)));
                Row {
                    id: one.workspace_id.as_str().to_owned(),
                    name: one.name,
                    plan: one.plan.display_name(),
                    kept: size(one.bytes),
                    limit: limit.unwrap_or_else(|| "no limit".to_owned()),
                    objects: number(one.objects),
                }
            });
            let settings = app.settings();
            html(&StoragePage {
                rows: rows.collect(),
                kept: size(bytes),
                objects: number(objects),
                place: format!("{} {}", settings.blob_provider, settings.blob_bucket),
                fault: app.blob_fault(),
                shell,
            })
        })
        .await
}
