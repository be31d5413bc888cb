//! Work that nodes share: ranges of workspaces whose stored mail is checked, and connections to a destination.

use std::{sync::Arc, time::Duration};

use model::{Plan, sending::OutboundMode};
use operations::{
    Outbound, nodes,
    sending::worker::{self, Dispatcher},
    storage_rounds,
};
use store::{
    SystemTx, faults,
    storage_rounds::{NextRange, WorkspaceRange},
};
use testkit::{Engine, Hop, Server, ServerOptions, both_engines};
use tokio::sync::Semaphore;

use super::{
    delivery::{mail, states},
    mails::Inbox,
};

const DAY: Duration = Duration::from_hours(24);

async fn run(server: &Server, sql: &'static str) {
    let done: store::Result<u64> =
        server.app.db().system_write(async move |tx: &mut SystemTx| tx.run(sql, &[]).await).await;
    done.unwrap();
}

async fn claim(server: &Server, node: &'static str) -> NextRange {
    let now = server.app.now();
    let next = async move |tx: &mut SystemTx| store::storage_rounds::claim_next(tx, node, now).await;
    server.app.db().system_write(next).await.unwrap()
}

async fn claimed(server: &Server, node: &'static str) -> WorkspaceRange {
    match claim(server, node).await {
        NextRange::Claimed(range) => range,
        other => panic!("{other:?}"),
    }
}

async fn finish(server: &Server, node: &'static str, range: WorkspaceRange) {
    let done = async move |tx: &mut SystemTx| store::storage_rounds::finish(tx, &range, node).await;
    server.app.db().system_write(done).await.unwrap();
}

async fn renew(server: &Server, node: &'static str, range: WorkspaceRange) -> bool {
    let now = server.app.now();
    let renewed = async move |tx: &mut SystemTx| store::storage_rounds::renew(tx, &range, node, now).await;
    server.app.db().system_write(renewed).await.unwrap()
}

/// 250 more workspaces, between those that exist and those that come.
async fn add_workspaces(server: &Server) {
    let numbers = if server.app.db().is_sole_node() {
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 250) SELECT n FROM numbers"
    } else {
        "SELECT n FROM generate_series(1, 250) AS numbers (n)"
    };
    let sql = format!(
        "INSERT INTO workspace (id, name, owner_address, timezone, plan, data_key, created_at, updated_at)
         SELECT 'ws_~' || (1000 + n), 'many', 'many@people.test', 'UTC', 'free', data_key, created_at, updated_at
         FROM ({numbers}) AS numbers, (SELECT data_key, created_at, updated_at FROM workspace LIMIT 1) AS one"
    );
    let added: store::Result<u64> =
        server.app.db().system_write(async move |tx: &mut SystemTx| tx.run(&sql, &[]).await).await;
    assert_eq!(added.unwrap(), 250);
}

#[both_engines]
async fn ranges_of_workspaces_are_claimed_once_and_by_another_node_when_theirs_is_gone(engine: Engine) {
    let server = Server::start(engine).await;
    server.tenant(Plan::Free).await;
    add_workspaces(&server).await;
    let one = claimed(&server, "one").await;
    let two = claimed(&server, "two").await;
    assert!(one.last.as_str() == two.checked_up_to && two.last > one.last, "{one:?} {two:?}");
    // A node that starts over goes on with what it had.
    assert_eq!(claimed(&server, "one").await, one);
    let three = claimed(&server, "three").await;
    assert_eq!(two.last.as_str(), three.checked_up_to);
    assert_eq!(claim(&server, "four").await, NextRange::Shared);
    // The second node dies after it has recorded how far it is.
    let half = WorkspaceRange { checked_up_to: "ws_~1150".to_owned(), ..two.clone() };
    assert!(renew(&server, "two", half.clone()).await);
    run(&server, "UPDATE storage_range SET expires_at = 0 WHERE node_id = 'two'").await;
    assert_eq!(claimed(&server, "four").await, half);
    assert!(!renew(&server, "two", two.clone()).await, "it is another node's by now");
    finish(&server, "two", two).await;
    for (node, range) in [("one", one), ("three", three)] {
        finish(&server, node, range).await;
    }
    assert_eq!(claim(&server, "one").await, NextRange::Shared, "the fourth node is still at work");
    finish(&server, "four", half).await;
    let NextRange::RoundEnded(until_next) = claim(&server, "one").await else { panic!("all is checked") };
    let until_next = Duration::from_micros(until_next.unsigned_abs());
    assert!(until_next <= DAY && until_next + Duration::from_hours(1) > DAY, "{until_next:?}");
    run(&server, "UPDATE storage_round SET started_at = started_at - 86400000000").await;
    assert_eq!(
        claimed(&server, "two").await.checked_up_to,
        "",
        "the next round begins with the first workspace"
    );
}

