//! The first page.
use askama::Template;
use axum::{Router, response::Response, routing::get};
use super::{page::{Shell, html}, visit::Visit};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console", get(overview))
}

#[derive(Template)]
#[template(path = "console/overview.html")]
struct Page { shell: Shell }

async fn overview(visit: Visit) -> Response {
    visit.answer(async { html(&Page { shell: visit.shell("Overview", "overview").await? }) }).await
}
