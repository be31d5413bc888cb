//! The event log as a live stream for an open page.

use axum::{Router, extract::RawQuery, response::Response, routing::get};
use operations::events;
use std::sync::Arc;

use super::{fields::Fields, visit::Visit};
use crate::{State, api, reply};

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/live", get(live))
}

async fn live(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let call = Arc::new(visit.call(&events::STREAM)?);
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let last = visit.headers.get("last-event-id").and_then(|id| id.to_str().ok());
            let after = last.or(fields.given("after")).and_then(|number| number.parse().ok());
            let stream = api::events::stream_of(visit.app().clone(), call, after).await?;
            Ok(reply::events(Box::pin(stream)))
        })
        .await
}
