//! What a wallet owns, and what others see of it.

use axum::http::Method;
use model::{Limit, Plan};
use serde_json::json;
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{BASE, inside, mailbox, payments};

// rules: PAY-7
#[both_engines]
async fn a_foreign_mailbox_does_not_exist(engine: Engine) {
    let server = Server::start(engine).await;
    let (anna, bert) = (server.wallet("anna"), server.wallet("bert"));
    let own = mailbox(&anna, "A").await;
    let tenant = server.tenant(Plan::Developer).await;
    let keyed = tenant.key.post("/api/v1/mailboxes", json!({ "name": "K" })).await.ok();
    let id = server.receive(own["email"].as_str().unwrap(), "Subject: S\r\n\r\nT\r\n").await;
    let stranger = server.wallet("carl");
    mailbox(&bert, "B").await;
    // One wallet has a workspace of its own, another has none yet.
    for other in [&bert, &stranger] {
        for mailbox in [&own, &keyed] {
            for rest in [
                "",
                "/emails",
                "/search?query=a",
                "/folders",
                "/custom-labels",
                "/threads/t",
                "/attachments/a",
            ] {
                let answer = other.get(&inside(mailbox, rest)).await;
                answer.expect(404, "not_found");
                assert_eq!(answer.json()["error"], "Mailbox not found", "{rest}");
            }
            other.get(&inside(mailbox, &format!("/emails/{id}"))).await.expect(404, "not_found");
            let mail = json!({ "to": own["email"], "subject": "S", "text": "T" });
            other.post(&inside(mailbox, "/emails"), mail).await.expect(404, "not_found");
            other.post(&inside(mailbox, "/drafts"), json!({ "body": "T" })).await.expect(404, "not_found");
            let reply = inside(mailbox, &format!("/emails/{id}/reply"));
            other.post(&reply, json!({ "text": "T" })).await.expect(404, "not_found");
        }
    }
    assert_eq!(payments(&server).await.len(), 2, "looking costs nothing");
    anna.get(&inside(&own, &format!("/emails/{id}"))).await.ok();
    tenant
        .key
        .get(&format!("/api/v1/mailboxes/{}", own["id"].as_str().unwrap()))
        .await
        .expect(404, "not_found");
}

// rules: PAY-7
#[both_engines]
async fn a_wallet_has_a_workspace_of_its_own_with_so_many_mailboxes(engine: Engine) {
    let mut options = ServerOptions::default();
    assert_eq!(options.payments.mailboxes, Limit::of(50));
    options.payments.mailboxes = Limit::of(3);
    let server = Server::with(engine, options).await;
    let payer = server.wallet("anna");
    let mut workspaces = Vec::new();
    for _ in 0..3 {
        workspaces.push(mailbox(&payer, "A").await["workspace_id"].clone());
    }
    assert!(workspaces.iter().all(|workspace| *workspace == workspaces[0]));
    let path = format!("{BASE}/mailboxes");
    payer.post(&path, json!({ "name": "B" })).await.expect(403, "quota_exceeded");
    assert_eq!(payments(&server).await.len(), 3);
    let other = mailbox(&server.wallet("bert"), "B").await["workspace_id"].clone();
    assert_ne!(other, workspaces[0]);
    let listed = operations::admin::list_workspaces(&server.app, "".into(), 10).await.unwrap();
    assert_eq!(listed[0].owner_address, payer.address().to_lowercase());
}

// rules: PAY-7
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_that_begins_twice_at_once_has_one_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let node = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..8 {
        let payer = if number % 2 == 0 { server.wallet("anna") } else { node.wallet("anna") };
        calls.spawn(async move {
            // Wallets of the same name count their nonces from the same number.
            for _ in 0..number {
                payer.authorize(&operations::payments::PaymentSettings::default().terms);
            }
            let path = format!("{BASE}/mailboxes");
            payer.call(testkit::ProofProtocol::X402, Method::POST, &path, Some(json!({ "name": "A" }))).await
        });
    }
    let made: Vec<_> = calls.join_all().await.into_iter().map(|answer| answer.ok()).collect();
    assert!(made.iter().all(|one| one["workspace_id"] == made[0]["workspace_id"]));
    assert_eq!(super::count_workspaces(&server).await, 1);
}

// rules: PAY-21
#[tokio::test]
async fn a_wallet_makes_so_many_calls_in_a_minute() {
    let mut options = ServerOptions::default();
    options.payments.wallet_rpm = 2;
    let server = Server::with(testkit::Engine::Sqlite, options).await;
    let payer = server.wallet("anna");
    payer.get("/api").await.ok();
    payer.get("/api").await.ok();
    payer.get("/api").await.expect(429, "rate_limited");
    server.wallet("bert").get("/api").await.ok();
    server.clock.advance(60);
    payer.get("/api").await.ok();
}
