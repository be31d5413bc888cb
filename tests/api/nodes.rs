//! Several nodes on one PostgreSQL: each is seen by the others, and work for all is done by one of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use model::sending::OutboundMode;
use operations::{Outbound, nodes};
use serde_json::json;
use store::{SystemTx, nodes::LeaseHolder};
use testkit::{Engine, Hop, Server, ServerOptions, both_engines};
use tokio::task::JoinHandle;

use super::{mails::Inbox, schedules::later};

/// The nodes as one of them sees them.
pub async fn list(server: &Server) -> Vec<nodes::Node> {
    nodes::overview(server.app.db(), server.app.now()).await.unwrap().nodes
}

async fn two_nodes() -> (Server, Server) {
    let server = Server::start(Engine::Postgres).await;
    let other = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    (server, other)
}

/// Work that counts how many do it now.
fn work(server: &Server, workers: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>) -> JoinHandle<()> {
    struct Working(Arc<AtomicUsize>);
    impl Drop for Working {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (workers, most) = (workers.clone(), most.clone());
    tokio::spawn(nodes::run_with_lease(server.app.clone(), "test", move |_| {
        let (workers, most) = (workers.clone(), most.clone());
        async move {
            most.fetch_max(workers.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _working = Working(workers);
            std::future::pending::<()>().await;
        }
    }))
}

async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("it happens");
}

async fn run(server: &Server, sql: &'static str) {
    let done: store::Result<u64> =
        server.app.db().system_write(async move |tx: &mut SystemTx| tx.run(sql, &[]).await).await;
    done.unwrap();
}

#[tokio::test]
async fn one_of_two_nodes_does_the_work_and_the_other_takes_over() {
    let (one, two) = two_nodes().await;
    let (first, second, most) = (Arc::default(), Arc::default(), Arc::default());
    let of_one = work(&one, &first, &most);
    until(|| first.load(Ordering::SeqCst) == 1).await;
    let of_two = work(&two, &second, &most);
    // It has asked, and been told for how long.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(second.load(Ordering::SeqCst), 0);
    // The first node dies, and its lease expires.
    of_one.abort();
    until(|| first.load(Ordering::SeqCst) == 0).await;
    run(&one, "UPDATE lease SET expires_at = 0").await;
    until(|| second.load(Ordering::SeqCst) == 1).await;
    // Another node believed it dead and has the lease: it stops.
    run(&one, "UPDATE lease SET node_id = 'another', expires_at = 9000000000000000").await;
    until(|| second.load(Ordering::SeqCst) == 0).await;
    of_two.abort();
}

#[tokio::test]
async fn a_lease_is_claimed_by_one_of_many_that_ask_at_once() {
    let (one, _two) = two_nodes().await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..16 {
        let db = one.app.db().clone();
        asking.spawn(async move {
            let node = format!("node-{number}");
            let claimed: store::Result<LeaseHolder> =
                db.system_write(async move |tx| store::nodes::claim(tx, "race", &node, 20).await).await;
            claimed.unwrap()
        });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|answer| **answer == LeaseHolder::Own).count(), 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_node_is_named() {
    let (one, two) = two_nodes().await;
    let announcing: Vec<_> =
        [&one, &two].iter().map(|server| tokio::spawn(nodes::announce(server.app.clone()))).collect();
    let both = async {
        while list(&one).await.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), both).await.expect("both say that they are there");
    announcing.iter().for_each(JoinHandle::abort);
    run(&one, "UPDATE node SET clock_ahead = 0").await;
    let faults =
        async || -> Vec<String> { list(&one).await.into_iter().flat_map(|node| node.faults).collect() };
    assert_eq!(faults().await, Vec::<String>::new());
    run(&one, "UPDATE node SET clock_ahead = 300000000 WHERE id = (SELECT min(id) FROM node)").await;
    run(&one, "UPDATE node SET clock_ahead = -90000000 WHERE id = (SELECT max(id) FROM node)").await;
    let mut named = faults().await;
    named.sort();
    assert!(named[0].contains("300 s ahead of") && named[1].contains("90 s behind"), "{named:?}");
    run(
        &one,
        "UPDATE node SET clock_ahead = 0, seen_at = seen_at - 60000000, schema_version = 1
               WHERE id = (SELECT min(id) FROM node)",
    )
    .await;
    run(&one, "UPDATE node SET clock_ahead = 0").await;
    let named = faults().await;
    assert!(named.len() == 2 && named[0].contains("not heard of for 6"), "{named:?}");
    assert!(named[1].contains("is older than that of another node"), "{named:?}");
    // It is gone when it says so.
    nodes::withdraw(&two.app).await;
    assert_eq!(list(&one).await.len(), 1);
}

/// For how long the oldest work of each queue is due, and for how long no node has been at it.
async fn lag(server: &Server) -> BTreeMap<&'static str, (u64, u64)> {
    let overview = nodes::overview(server.app.db(), server.app.now()).await.unwrap();
    assert_eq!(overview.faults, [""; 0], "without a node that runs nothing is overdue");
    overview.lag.iter().map(|lag| (lag.queue, (lag.overdue_seconds, lag.unattended_seconds))).collect()
}

