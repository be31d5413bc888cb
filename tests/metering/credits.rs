//! The pool of credits.

use model::{Limit, Plan};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, Tenant, both_engines};

fn options(credits: u64) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.plans.free.credits_per_period = Limit::of(credits);
    options.plans.free.mailboxes = Limit::UNLIMITED;
    options.plans.free.api_keys = Limit::UNLIMITED;
    options
}

async fn usage(tenant: &Tenant) -> Value {
    tenant.key.get(&format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace)).await.ok()
}

/// A pool of 100 credits, 200 parallel creates of 10 credits: exactly 10 succeed, many times over.
/// rules: METER-6, METER-4
async fn race(engine: Engine, rounds: usize) {
    let server = Server::with(engine, options(100)).await;
    for _ in 0..rounds {
        let tenant = server.tenant(Plan::Free).await;
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let key = tenant.key.clone();
            calls.spawn(async move { key.post("/api/v1/mailboxes", json!({ "name": "Racer" })).await });
        }
        let answers = calls.join_all().await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        let refused = answers.iter().filter(|answer| answer.status == 402).count();
        assert_eq!((made, refused), (10, 190));
        let usage = usage(&tenant).await;
        assert_eq!((usage["used"].as_i64(), usage["remaining"].as_i64()), (Some(100), Some(0)));
        let listed = server.app.db().read(&tenant.workspace, async |tx| store::mailboxes::list(tx).await);
        assert_eq!(listed.await.unwrap().len(), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_races_on_sqlite_never_overdraw() {
    race(Engine::Sqlite, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_races_on_postgresql_never_overdraw() {
    race(Engine::Postgres, 100).await;
}

#[both_engines]
async fn a_failed_call_costs_nothing(engine: Engine) {
    let server = Server::with(engine, options(100)).await;
    let tenant = server.tenant(Plan::Free).await;
    let answer = tenant.key.get("/api/v1/mailboxes/nobody@agents.test").await;
    answer.expect(404, "not_found");
    assert_eq!((answer.header("x-credits-charged"), answer.header("x-credits-remaining")), ("0", "100"));
    let answer =
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A", "email": "one-two@elsewhere.test" })).await;
    answer.expect(400, "validation_failed");
    assert_eq!(answer.header("x-credits-remaining"), "100");
    let answer =
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A", "email": "first.one@agents.test" })).await;
    assert_eq!(
        (answer.status, answer.header("x-credits-charged"), answer.header("x-credits-remaining")),
        (201, "10", "90")
    );
    let answer =
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A", "email": "first.one@agents.test" })).await;
    answer.expect(409, "mailbox_exists");
    assert_eq!(answer.header("x-credits-remaining"), "90");
    let usage = usage(&tenant).await;
    assert_eq!(
        (usage["used"].as_i64(), usage["remaining"].as_i64(), usage["limit"].as_i64()),
        (Some(11), Some(89), Some(100))
    );
}

#[both_engines]
async fn the_balance_answers_with_an_empty_pool(engine: Engine) {
    let server = Server::with(engine, options(2)).await;
    let tenant = server.tenant(Plan::Free).await;
    tenant.key.get("/api/v1/mailboxes").await.ok();
    let last = tenant.key.get(&format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace)).await;
    assert_eq!((last.header("x-credits-charged"), last.header("x-credits-remaining")), ("1", "0"));
    tenant.key.get("/api/v1/mailboxes").await.expect(402, "credits_exhausted");
    let free = tenant.key.get(&format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace)).await;
    assert_eq!((free.status, free.header("x-credits-charged")), (200, "0"));
    assert_eq!(free.json()["used"], 2);
}

/// rules: METER-4
#[both_engines]
async fn what_is_left_is_told_when_it_is_too_little(engine: Engine) {
    let server = Server::with(engine, options(6)).await;
    let tenant = server.tenant(Plan::Free).await;
    let answer = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await;
    answer.expect(402, "credits_exhausted");
    let said = "This call costs 10 credits; 6 are left in this period.";
    assert_eq!(answer.json()["error"], said);
}

/// rules: METER-3
#[both_engines]
async fn a_new_month_fills_the_pool(engine: Engine) {
    let server = Server::with(engine, options(2)).await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.set("2026-07-31T23:59:58Z");
    tenant.key.get("/api/v1/mailboxes").await.ok();
    tenant.key.get("/api/v1/mailboxes").await.ok();
    tenant.key.get("/api/v1/mailboxes").await.expect(402, "credits_exhausted");
    server.clock.set("2026-08-01T00:00:00Z");
    let usage = usage(&tenant).await;
    assert_eq!(usage["used"], 1);
    assert_eq!(usage["period_start"], "2026-08-01T00:00:00.000Z");
    assert_eq!(usage["period_end"], "2026-09-01T00:00:00.000Z");
}

#[both_engines]
async fn enterprise_is_recorded_without_a_limit(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let answer = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await;
    assert_eq!(
        (answer.status, answer.header("x-credits-charged"), answer.header("x-credits-remaining")),
        (201, "10", "")
    );
    assert_eq!(answer.header("ratelimit-limit"), "");
    let usage = usage(&tenant).await;
    assert_eq!(
        (usage["used"].as_i64(), &usage["limit"], &usage["remaining"]),
        (Some(11), &Value::Null, &Value::Null)
    );
}

#[both_engines]
async fn settling_waits_for_what_is_being_settled(engine: Engine) {
    let server = Server::with(engine, ServerOptions { background: false, ..ServerOptions::default() }).await;
    let tenant = server.tenant(Plan::Developer).await;
    tenant.key.get("/api/v1/mailboxes").await.ok();
    let app = server.app.clone();
    let first = tokio::spawn(async move { app.meter().commit().await });
    // It has begun, and is not done.
    tokio::task::yield_now().await;
    assert!(server.app.meter().commit().await);
    let path = format!("/api/v1/workspaces/{}/usage/history?days=1", tenant.workspace);
    assert_eq!(tenant.key.get(&path).await.ok()["days"][0]["calls"], 1);
    assert!(first.await.unwrap());
}

#[both_engines]
async fn the_history_adds_up(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    tenant.key.get("/api/v1/mailboxes").await.ok();
    tenant.key.get("/api/v1/mailboxes/none").await.expect(404, "not_found");
    usage(&tenant).await;
    assert!(server.app.meter().commit().await);
    let path = format!("/api/v1/workspaces/{}/usage/history?days=3", tenant.workspace);
    let history = tenant.key.get(&path).await.ok();
    let days = history["days"].as_array().unwrap();
    assert_eq!(
        days.iter().map(|day| day["date"].as_str().unwrap()).collect::<Vec<_>>(),
        ["2026-07-12", "2026-07-13", "2026-07-14"]
    );
    assert_eq!(days[0]["calls"], 0);
    assert_eq!((&days[2]["calls"], &days[2]["errors"]), (&json!(4), &json!(1)));
    assert_eq!((&days[2]["credits"]["provision"], &days[2]["credits"]["read"]), (&json!(10), &json!(2)));
}
