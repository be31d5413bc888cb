//! The event log over HTTP: pages, long polls, a stream.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{body::Bytes, http::Method};
use futures_util::{Stream, stream};
use model::events::{Event, EventPage, EventQuery, EventStreamQuery};
use operations::{App, Call, Result, events};
use tokio::{sync::watch, time::Instant};

use super::paths::InWorkspace;
use crate::{
    Endpoint,
    input::{LastEventId, Path, Query},
};

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How long a stream lasts; clients reconnect where it ended, and authenticate again.
const MAX_STREAM_DURATION: Duration = Duration::from_hours(1);
/// Events sent in one batch.
const MAX_BATCH: i64 = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Events";
    vec![
        Endpoint::new(tag, Method::GET, "/api/v1/workspaces/{workspaceId}/events", &events::LIST, list),
        Endpoint::stream::<Event, _, _, _, _>(
            tag,
            "/api/v1/workspaces/{workspaceId}/events/stream",
            &events::STREAM,
            open_stream,
        ),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (_, Query(query)): (Path<InWorkspace>, Query<EventQuery>),
) -> Result<EventPage> {
    events::list(&app, &call, query).await
}

async fn open_stream(
    app: App,
    call: Arc<Call>,
    (_, Query(query), LastEventId(last)): (Path<InWorkspace>, Query<EventStreamQuery>, LastEventId),
) -> Result<impl Stream<Item = Result<Bytes, Infallible>>> {
    stream_of(app, call, last.or(query.after)).await
}

/// The events of the call's workspace after one of them, or from now on.
pub(crate) async fn stream_of(
    app: App,
    call: Arc<Call>,
    after: Option<i64>,
) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>> {
    let notifications = app.subscribe(&call.workspace);
    let after = match after {
        Some(after) => after,
        None => events::last_sequence(&app, &call.workspace).await?,
    };
    let state = OpenStream {
        app,
        call,
        notifications,
        after,
        until: Instant::now() + MAX_STREAM_DURATION,
        started: false,
    };
    Ok(stream::unfold(state, next))
}

/// An open stream.
struct OpenStream {
    app: App,
    call: Arc<Call>,
    notifications: watch::Receiver<u64>,
    after: i64,
    until: Instant,
    started: bool,
}

async fn next(mut open: OpenStream) -> Option<(Result<Bytes, Infallible>, OpenStream)> {
    if !open.started {
        open.started = true;
        // Send something at once, so that clients and proxies see that the stream is open.
        return Some((Ok(Bytes::from_static(b": open\nretry: 1000\n\n")), open));
    }
    loop {
        if Instant::now() >= open.until || !open.app.is_still_valid(&open.call.caller).await {
            return None;
        }
        // A short outage of the store does not end the stream.
        let found = events::page(&open.app, &open.call, open.after, MAX_BATCH).await;
        if let Ok(page) = found {
            open.after = page.next_after;
            if !page.events.is_empty() {
                return Some((Ok(Bytes::from(encode(&page.events))), open));
            }
        }
        let notified = tokio::select! {
            notified = tokio::time::timeout(KEEP_ALIVE_INTERVAL, open.notifications.changed()) => notified,
            // The client reconnects by itself, to another node or to this one after its restart.
            () = open.app.ending() => return None,
            _ = open.app.revoked(&open.call) => return None,
        };
        if notified.is_err() {
            return Some((Ok(Bytes::from_static(b": still here\n\n")), open));
        }
    }
}

/// Events in the format of server-sent events.
fn encode(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        let data = serde_json::to_string(event).unwrap_or_default();
        let _ = write!(text, "id: {}\nevent: {}\ndata: {data}\n\n", event.sequence, event.kind);
    }
    text
}
