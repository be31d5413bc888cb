//! Faults of the service itself: what callers see of them, and what only the log tells.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::Method;
use model::Plan;
use serde_json::json;
use testkit::{Engine, Logs, Server, ServerOptions, both_engines, stalled};

use super::help::{assert_refused, new_mailbox, path_of};

const ALL: &str = "/api/v1/mailboxes";
const INTERNAL: &str = r#"{"error":"Internal error","code":"internal_error"}"#;

/// A store that has too much to do, as only SQLite's queue can have it in one process.
/// rules: ERR-8, API-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_too_much_to_do_says_when_to_come_again() {
    let server = Server::start(Engine::Sqlite).await;
    let tenant = server.tenant(Plan::Free).await;
    tenant.key.get(ALL).await.ok();
    let open = Arc::new(AtomicBool::new(false));
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..5000 {
        let (db, open, workspace) = (server.app.db().clone(), open.clone(), tenant.workspace.clone());
        waiting.spawn(async move {
            let blocked = db.read(&workspace, async move |_| {
                while !open.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok::<_, store::Error>(())
            });
            blocked.await.is_ok()
        });
    }
    // Until the queue is full.
    let anonymous = server.anonymous();
    let patience = Duration::from_millis(100);
    let status = loop {
        if let Ok(answer) = tokio::time::timeout(patience, anonymous.get("/api/status")).await {
            break answer;
        }
    };
    for answer in [status, tenant.key.get(ALL).await, server.anonymous().get("/readyz").await] {
        assert_eq!(answer.status, 503);
        assert_eq!(answer.text(), r#"{"error":"The server is busy.","code":"overloaded"}"#);
        assert_eq!(answer.header("retry-after"), "1");
    }
    assert_eq!(server.anonymous().get("/healthz").await.status, 200);
    open.store(true, Ordering::SeqCst);
    waiting.join_all().await;
    tenant.key.get(ALL).await.ok();
}

/// rules: ERR-9, ERR-2, HTTP-10
#[both_engines]
async fn a_fault_of_the_store_is_told_to_the_log_alone(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let mailbox = path_of(&new_mailbox(&tenant.key, "Inbox").await);
    let remaining = tenant.key.get(&mailbox).await.header("x-credits-remaining").to_owned();
    let rename = async |from: &str, to: &str| {
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        server.app.db().system_write(async move |tx| tx.run(&sql, &[]).await).await.unwrap();
    };
    rename("label", "label_away").await;
    let logs = Logs::catch();
    let caller = tenant.key.meets_faults().with("x-request-id", "find-me-in-the-log");
    let labels = format!("{mailbox}/custom-labels");
    let secret = "a text that must not be logged";
    for answer in [caller.get(&labels).await, caller.post(&labels, json!({ "name": secret })).await] {
        assert_eq!((answer.status, answer.text().as_str()), (500, INTERNAL));
        assert_eq!(answer.header("x-request-id"), "find-me-in-the-log");
        assert_eq!(answer.header("x-credits-charged"), "0");
        assert_eq!(answer.header("x-credits-remaining"), remaining);
    }
    let text = logs.text();
    let about: Vec<&str> = text.lines().filter(|line| line.contains("call failed")).collect();
    assert_eq!(about.len(), 2, "{text}");
    for line in about {
        assert!(
            line.contains("find-me-in-the-log") && line.contains("ERROR") && line.contains("label"),
            "{line}"
        );
    }
    assert!(!text.contains(secret) && !text.contains(tenant.key.secret()), "{text}");
    rename("label_away", "label").await;
    assert_eq!(tenant.key.get(&labels).await.text(), "[]");
    assert_eq!(tenant.key.post(&labels, json!({ "name": "Fine" })).await.status, 201);
}

/// rules: ERR-2, ERR-9, HTTP-10
#[both_engines]
async fn a_panic_is_an_error_like_any_other(engine: Engine) {
    let mut options = ServerOptions::default();
    options.web.metrics = Some(Arc::new(|| panic!("the cause of the panic")));
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let logs = Logs::catch();
    // In a handler of a public route.
    let caller = server.anonymous().meets_faults().with("x-request-id", "panicked-here");
    let answer = caller.get("/metrics").await;
    assert_eq!((answer.status, answer.text().as_str()), (500, INTERNAL));
    assert_eq!(answer.header("x-request-id"), "panicked-here");
    assert_eq!(answer.header("cache-control"), "no-store");
    // In an operation, whose write runs on its own.
    server.break_random_numbers(true);
    let caller = tenant.key.meets_faults().with("x-request-id", "and-here");
    let answer = caller.with("idempotency-key", "once").post(ALL, json!({ "name": "A" })).await;
    assert_eq!((answer.status, answer.text().as_str()), (500, INTERNAL));
    assert_eq!((answer.header("x-request-id"), answer.header("x-credits-charged")), ("and-here", "0"));
    server.break_random_numbers(false);
    let text = logs.text();
    for (id, cause) in
        [("panicked-here", "the cause of the panic"), ("and-here", "random numbers are broken")]
    {
        assert!(text.lines().any(|line| line.contains(id) && line.contains(cause)), "{text}");
    }
    // Nothing was done or charged, and the very same request works afterwards.
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
    let again = tenant.key.with("idempotency-key", "once").post(ALL, json!({ "name": "A" })).await;
    assert_eq!((again.status, again.header("x-credits-remaining")), (201, "989"));
}

/// rules: ERR-2, STORE-4
#[both_engines]
async fn a_panic_in_a_transaction_undoes_it_and_nothing_else(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let mailbox = new_mailbox(&tenant.key, "Before").await;
    for round in 0..30 {
        let (db, workspace) = (server.app.db().clone(), tenant.workspace.clone());
        let write = tokio::spawn(async move {
            if round % 2 == 0 {
                let body = async |tx: &mut store::Tx| -> Result<(), store::Error> {
                    tx.run("UPDATE mailbox SET name = 'Half-way' WHERE workspace_id = $1", &[]).await?;
                    panic!("in the middle of it")
                };
                db.write(&workspace, body).await
            } else {
                let body = async |tx: &mut store::Tx| -> Result<(), store::Error> {
                    store::mailboxes::list(tx).await?;
                    panic!("while reading")
                };
                db.read(&workspace, body).await
            }
        });
        assert!(!matches!(write.await, Ok(Ok(()))));
        // At the same time others go on.
        tenant.key.get(ALL).await.ok();
    }
    assert_eq!(tenant.key.get(&path_of(&mailbox)).await.ok()["name"], "Before");
    tenant.key.put(&path_of(&mailbox), json!({ "name": "After" })).await.ok();
    assert_eq!(tenant.key.get(&path_of(&mailbox)).await.ok()["name"], "After");
}

/// A body that does not come: given up after ten seconds, on both engines at once to wait only once.
/// rules: ERR-2
#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let (one, two) = (Server::start(Engine::Sqlite).await, Server::start(Engine::Postgres).await);
    let wait = async |server: &Server| {
        let tenant = server.tenant(Plan::Free).await;
        let started = std::time::Instant::now();
        let answer = tenant.key.send_raw(Method::POST, ALL, Some("application/json"), stalled()).await;
        assert_refused(&answer, &[("", "the body came too slowly")]);
        assert!((9..20).contains(&started.elapsed().as_secs()));
    };
    tokio::join!(wait(&one), wait(&two));
}
