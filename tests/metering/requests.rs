//! The request limit.

use model::{Limit, Plan};
use testkit::{Engine, Server, ServerOptions, both_engines};

fn options(rpm: u64) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.plans.free.rpm = Limit::of(rpm);
    options
}

/// rules: METER-8
#[both_engines]
async fn a_window_lets_exactly_its_number_through(engine: Engine) {
    let server = Server::with(engine, options(60)).await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.set("2026-07-14T09:00:40Z");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let key = tenant.key.clone();
        calls.spawn(async move { key.get("/api/v1/rag/credentials").await });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 60);
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    refused.expect(429, "rate_limited");
    assert_eq!(refused.json()["error"], "Too many requests");
    assert_eq!((refused.header("retry-after"), refused.header("ratelimit-reset")), ("20", "20"));
    assert_eq!((refused.header("ratelimit-limit"), refused.header("ratelimit-remaining")), ("60", "0"));
    server.clock.set("2026-07-14T09:01:00Z");
    let answer = tenant.key.get("/api/v1/rag/credentials").await;
    assert_eq!(
        (answer.status, answer.header("ratelimit-remaining"), answer.header("ratelimit-reset")),
        (200, "59", "60")
    );
}

#[both_engines]
async fn failed_calls_count(engine: Engine) {
    let server = Server::with(engine, options(3)).await;
    let tenant = server.tenant(Plan::Free).await;
    tenant.key.get("/api/v1/mailboxes/none").await.expect(404, "not_found");
    tenant.key.get("/api/v1/workspaces/ws_other").await.expect(403, "workspace_scope_denied");
    let last = tenant.key.get("/api/v1/mailboxes").await;
    assert_eq!((last.status, last.header("ratelimit-remaining")), (200, "0"));
    tenant.key.get("/api/v1/mailboxes").await.expect(429, "rate_limited");
    // 403 comes before 429 in the order of refusals.
    tenant.key.get("/api/v1/workspaces/ws_other").await.expect(403, "workspace_scope_denied");
}

/// A clock that is set back must not leave a window shut.
/// rules: METER-15
#[both_engines]
async fn a_clock_that_jumps_does_not_block(engine: Engine) {
    let server = Server::with(engine, options(2)).await;
    let tenant = server.tenant(Plan::Free).await;
    for _ in 0..2 {
        tenant.key.get("/api/v1/mailboxes").await.ok();
    }
    tenant.key.get("/api/v1/mailboxes").await.expect(429, "rate_limited");
    server.clock.advance(-3600);
    tenant.key.get("/api/v1/mailboxes").await.ok();
    server.clock.advance(2 * 3600);
    tenant.key.get("/api/v1/mailboxes").await.ok();
}
