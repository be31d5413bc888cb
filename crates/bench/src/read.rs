//! A read through the whole service against a bare handler that runs the same query on the same store.
//!
//! Both sides list the 20 labels of a mailbox, found by its public id, at 32 connections. The service authenticates
//! the key, counts the request, reserves and commits a credit, checks the input and writes its headers; the bare
//! handler does none of that and sends the same body.

use std::net::SocketAddr;

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use model::WorkspaceId;
use store::{DatabaseLocation, Db, labels, mailboxes::MailboxName};

use crate::{
    bare_postgres, fill,
    load::{Connection, Load},
    measured_store::MeasuredStore,
    options::{Options, ReadSide},
    report::{Figure, Target},
    service::{self, Service},
    turns::{self, Comparison, Side},
};

const CONNECTIONS: usize = 32;
/// The maximum of a mailbox.
const LABELS: usize = 20;
const TARGET: Target = Target::AtLeast(0.70);
const WHAT: &str = "metered read : bare handler";
/// Against a handler that has no store either.
const AGAINST_POSTGRES: &str = "keyed read : bare tokio-postgres handler";
const POSTGRES_TARGET: Target = Target::AtLeast(0.60);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let store = MeasuredStore::new(*engine).await;
        let sides = prepare(&store).await;
        if let Some(side) = options.only {
            let load = if side == ReadSide::Service { &sides.0 } else { &sides.1 };
            turns::show_alone(load, options.requests).await;
        } else {
            let comparisons = [
                Some((WHAT, TARGET, &sides.1)),
                sides.2.as_ref().map(|load| (AGAINST_POSTGRES, POSTGRES_TARGET, load)),
            ];
            for (what, target, yardstick) in comparisons.into_iter().flatten() {
                if !options.wants(what) {
                    continue;
                }
                let comparison = Comparison {
                    what,
                    engine: *engine,
                    target: Some(target),
                    measured: Side { name: "service", load: &sides.0 },
                    yardstick: Side { name: "bare", load: yardstick },
                };
                figures.push(comparison.run(options).await);
            }
        }
        store.remove().await;
    }
    figures
}

/// The loads of both sides, and on PostgreSQL of a handler without a store, after checking that their responses are
/// equal.
async fn prepare(store: &MeasuredStore) -> (Load, Load, Option<Load>) {
    let service = Service::open(store).await;
    let (db, workspace) = (service.app.db().clone(), service.workspace.clone());
    let mailbox = fill::add_mailboxes(&db, &workspace, 1).await.remove(0);
    fill::add_labels(&db, &workspace, LABELS).await;
    let path = format!("/api/v1/mailboxes/{mailbox}/custom-labels");
    let request = |address: SocketAddr| {
        let key = &service.key;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nX-API-Key: {key}\r\n\r\n"
        )
    };
    let ours = service.listen().await;
    let bare = service::listen(bare_router(db, workspace.clone())).await;
    let on_postgres = matches!(store.location, DatabaseLocation::Postgres(_));
    let barest = if on_postgres {
        Some(service::listen(bare_postgres::router(store, workspace).await).await)
    } else {
        None
    };
    let mut answers = Vec::new();
    for address in [ours, bare].into_iter().chain(barest) {
        let answer = Connection::open(address).await.ask(&request(address)).await;
        assert_eq!(answer.0, 200, "{}", String::from_utf8_lossy(&answer.1));
        answers.push(answer.1);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "all sides send the same body");
    assert_eq!(answers[0].windows(6).filter(|window| window == b"\"slug\"").count(), LABELS);
    let load = |address| Load::of_one(address, CONNECTIONS, request(address));
    (load(ours), load(bare), barest.map(load))
}

/// The baseline.
fn bare_router(db: Db, workspace: WorkspaceId) -> Router {
    Router::new()
        .route("/api/v1/mailboxes/{mailbox}/custom-labels", get(list_labels))
        .with_state((db, workspace))
}

async fn list_labels(
    State((db, workspace)): State<(Db, WorkspaceId)>,
    Path(mailbox): Path<String>,
) -> Response {
    let found = db
        .read(&workspace, async move |tx| labels::list_named(tx, &MailboxName::PublicId(mailbox)).await)
        .await;
    match found.map(|labels| labels.map(|labels| serde_json::to_vec(&labels))) {
        Ok(Some(Ok(body))) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
