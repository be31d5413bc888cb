//! Messages that a node delivers as soon as they are submitted there, without asking the queue.
//!
//! The worker of these servers counts as running, but nobody calls it: what is delivered did not wait for it.

use std::{collections::BTreeSet, time::Duration};

use model::sending::OutboundMode;
use operations::{
    Outbound,
    ports::HandoverOutcome,
    sending::worker::{self, Dispatcher},
};
use serde_json::json;
use store::{
    SystemTx,
    faults::{self, Moment},
};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{
    delivery::{mail, server, states},
    mails::Inbox,
};

/// Queues a message and returns its id.
async fn queue(inbox: &Inbox, to: &str) -> String {
    let at_once = inbox.key.with("prefer", "respond-async");
    let sent = at_once.post(&format!("{}/emails", inbox.path), mail(to)).await.ok();
    sent["id"].as_str().unwrap().to_owned()
}

/// Waits until the task that delivers a message has recorded what became of it.
async fn recorded(inbox: &Inbox, id: &str) -> String {
    for _ in 0..3000 {
        let state = states(inbox, id).await.0;
        if state != "queued" {
            return state.as_str().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it stays in the queue");
}

/// Waits until a message was tried.
async fn attempted(inbox: &Inbox, id: &str) {
    for _ in 0..3000 {
        let delivery = inbox.get(&format!("emails/{id}/delivery")).await;
        if delivery["recipients"][0]["attempts"] != 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody tries it");
}

/// Delivers a first message as usual, so that its destination counts as reached.
async fn reach(server: &Server, inbox: &Inbox, to: &str) {
    let id = queue(inbox, to).await;
    assert_eq!(states(inbox, &id).await.0, "queued");
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(states(inbox, &id).await.0, "sent");
}

#[both_engines]
async fn a_message_is_delivered_without_a_look_at_the_queue(engine: Engine) {
    for (mode, destination) in [(OutboundMode::Relay, "(relay)"), (OutboundMode::Direct, "remote.test")] {
        let (server, hop) = server(engine, mode).await;
        let inbox = Inbox::new(&server).await;
        let running = Dispatcher::new(&server.app);
        reach(&server, &inbox, "a@remote.test").await;
        let id = queue(&inbox, "b@remote.test").await;
        assert_eq!(recorded(&inbox, &id).await, "sent");
        // One that is put off stays in the queue like any other.
        hop.answer("c@remote.test", HandoverOutcome::Deferred("451 4.3.0 Not now".to_owned()));
        let deferred = queue(&inbox, "c@remote.test").await;
        attempted(&inbox, &deferred).await;
        assert_eq!(states(&inbox, &deferred).await.0, "queued");
        server.clock.advance(3600);
        worker::run_due(&server.app).await.unwrap();
        assert_eq!(states(&inbox, &deferred).await.0, "sent");
        // Without a worker it waits for one.
        drop(running);
        let id = queue(&inbox, "d@remote.test").await;
        worker::run_due(&server.app).await.unwrap();
        assert_eq!(states(&inbox, &id).await.0, "sent");
        let handed = hop.handovers();
        assert_eq!(handed.len(), 5, "{destination}");
        assert!(handed.iter().all(|one| one.domain == destination));
    }
}

/// It takes one transaction less: the message and its attempt.
#[tokio::test]
async fn a_message_that_is_delivered_at_once_takes_two_commits() {
    let (server, _hop) = server(Engine::Postgres, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let _running = Dispatcher::new(&server.app);
    // Statements are prepared, and credits are charged ahead.
    reach(&server, &inbox, "a@remote.test").await;
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        let before = server.app.db().statement_counts().unwrap();
        let id = queue(&inbox, "a@remote.test").await;
        assert_eq!(recorded(&inbox, &id).await, "sent");
        let cost = server.app.db().statement_counts().unwrap().since(&before);
        // Now and then an advance of credits has run out.
        fewest = fewest.min(cost.commits);
    }
    assert_eq!(fewest, 2);
}

/// What is not stored is not delivered, and its claim is forgotten.
#[both_engines]
async fn a_message_that_is_not_stored_is_not_delivered(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let _running = Dispatcher::new(&server.app);
    reach(&server, &inbox, "a@remote.test").await;
    faults::fail_statement(&inbox.workspace, "INSERT INTO delivery", 1);
    let refused =
        inbox.key.meets_faults().post(&format!("{}/emails", inbox.path), mail("b@remote.test")).await;
    assert!(refused.status >= 500, "{}", refused.text());
    faults::stop_failing(&inbox.workspace);
    let id = queue(&inbox, "c@remote.test").await;
    assert_eq!(recorded(&inbox, &id).await, "sent");
    let told: Vec<String> = hop.handovers().into_iter().flat_map(|one| one.recipients).collect();
    assert_eq!(told, ["a@remote.test", "c@remote.test"]);
}

/// A repeated call is answered from the first, and its message is sent once.
#[both_engines]
async fn a_repeated_call_sends_once(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let _running = Dispatcher::new(&server.app);
    reach(&server, &inbox, "a@remote.test").await;
    let key = inbox.key.with("idempotency-key", "one").with("prefer", "respond-async");
    let path = format!("{}/emails", inbox.path);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (key, path) = (key.clone(), path.clone());
        calls.spawn(async move { key.post(&path, mail("b@remote.test")).await });
    }
    let answers = calls.join_all().await;
    let stored = answers.iter().filter(|answer| answer.status < 300);
    let ids: BTreeSet<String> = stored.map(|answer| answer.ok()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(recorded(&inbox, ids.first().unwrap()).await, "sent");
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 2);
}

/// While a destination is paused, new messages wait like the others.
#[both_engines]
async fn nothing_is_hurried_to_a_destination_that_cannot_be_reached(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let _running = Dispatcher::new(&server.app);
    reach(&server, &inbox, "a@remote.test").await;
    hop.answer("b@remote.test", HandoverOutcome::Unreachable("connection refused".to_owned()));
    let first = queue(&inbox, "b@remote.test").await;
    let is_paused = async |tx: &mut SystemTx| -> store::Result<Option<(i64,)>> {
        tx.one("SELECT failures FROM destination", &[]).await
    };
    while server.app.db().system_read(is_paused).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = queue(&inbox, "c@remote.test").await;
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 2, "the pause lasts");
    assert_eq!(states(&inbox, &second).await.0, "queued");
    server.clock.advance(3600);
    worker::run_due(&server.app).await.unwrap();
    for id in [first, second] {
        assert_eq!(states(&inbox, &id).await.0, "sent");
    }
}

/// The node dies when the message is stored and the caller not answered: another node sends it, once, when the claim has
/// expired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_node_that_died_is_sent_by_another() {
    let (server, hop) = server(Engine::Postgres, OutboundMode::Relay).await;
    let options = ServerOptions {
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(hop.clone()),
        seed: 2,
        ..ServerOptions::default()
    };
    let dying = server.another_node(options).await;
    let inbox = Inbox::new(&server).await;
    let there = Inbox {
        key: dying.key(inbox.key.secret()),
        workspace: inbox.workspace.clone(),
        id: inbox.id.clone(),
        path: inbox.path.clone(),
        address: inbox.address.clone(),
    };
    let _running = Dispatcher::new(&dying.app);
    reach(&dying, &there, "a@remote.test").await;
    dying.app.db().crash_at(1, Moment::AfterCommit);
    let at_once = there.key.with("prefer", "respond-async");
    let unanswered = at_once.post(&format!("{}/emails", there.path), mail("b@remote.test")).await;
    assert!(unanswered.status >= 500 && dying.app.db().is_dead());
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 1, "the dead node has it");
    server.clock.advance(61);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers()[1].recipients, ["b@remote.test"]);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 2);
    let sent = inbox.get("emails?folder=sent").await;
    let statuses: Vec<_> =
        sent["emails"].as_array().unwrap().iter().map(|one| &one["delivery_status"]).collect();
    assert_eq!(statuses, [&json!("sent"), &json!("sent")]);
}
