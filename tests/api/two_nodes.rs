//! Two nodes, of which one dies between a commit and its wake-up, or has a worker that panics while it has the lease: the
//! other one goes on within seconds. Further faults of two nodes, with real programs, are in `tests/process/two_nodes.rs`
//! and `tests/process/lost_database.rs`.

use std::time::{Duration, Instant};

use model::{Plan, sending::OutboundMode};
use operations::Outbound;
use serde_json::json;
use store::{SystemTx, faults::Moment};
use testkit::{Engine, Hop, Receiver, Server, ServerOptions};

use super::{
    delivery::mail,
    mails::{Inbox, plain},
    nodes::list as list_nodes,
    webhooks::all,
    workers::{Running, eventually, panic_in},
};

/// How soon the other node must go on: five seconds, and as much again for a machine that does other things as well.
const MAX_DELAY: Duration = Duration::from_secs(10);

fn options(seed: u64, hop: &Hop) -> ServerOptions {
    ServerOptions {
        seed,
        webhooks_allow_private: true,
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(hop.clone()),
        ..ServerOptions::default()
    }
}

/// Streams and webhooks tell of a message whose node died before it could tell anybody.
/// rules: HOOK-7, EVENT-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_webhooks_tell_what_a_dead_node_has_stored() {
    let hop = Hop::default();
    let server = Server::with(Engine::Postgres, options(1, &hop)).await;
    let dying = server.another_node(options(2, &hop)).await;
    let _running = Running::start(&server);
    let (tenant, receiver) = (server.tenant(Plan::Enterprise).await, Receiver::start().await);
    let hook = json!({ "url": receiver.url(), "event_types": ["message.received"] });
    tenant.key.post(&all(&tenant), hook).await.ok();
    let inbox = Inbox::of(&tenant).await;
    // The worker knows the webhook, and waits for the next event.
    server.receive(&inbox.address, plain("Before", "x")).await;
    receiver.wait_for(1).await;
    let events = format!("/api/v1/workspaces/{}/events", inbox.workspace);
    let last = inbox.key.get(&format!("{events}?limit=500")).await.ok()["next_after"].clone();
    let mut stream = inbox.key.stream(&format!("{events}/stream?after={last}")).await;
    dying.app.db().crash_at(1, Moment::AfterCommit);
    let unanswered = dying.try_receive(None, &inbox.address, plain("Last words", "x")).await;
    assert!(unanswered.is_err() && dying.app.db().is_dead());
    let died = Instant::now();
    let told = tokio::time::timeout(MAX_DELAY, stream.next()).await.expect("the stream goes on").unwrap();
    assert_eq!(told.1["data"]["subject"], "Last words");
    receiver.wait_for(2).await;
    assert!(died.elapsed() < MAX_DELAY, "{:?}", died.elapsed());
}

/// A message that a node has queued before it died leaves from the other one, although nothing woke its worker.
/// rules: SEND-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_goes_on_with_what_a_dead_node_has_stored() {
    let hop = Hop::default();
    let server = Server::with(Engine::Postgres, options(1, &hop)).await;
    // Nothing but the message is committed there.
    let dying = server.another_node(ServerOptions { background: false, ..options(2, &hop) }).await;
    let _running = Running::start(&server);
    let inbox = Inbox::new(&server).await;
    inbox.post("emails", mail("a@remote.test")).await.ok();
    eventually("the worker is at work", async || hop.handovers().len() == 1).await;
    let there = dying.key(inbox.key.secret()).with("prefer", "respond-async");
    let path = format!("{}/emails", inbox.path);
    // It has credits for the next call then.
    there.get(&path).await.ok();
    there.get(&path).await.ok();
    dying.app.db().crash_at(1, Moment::AfterCommit);
    let unanswered = there.post(&path, mail("b@remote.test")).await;
    assert!(unanswered.status >= 500 && dying.app.db().is_dead(), "{}", unanswered.text());
    let died = Instant::now();
    eventually("the other node sends it", async || hop.handovers().len() == 2).await;
    assert!(died.elapsed() < MAX_DELAY, "{:?}", died.elapsed());
    assert_eq!(hop.handovers()[1].recipients, ["b@remote.test"]);
}

/// A worker that panics while its node has the lease for all: it is seen and restarted, and the work goes on.
/// rules: CLI-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_for_all_goes_on_after_a_panic_on_the_node_that_has_the_lease() {
    let hop = Hop::default();
    let one = Server::with(Engine::Postgres, options(1, &hop)).await;
    let two = one.another_node(options(2, &hop)).await;
    let _of_one = Running::start(&one);
    let has_lease = async |server: &Server| {
        let listed = list_nodes(server).await;
        listed.iter().filter(|node| node.leases.iter().any(|lease| lease == "expiry")).count() == 1
    };
    eventually("the first node has the lease", async || has_lease(&one).await).await;
    let _of_two = Running::start(&two);
    let tenant = one.tenant(Plan::Free).await;
    for _ in 0..2 {
        panic_in(&one, "expiry").await;
        let session = one.log_in(&tenant).await;
        let expire = async |tx: &mut SystemTx| tx.run("UPDATE session SET expires_at = 0", &[]).await;
        let expired: store::Result<u64> = one.app.db().system_write(expire).await;
        assert_eq!(expired.unwrap(), 1, "{}", session.secret());
        let left = async |tx: &mut SystemTx| tx.one::<(i64,)>("SELECT count(*) FROM session", &[]).await;
        eventually("expired sessions are deleted", async || {
            let left: store::Result<Option<(i64,)>> = one.app.db().system_read(left).await;
            left.unwrap() == Some((0,))
        })
        .await;
        assert!(has_lease(&two).await, "one of them has it");
    }
}
