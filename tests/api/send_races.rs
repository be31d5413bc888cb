//! Send policies under many calls at once: caps are exact, also on two nodes.

use model::sending::OutboundMode;
use operations::{Outbound, sending::worker};
use serde_json::json;
use testkit::{Answer, Engine, Hop, Server, ServerOptions, both_engines};

use super::{delivery::mail, mails::Inbox, send_policies::Desk};

/// Calls that are made at once.
const CALLS: usize = 200;
/// How many of them a cap has room for.
const CAP: usize = 10;

fn accepted(answers: &[Answer]) -> usize {
    let is_accepted = |answer: &&Answer| match answer.status {
        202 => true,
        429 => {
            answer.expect(429, "send_cap_exceeded");
            false
        }
        status => panic!("{status}: {}", answer.text()),
    };
    answers.iter().filter(is_accepted).count()
}

// rules: POLICY-7
#[both_engines]
async fn a_cap_is_exact_under_many_calls_at_once(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.set(json!({ "caps": { "per_hour": CAP } })).await.ok();
    let sends = (0..CALLS).map(|number| desk.send(format!("r{number}@remote.test")));
    let answers = futures_util::future::join_all(sends).await;
    assert_eq!(accepted(&answers), CAP);
    assert_eq!(desk.handed_over().await.len(), CAP);
}

// rules: POLICY-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_exact_on_two_nodes() {
    let hop = Hop::default();
    let options = |seed| ServerOptions {
        seed,
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(hop.clone()),
        ..ServerOptions::default()
    };
    let server = Server::with(Engine::Postgres, options(1)).await;
    let other = server.another_node(options(2)).await;
    let inbox = Inbox::new(&server).await;
    let policy = format!("/api/v1/workspaces/{}/send-policy", inbox.workspace);
    // The second mailbox sends from the second node, so that nothing but the cap serialises them.
    let second = inbox.another().await;
    inbox.key.put(&policy, json!({ "caps": { "per_hour": CAP } })).await.ok();
    let keys = [inbox.key.clone(), other.key(inbox.key.secret())];
    let sends = (0..CALLS).map(|number| {
        let key = keys[number % 2].with("prefer", "respond-async");
        let path = format!("{}/emails", [&inbox, &second][number % 2].path);
        async move { key.post(&path, mail(format!("r{number}@remote.test"))).await }
    });
    let answers = futures_util::future::join_all(sends).await;
    assert_eq!(accepted(&answers), CAP);
    worker::run_due(&server.app).await.unwrap();
    worker::run_due(&other.app).await.unwrap();
    let handed: usize = hop.handovers().iter().map(|one| one.recipients.len()).sum();
    assert_eq!(handed, CAP);
}

/// While a policy that forbids everything is set, calls race with it: after its answer nothing is accepted any more, on any
/// node.
// rules: POLICY-18
#[both_engines]
async fn nothing_is_accepted_after_the_answer_of_a_policy(engine: Engine) {
    let desk = Desk::new(engine).await;
    let racing =
        futures_util::future::join_all((0..40).map(|number| desk.send(format!("r{number}@remote.test"))));
    let (before, set) = tokio::join!(racing, desk.set(json!({ "recipients": { "mode": "list" } })));
    set.ok();
    let accepted = before.iter().filter(|answer| answer.status == 202).count();
    assert!(before.iter().all(|answer| answer.status == 202 || answer.status == 403));
    let after =
        futures_util::future::join_all((0..40).map(|number| desk.send(format!("s{number}@remote.test"))))
            .await;
    assert!(after.iter().all(|answer| answer.status == 403));
    assert_eq!(desk.handed_over().await.len(), accepted);
}

/// A program that does not know policies would let everything leave: none is set while one runs, and none starts afterwards.
// rules: POLICY-20
#[tokio::test]
async fn a_policy_waits_for_older_nodes_and_keeps_them_out() {
    let server = Server::start(Engine::Postgres).await;
    let inbox = Inbox::new(&server).await;
    let policy = format!("/api/v1/workspaces/{}/send-policy", inbox.workspace);
    let run = async |sql: &'static str| {
        server.app.db().system_write(async move |tx| tx.run(sql, &[]).await).await.unwrap();
    };
    run("INSERT INTO node (id, host, process, version, schema_version, started_at, sends, seen_at, clock_ahead, address,
           pool_size, pool_in_use, pool_wait, server_connections, sending, settings)
         VALUES ('old', 'h', 1, '0.0.1', 38, 0, 0, CAST(extract(epoch FROM now()) * 1000000 AS BIGINT), 0, '',
           0, 0, 0, 0, 0, '{}')")
    .await;
    let refused = inbox.key.put(&policy, json!({ "review": "all" })).await;
    refused.expect(503, "storage_unavailable");
    assert_eq!(refused.header("retry-after"), "60");
    assert!(refused.json()["fix"].as_str().unwrap().contains("older version"), "{}", refused.text());
    assert_eq!(inbox.key.get(&policy).await.ok()["review"], "none");
    run("UPDATE node SET seen_at = seen_at - 36000000 WHERE id = 'old'").await;
    inbox.key.put(&policy, json!({ "review": "all" })).await.ok();
    let since = "SELECT usable_since FROM migration WHERE version = 39";
    let since: Option<(i64,)> =
        server.app.db().system_read(async move |tx| tx.one(since, &[]).await).await.unwrap();
    assert_eq!(since, Some((39,)), "older programs refuse the store");
}