#[both_engines]
async fn a_round_goes_on_behind_a_workspace_that_cannot_be_read(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    server.receive(&inbox.address, "Subject: one\r\n\r\nHello\r\n".to_owned()).await;
    add_workspaces(&server).await;
    faults::fail_statement(&inbox.workspace, "FROM content", 1);
    let mut steps = 0;
    let until_next = loop {
        match storage_rounds::check_next(&server.app).await.unwrap() {
            None => steps += 1,
            Some(wait) => break wait,
        }
    };
    assert_eq!(steps, 3);
    assert!(until_next + Duration::from_hours(1) > DAY, "{until_next:?}");
    assert!(storage_rounds::check_next(&server.app).await.unwrap().is_some());
}

/// Two nodes that send through one hop, which keeps every message until it is let go.
async fn two_senders(hop: &Hop) -> (Server, Server) {
    let options = |seed| {
        let outbound = Outbound::new(OutboundMode::Direct);
        ServerOptions { seed, outbound, next_hop: Some(hop.clone()), ..ServerOptions::default() }
    };
    let one = Server::with(Engine::Postgres, options(1)).await;
    let two = one.another_node(options(2)).await;
    (one, two)
}

async fn until(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("it happens");
}

#[tokio::test]
async fn nodes_share_the_connections_to_a_destination() {
    let hop = Hop::default();
    let (one, two) = two_senders(&hop).await;
    let running = [&one, &two].map(|server| Dispatcher::new(&server.app));
    let announcing = [&one, &two].map(|server| tokio::spawn(nodes::announce(server.app.clone())));
    let inbox = Inbox::new(&one).await;
    let both = async || {
        let overview = nodes::overview(one.app.db(), one.app.now());
        overview.await.unwrap().nodes.len() == 2
    };
    until(both).await;
    announcing.iter().for_each(tokio::task::JoinHandle::abort);
    // Both count each other now, as after the next announcement.
    for server in [&one, &two] {
        nodes::announce_once(&server.app).await.unwrap();
    }
    let gate = Arc::new(Semaphore::new(0));
    hop.gated_by(gate.clone());
    let mut sent = Vec::new();
    for _ in 0..12 {
        let at_once = inbox.key.with("prefer", "respond-async");
        let answer = at_once.post(&format!("{}/emails", inbox.path), mail("a@remote.test")).await.ok();
        sent.push(answer["id"].as_str().unwrap().to_owned());
    }
    for server in [&one, &two] {
        worker::start_due(&server.app).await.unwrap();
    }
    until(async || hop.waiting() >= 2).await;
    // Each may begin what it has claimed; more do not come.
    for _ in 0..5 {
        for server in [&one, &two] {
            worker::start_due(&server.app).await.unwrap();
        }
        assert!(hop.waiting() <= 4, "{} at once", hop.waiting());
    }
    gate.add_permits(1000);
    until(async || {
        for server in [&one, &two] {
            worker::run_due(&server.app).await.unwrap();
        }
        let mut states_now = Vec::new();
        for id in &sent {
            states_now.push(states(&inbox, id).await.0);
        }
        states_now.iter().all(|state| state == "sent")
    })
    .await;
    drop(running);
}
