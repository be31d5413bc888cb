//! Idempotency keys: one effect, one charge, the same bytes again.

use axum::body::{Body, Bytes};
use http::Method;
use model::{Limit, Plan};
use serde_json::json;
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};

const MAILBOXES: &str = "/api/v1/mailboxes";

async fn server(engine: Engine) -> Server {
    let mut options = ServerOptions::default();
    options.plans.free.mailboxes = Limit::UNLIMITED;
    Server::with(engine, options).await
}

async fn create(caller: &Caller, key: &str, name: &str) -> Answer {
    caller.with("idempotency-key", key).post(MAILBOXES, json!({ "name": name })).await
}

async fn used(tenant: &Tenant) -> i64 {
    let path = format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace);
    // The look itself costs one credit.
    tenant.key.get(&path).await.ok()["used"].as_i64().unwrap() - 1
}

async fn mailbox_count(server: &Server, tenant: &Tenant) -> usize {
    server.app.db().read(&tenant.workspace, async |tx| store::mailboxes::list(tx).await).await.unwrap().len()
}

/// rules: IDEM-1, IDEM-3
#[both_engines]
async fn a_repeat_gives_the_same_bytes_and_costs_nothing(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let first = create(&tenant.key, "k", "A").await;
    assert_eq!(
        (first.status, first.header("idempotent-replayed"), first.header("x-credits-charged")),
        (201, "", "10")
    );
    let before: i64 = first.header("ratelimit-remaining").parse().unwrap();
    for round in 1..=3 {
        let again = create(&tenant.key, "k", "A").await;
        assert_eq!((again.status, &again.bytes), (201, &first.bytes));
        assert_eq!((again.header("idempotent-replayed"), again.header("x-credits-charged")), ("true", "0"));
        assert_eq!(again.header("content-type"), "application/json");
        assert_eq!(again.header("ratelimit-remaining"), (before - round).to_string());
    }
    assert_eq!((mailbox_count(&server, &tenant).await, used(&tenant).await), (1, 10));

    let mailbox = first.json()["id"].as_str().unwrap().to_owned();
    let folders = format!("{MAILBOXES}/{mailbox}/folders");
    tenant.key.with("idempotency-key", "f").post(&folders, json!({ "name": "F" })).await.ok();
    let rename = tenant.key.with("idempotency-key", "r");
    assert_eq!(rename.put(&format!("{folders}/f"), json!({ "name": "G" })).await.status, 200);
    let delete = tenant.key.with("idempotency-key", "d");
    assert_eq!(delete.delete(&format!("{folders}/f")).await.status, 204);
    // Without the key this would be 404 by now.
    let again = delete.delete(&format!("{folders}/f")).await;
    assert_eq!((again.status, again.header("idempotent-replayed"), again.bytes.len()), (204, "true", 0));
    tenant.key.with("idempotency-key", "a").post("/api/v1/affiliate/signup", json!({})).await.ok();
    let patch = tenant.key.with("idempotency-key", "p");
    let first = patch.patch("/api/v1/affiliate/me", json!({ "code": "abc" })).await;
    assert_eq!(patch.patch("/api/v1/affiliate/me", json!({ "code": "abc" })).await.bytes, first.bytes);
}

