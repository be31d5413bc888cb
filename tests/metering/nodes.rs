//! Two nodes on one PostgreSQL.

use model::{Limit, Plan};
use serde_json::json;
use testkit::{Engine, Server, ServerOptions};

fn options(seed: u64) -> ServerOptions {
    let mut options = ServerOptions { seed, ..ServerOptions::default() };
    options.plans.free.mailboxes = Limit::UNLIMITED;
    options.plans.free.credits_per_period = Limit::of(300);
    options.plans.free.rpm = Limit::of(60);
    options.plans.developer.credits_per_period = Limit::of(300);
    options.plans.developer.mailboxes = Limit::UNLIMITED;
    options
}

/// Credits: whatever the nodes hold, together they spend exactly the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_the_credits_exactly() {
    let one = Server::with(Engine::Postgres, options(1)).await;
    let two = one.another_node(options(2)).await;
    for round in 0..10 {
        let tenant = one.tenant(Plan::Developer).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..120 {
            let node = if (number + round) % 2 == 0 { &one } else { &two };
            let key = node.key(tenant.key.secret());
            calls.spawn(async move {
                if number % 4 == 0 {
                    (10, key.post("/api/v1/mailboxes", json!({ "name": "N" })).await.status)
                } else {
                    (1, key.get("/api/v1/mailboxes").await.status)
                }
            });
        }
        let answers = calls.join_all().await;
        let spent: i64 = answers.iter().filter(|(_, status)| *status < 300).map(|(price, _)| price).sum();
        assert!(spent <= 300, "overdrawn: {spent}");
        // What is left must be usable to the last credit, from either node, whatever the other still holds.
        let mut left = 300 - spent;
        while left > 0 {
            let node = if left % 2 == 0 { &one } else { &two };
            node.key(tenant.key.secret()).get("/api/v1/mailboxes").await.ok();
            left -= 1;
        }
        one.key(tenant.key.secret()).get("/api/v1/mailboxes").await.expect(402, "credits_exhausted");
        two.key(tenant.key.secret()).get("/api/v1/mailboxes").await.expect(402, "credits_exhausted");
        let path = format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace);
        assert_eq!(one.key(tenant.key.secret()).get(&path).await.ok()["used"], 300);
    }
}

/// Requests: first all on one node, then on the other; the second gets just what the first left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_the_window_exactly() {
    let one = Server::with(Engine::Postgres, options(1)).await;
    let two = one.another_node(options(2)).await;
    for first in [1, 17, 50, 59] {
        let tenant = one.tenant(Plan::Free).await;
        let (near, far) = (one.key(tenant.key.secret()), two.key(tenant.key.secret()));
        for _ in 0..first {
            near.get("/api/v1/rag/credentials").await.ok();
        }
        let mut passed = 0;
        while far.get("/api/v1/rag/credentials").await.status == 200 {
            passed += 1;
        }
        assert_eq!(passed, 60 - first);
        near.get("/api/v1/rag/credentials").await.expect(429, "rate_limited");
    }
}

/// A node that was stopped for a while tells late what it spent: the others' period goes on.
/// rules: METER-8, METER-16
#[tokio::test]
async fn late_figures_begin_no_new_period() {
    for (credits, rpm, rest, refusal) in [(1000, 20, 660, 429), (20, 1000, 70 * 86_400, 402)] {
        let options = |seed| {
            let mut options = ServerOptions { background: false, ..options(seed) };
            options.plans.free.credits_per_period = Limit::of(credits);
            options.plans.free.rpm = Limit::of(rpm);
            options
        };
        let one = Server::with(Engine::Postgres, options(1)).await;
        let two = one.another_node(options(2)).await;
        let tenant = one.tenant(Plan::Free).await;
        let near = two.key(tenant.key.secret());
        tenant.key.get("/api/v1/mailboxes").await.ok();
        one.clock.advance(rest);
        for _ in 0..5 {
            near.get("/api/v1/mailboxes").await.ok();
        }
        assert!(one.app.meter().commit().await);
        for _ in 0..15 {
            near.get("/api/v1/mailboxes").await.ok();
        }
        assert_eq!(near.get("/api/v1/mailboxes").await.status, refusal);
    }
}