#[both_engines]
async fn work_that_is_due_and_not_done_is_seen(engine: Engine) {
    let options = ServerOptions {
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(Hop::default()),
        webhooks_allow_private: true,
        ..ServerOptions::default()
    };
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    let queues = ["outbound", "schedules", "search", "triage", "webhooks"];
    assert_eq!(lag(&server).await, queues.map(|queue| (queue, (0, 0))).into());
    inbox.post("scheduled-sends", later(&inbox.address, "2026-07-14T10:00:00Z")).await.ok();
    server.clock.set("2026-07-14T10:00:00Z");
    let hook = json!({ "url": "http://127.0.0.1:9/", "event_types": ["message.received"] });
    inbox.key.post(&format!("/api/v1/workspaces/{}/webhooks", inbox.workspace), hook).await.ok();
    server.receive(&inbox.address, "From: a@remote.test\r\nSubject: Hello\r\n\r\nHello\r\n").await;
    let message = json!({ "to": "b@remote.test", "subject": "Now", "text": "Hello" });
    inbox.post("emails", message).await.ok();
    server.clock.advance(420);
    let found = lag(&server).await;
    for queue in ["outbound", "schedules", "webhooks"] {
        assert_eq!(found[queue], (420, 420), "{queue}: {found:?}");
    }
    // SQLite enters texts into its index as soon as they are stored.
    assert_eq!(found["search"].0, if engine == Engine::Postgres { 420 } else { 0 });
    // A node that is at it has merely not come to the rest.
    run(&server, "UPDATE webhook SET claimed_until = 9000000000000000").await;
    assert_eq!(lag(&server).await["webhooks"], (420, 0));
    if engine == Engine::Postgres {
        run(&server, "UPDATE webhook SET claimed_until = 0").await;
        nodes::announce_once(&server.app).await.unwrap();
        run(&server, "UPDATE node SET clock_ahead = 0, sends = 1").await;
        let overview = nodes::overview(server.app.db(), server.app.now()).await.unwrap();
        let named = ["messages to be delivered have", "scheduled messages have", "webhook deliveries have"];
        for (fault, named) in overview.faults.iter().zip(named) {
            assert!(
                fault.starts_with(&format!("{named} been due for 420 s and no node takes them")),
                "{fault}"
            );
        }
        assert_eq!(overview.faults.len(), named.len(), "{:?}", overview.faults);
    }
}

#[tokio::test]
async fn nodes_with_other_settings_are_named() {
    let server = Server::start(Engine::Postgres).await;
    let mut options = ServerOptions { seed: 2, ..ServerOptions::default() };
    options.plans.free.mailboxes = model::Limit::of(77);
    let other = server.another_node(options).await;
    for node in [&server, &other] {
        nodes::announce_once(&node.app).await.unwrap();
    }
    run(&server, "UPDATE node SET clock_ahead = 0").await;
    let overview = nodes::overview(server.app.db(), server.app.now()).await.unwrap();
    let faults: Vec<String> = overview.all_faults().collect();
    assert!(faults.len() == 1 && faults[0].contains("its setting plans differs"), "{faults:?}");
    // Nobody learns a setting from the table.
    let stored =
        server.app.db().system_read(async |tx| tx.all::<(String,)>("SELECT settings FROM node", &[]).await);
    for (settings,) in stored.await.unwrap() {
        let digests: BTreeMap<String, String> = serde_json::from_str(&settings).unwrap();
        assert!(digests.values().all(|digest| digest.len() == 16), "{settings}");
    }
}