/// rules: IDEM-4
#[both_engines]
async fn a_key_belongs_to_one_request(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    create(&tenant.key, "k", "A").await.ok();
    create(&tenant.key, "k", "B").await.expect(422, "idempotency_key_reused");
    let same = tenant.key.with("idempotency-key", "k");
    same.put(MAILBOXES.trim_end_matches("es"), json!({ "name": "A" })).await.expect(404, "not_found");
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    same.put(&workspace, json!({ "name": "A" })).await.expect(422, "idempotency_key_reused");
    same.post(&format!("{MAILBOXES}?x=1"), json!({ "name": "A" }))
        .await
        .expect(422, "idempotency_key_reused");
    // The same value in other bytes is another request: fingerprints are taken from bytes.
    let spaced = Body::from(r#"{ "name": "A" }"#);
    let answer = same.send_raw(Method::POST, MAILBOXES, Some("application/json"), spaced).await;
    answer.expect(422, "idempotency_key_reused");
    assert_eq!((mailbox_count(&server, &tenant).await, used(&tenant).await), (1, 10));
}

/// rules: IDEM-2
#[both_engines]
async fn keys_are_one_to_255_printable_characters(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    for bad in [String::new(), "k".repeat(256), "tab\there".to_owned(), "caf\u{e9}".to_owned()] {
        create(&tenant.key, &bad, "A").await.expect(400, "invalid_idempotency_key");
    }
    assert_eq!(create(&tenant.key, &"k".repeat(255), "A").await.status, 201);
    assert_eq!(mailbox_count(&server, &tenant).await, 1);
}

/// rules: IDEM-11
#[both_engines]
async fn two_different_keys_are_none(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let first = tenant.key.with("idempotency-key", "one");
    for caller in [first.with("idempotency-key", "two"), first.with("idempotency-key", "")] {
        let answer = create(&caller, "one", "A").await;
        answer.expect(400, "invalid_idempotency_key");
        assert_eq!(answer.json()["fix"], "Send one Idempotency-Key.");
    }
    assert_eq!(mailbox_count(&server, &tenant).await, 0);
    // The same one twice, as a proxy may make of it, says nothing else than once.
    assert_eq!(create(&first, "one", "A").await.status, 201);
    assert_eq!(create(&tenant.key, "one", "A").await.headers["idempotent-replayed"], "true");
    assert_eq!(mailbox_count(&server, &tenant).await, 1);
}

/// rules: IDEM-5
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_make_one_effect(engine: Engine) {
    let server = server(engine).await;
    let nodes = match engine {
        Engine::Sqlite => vec![],
        Engine::Postgres => {
            vec![server.another_node(ServerOptions { seed: 9, ..ServerOptions::default() }).await]
        }
    };
    for round in 0..10 {
        let tenant = server.tenant(Plan::Developer).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..50 {
            let node = nodes.first().filter(|_| number % 2 == 0).unwrap_or(&server);
            let (key, name) = (node.key(tenant.key.secret()), format!("key {round}"));
            calls.spawn(async move { create(&key, &name, "A").await });
        }
        let answers = calls.join_all().await;
        let fresh = answers
            .iter()
            .filter(|answer| answer.status == 201 && answer.header("idempotent-replayed").is_empty());
        let seen: Vec<_> = answers.iter().map(|answer| (answer.status, answer.code())).collect();
        assert_eq!(fresh.count(), 1, "{seen:?}");
        for answer in &answers {
            match answer.status {
                201 => {}
                _ => assert_eq!(answer.expect(409, "idempotency_in_progress").header("retry-after"), "1"),
            }
        }
        assert_eq!((mailbox_count(&server, &tenant).await, used(&tenant).await), (1, 10));
    }
}

/// rules: IDEM-6
#[both_engines]
async fn workspaces_do_not_share_keys(engine: Engine) {
    let server = server(engine).await;
    let (one, two) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    create(&one.key, "k", "A").await.ok();
    let other = create(&two.key, "k", "B").await;
    assert_eq!((other.status, other.header("idempotent-replayed")), (201, ""));
    assert_eq!(other.json()["name"], "B");
}

/// rules: IDEM-7, METER-12
#[both_engines]
async fn a_refused_attempt_is_not_kept(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.free.credits_per_period = Limit::of(11);
    options.plans.free.rpm = Limit::of(6);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    create(&tenant.key, "k", "").await.expect(400, "validation_failed");
    let email = json!({ "name": "A", "email": "first.one@agents.test" });
    let keyed = tenant.key.with("idempotency-key", "k");
    keyed.post(MAILBOXES, email.clone()).await.ok();
    // 422 and replay come before 400 and 402.
    create(&tenant.key, "k", "").await.expect(422, "idempotency_key_reused");
    create(&tenant.key, "second", "B").await.expect(402, "credits_exhausted");
    assert_eq!(keyed.post(MAILBOXES, email.clone()).await.header("idempotent-replayed"), "true");
    create(&tenant.key, "third", "").await.expect(400, "validation_failed");
    create(&tenant.key, "second", "B").await.expect(429, "rate_limited");
    server.clock.set("2026-08-01T00:00:00Z");
    create(&tenant.key, "second", "Corrected").await.ok();
}

/// rules: IDEM-9, AUTH-3
#[both_engines]
async fn answers_are_kept_for_a_day_and_sealed(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let session = server.log_in(&tenant).await.with("idempotency-key", "k");
    let keys = format!("/api/v1/workspaces/{}/api-keys", tenant.workspace);
    let first = session.post(&keys, json!({ "name": "sealed" })).await;
    let secret = first.ok()["key"].as_str().unwrap().to_owned();
    assert_eq!(session.post(&keys, json!({ "name": "sealed" })).await.bytes, first.bytes);
    let kept = server
        .app
        .db()
        .system_read(async |tx| tx.all::<(Vec<u8>,)>("SELECT answer FROM idempotency", &[]).await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert!(!kept[0].0.windows(8).any(|window| secret.as_bytes().windows(8).any(|part| part == window)));

    server.clock.advance(24 * 3600 - 1);
    assert_eq!(session.post(&keys, json!({ "name": "sealed" })).await.header("idempotent-replayed"), "true");
    server.clock.advance(1);
    let later = session.post(&keys, json!({ "name": "sealed" })).await;
    assert_eq!((later.status, later.header("idempotent-replayed")), (201, ""));
    assert_ne!(later.bytes, first.bytes);
}

/// rules: IDEM-10, HTTP-11
#[both_engines]
async fn large_bodies_are_refused_before_anything_runs(engine: Engine) {
    const MIB: usize = 1024 * 1024;
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let send = async |keyed: bool, declared: Option<usize>, megabytes: usize| {
        let mut caller = if keyed { tenant.key.with("idempotency-key", "k") } else { tenant.key.clone() };
        if let Some(length) = declared {
            caller = caller.with("content-length", &length.to_string());
        }
        let piece = Bytes::from(vec![b' '; MIB]);
        let pieces = (0..megabytes).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        caller.send_raw(Method::POST, MAILBOXES, Some("application/json"), body).await
    };
    send(true, None, 51).await.expect(413, "idempotency_payload_too_large");
    send(true, Some(50 * MIB + 1), 0).await.expect(413, "idempotency_payload_too_large");
    send(false, None, 65).await.expect(413, "payload_too_large");
    send(false, Some(64 * MIB + 1), 0).await.expect(413, "payload_too_large");
    // Exactly the limit is read, and then is no JSON.
    send(true, None, 50).await.expect(400, "validation_failed");
    assert_eq!((mailbox_count(&server, &tenant).await, used(&tenant).await), (0, 0));
}

/// rules: IDEM-8, STORE-4
#[both_engines]
async fn a_failure_at_any_statement_leaves_nothing(engine: Engine) {
    let server = server(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let mut failures = 0;
    for statement in 1..40 {
        store::faults::fail_statement(&tenant.workspace, "INSERT INTO idempotency", statement);
        let answer = create(&tenant.key, &format!("k{statement}"), "A").await;
        let failed = store::faults::stop_failing(&tenant.workspace);
        let present = mailbox_count(&server, &tenant).await;
        let rows = server
            .app
            .db()
            .system_read(async |tx| {
                let sql = "SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM idempotency),
                        (SELECT count(*) FROM address), (SELECT count(*) FROM folder)";
                tx.one::<(i64, i64, i64, i64)>(sql, &[]).await
            })
            .await
            .unwrap()
            .unwrap();
        if failed {
            failures += 1;
            assert!(answer.status >= 500, "statement {statement}: {}", answer.status);
            // The account and its key are in the log.
            assert_eq!((present, rows), (0, (2, 0, 0, 0)), "statement {statement}");
        } else {
            assert_eq!((answer.status, present, rows), (201, 1, (3, 1, 1, 7)));
            assert_eq!(used(&tenant).await, 10);
            break;
        }
    }
    assert!(failures >= 10, "only {failures} statements were tried");
}
