//! Workers that panic while they are at work, and items that make code panic: everything else goes on.
//!
//! The clock stands still in these tests, so no claim ever expires: what goes on was released.

use std::{sync::Arc, time::Duration};

use model::{Plan, sending::OutboundMode};
use operations::{sending::worker, workers};
use serde_json::{Value, json};
use store::faults;
use testkit::{Engine, Receiver, Reply, ScriptedModel, Server, ServerOptions, both_engines};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::{
    delivery::{mail, server, states},
    knowledge::{add, path},
    mails::{Inbox, plain},
    memory_faults::Letters,
    schedules::later,
    triage,
    webhooks::all,
};

/// Workers that end with the test.
pub(super) struct Running(Vec<JoinHandle<()>>);

impl Running {
    pub(super) fn start(server: &Server) -> Self {
        Self(workers::start(&server.app, true))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Waits for a condition; a minute is for machines that are very busy.
pub(super) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_mins(1), async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

/// What `/readyz` tells of a worker.
async fn worker(server: &Server, name: &str) -> Value {
    let readiness = server.anonymous().get("/readyz").await.ok();
    let all = readiness["workers"].as_array().unwrap().clone();
    all.into_iter().find(|worker| worker["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Makes a worker panic, and waits until it runs again.
pub(super) async fn panic_in(server: &Server, name: &str) {
    let before = worker(server, name).await["restarts"].as_u64().unwrap();
    server.app.supervisor().inject_panics(name, 1);
    eventually("it is restarted", async || {
        let worker = worker(server, name).await;
        worker["restarts"] == before + 1 && worker["state"] == "running"
    })
    .await;
}

// rules: CLI-16, CLI-18
#[both_engines]
async fn mail_goes_out_although_the_worker_of_the_queue_panicked(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let gate = Arc::new(Semaphore::new(0));
    hop.gated_by(gate.clone());
    let running = Running::start(&server);
    let inbox = Inbox::new(&server).await;
    // More than there are tasks: some are claimed by the worker and with no task yet.
    let addresses: Vec<String> = (0..20).map(|number| format!("a{number}@remote.test")).collect();
    let post = |address: &String| inbox.post("emails", mail(address.clone()));
    let sent = futures_util::future::join_all(addresses.iter().map(post)).await;
    let ids: Vec<String> = sent.into_iter().map(|one| one.ok()["id"].as_str().unwrap().to_owned()).collect();
    panic_in(&server, "queue").await;
    gate.add_permits(addresses.len());
    for id in &ids {
        eventually("all are sent", async || states(&inbox, id).await.0 == "sent").await;
    }
    let mut handed: Vec<String> = hop.handovers().into_iter().flat_map(|one| one.recipients).collect();
    handed.sort_unstable();
    let mut wanted = addresses;
    wanted.sort_unstable();
    assert_eq!(handed, wanted, "each once");
    drop(running);
}

// rules: CLI-18
#[both_engines]
async fn a_message_that_makes_code_panic_is_deferred_and_stops_nobody(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    hop.panic_over("always@remote.test", u32::MAX);
    hop.panic_over("once@remote.test", 1);
    let mut ids = Vec::new();
    for address in ["always@remote.test", "once@remote.test", "never@remote.test"] {
        let sent = inbox.post("emails", mail(address)).await.ok();
        ids.push(sent["id"].as_str().unwrap().to_owned());
    }
    let state = async |index: usize| states(&inbox, &ids[index]).await.0;
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(
        (state(0).await, state(1).await, state(2).await),
        (json!("queued"), json!("queued"), json!("sent"))
    );
    // A moment later both are tried once more.
    server.clock.advance(2);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!((state(0).await, state(1).await), (json!("queued"), json!("sent")));
    // From then on it has the pauses of any message that is deferred.
    let recipient = async || inbox.get(&format!("emails/{}/delivery", ids[0])).await["recipients"][0].clone();
    let deferred = recipient().await;
    assert!(deferred.to_string().contains("This server failed to handle the message"), "{deferred}");
    server.clock.advance(5);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(recipient().await, deferred, "not tried yet");
    server.clock.advance(3 * 86_400);
    worker::run_due(&server.app).await.unwrap();
    server.clock.advance(3600);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(state(0).await, "bounced", "given up like any other");
}

// rules: CLI-18
#[both_engines]
async fn a_claim_that_no_task_holds_is_released_and_not_renewed(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    hop.panic_over("once@remote.test", 1);
    let sent = inbox.post("emails", mail("once@remote.test")).await.ok();
    let id = sent["id"].as_str().unwrap().to_owned();
    // After the panic the store does not take the release.
    faults::fail_statement(&inbox.workspace, "SET claimed_by = NULL", 1);
    worker::run_due(&server.app).await.unwrap();
    assert!(faults::stop_failing(&inbox.workspace), "the release failed");
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(states(&inbox, &id).await.0, "queued", "this node still has a claim on it");
    worker::renew(&server.app).await.unwrap();
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(states(&inbox, &id).await.0, "sent");
}

// rules: CLI-18
#[both_engines]
async fn a_webhook_is_called_again_when_its_worker_panicked_meanwhile(engine: Engine) {
    let options = ServerOptions {
        webhooks_allow_private: true,
        webhook_time_limit: Duration::from_mins(10),
        ..ServerOptions::default()
    };
    let server = Server::with(engine, options).await;
    let running = Running::start(&server);
    let (tenant, receiver) = (server.tenant(Plan::Enterprise).await, Receiver::start().await);
    receiver.reply(Reply::Hang);
    let hook = json!({ "url": receiver.url(), "event_types": ["message.received"] });
    tenant.key.post(&all(&tenant), hook).await.ok();
    let inbox = Inbox::of(&tenant).await;
    server.receive(&inbox.address, plain("Hello", "Hello")).await;
    eventually("it is called", async || receiver.received().len() == 1).await;
    receiver.reply(Reply::Status(200, String::new()));
    panic_in(&server, "webhooks").await;
    eventually("it is called again", async || receiver.received().len() == 2).await;
    let received = receiver.received();
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    drop(running);
}

// rules: CLI-18
#[both_engines]
async fn triage_goes_on_after_panics_of_the_worker_and_over_a_message(engine: Engine) {
    let gate = Arc::new(Semaphore::new(0));
    let model = ScriptedModel::answering(|question| {
        assert!(!question.to_string().contains("Poison"), "a test made this question panic");
        triage::answer_all(question, &json!({ "applies": false }))
    });
    let model = model.gated_by(gate.clone());
    let server = Server::with(engine, triage::with(model.clone())).await;
    let running = Running::start(&server);
    let inbox = Inbox::new(&server).await;
    triage::auto_draft(&inbox).await;
    let asked = |subject: &str| {
        let is_about = |request: &operations::ports::ChatRequest| format!("{request:?}").contains(subject);
        model.asked().iter().filter(|request| is_about(request)).count()
    };
    // The worker is lost while the model thinks: the next one asks again.
    server.receive(&inbox.address, triage::letter(&inbox, "Lost", "", "Hello")).await;
    eventually("the model is asked", async || asked("Lost") == 1).await;
    panic_in(&server, "triage").await;
    eventually("the model is asked again", async || asked("Lost") == 2).await;
    gate.add_permits(100);
    eventually("there is a run", async || !triage::runs(&inbox).await.is_empty()).await;
    // A message that makes code panic is tried three times, and others are looked at meanwhile.
    server.receive(&inbox.address, triage::letter(&inbox, "Poison", "", "Hello")).await;
    eventually("it is tried", async || asked("Poison") == 1).await;
    server.receive(&inbox.address, triage::letter(&inbox, "Later", "", "Hello")).await;
    eventually("the next one is looked at", async || asked("Later") == 1).await;
    for (tries, pause) in [(2, 5), (3, 30)] {
        eventually("it is put off", async || {
            server.clock.advance(pause);
            asked("Poison") == tries
        })
        .await;
    }
    let failed = async || triage::runs(&inbox).await.iter().any(|run| run["status"] == "FAILED");
    eventually("it is given up", failed).await;
    assert_eq!((asked("Poison"), worker(&server, "triage").await["restarts"].clone()), (3, json!(1)));
    drop(running);
}

// rules: CLI-18
#[both_engines]
async fn a_scheduled_send_that_makes_code_panic_is_tried_again_and_keeps_no_other(engine: Engine) {
    let server = Server::start(engine).await;
    let (broken, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let reader = Inbox::new(&server).await;
    for inbox in [&broken, &other] {
        inbox.post("scheduled-sends", later(&reader.address, "2026-07-14T10:00:00Z")).await.ok();
    }
    let arrived = async || reader.get("emails").await["totalCount"].clone();
    server.clock.set("2026-07-14T10:00:00Z");
    faults::panic_in_statement(&broken.workspace, "INSERT INTO event ");
    operations::scheduled_sends::worker::run_due(&server.app).await.unwrap();
    assert!(faults::stop_failing(&broken.workspace), "it panicked");
    assert_eq!(arrived().await, 1, "the other's");
    // Its claim ends by itself.
    server.clock.advance(15);
    operations::scheduled_sends::worker::run_due(&server.app).await.unwrap();
    assert_eq!(arrived().await, 2);
}

// rules: CLI-18
#[both_engines]
async fn a_document_that_makes_code_panic_fails_and_keeps_no_other(engine: Engine) {
    let options = ServerOptions { embedder: Some(Letters::new("letters")), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let (broken, other) = (server.tenant(Plan::Enterprise).await, server.tenant(Plan::Enterprise).await);
    let text = b"The spare keys hang behind the mirror.";
    let (first, second) =
        (add(&broken.key, "a.txt", "text", text).await, add(&other.key, "b.txt", "text", text).await);
    faults::panic_in_statement(&broken.workspace, "UPDATE document SET chunks_done");
    while operations::knowledge::worker::index_next(&server.app).await.unwrap() {}
    assert!(faults::stop_failing(&broken.workspace), "it panicked");
    assert_eq!(broken.key.get(&path(&first)).await.ok()["status"], "failed");
    assert_eq!(other.key.get(&path(&second)).await.ok()["status"], "ready");
}

// rules: CLI-16
#[both_engines]
async fn calls_that_wait_and_figures_survive_panics_of_their_workers(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    panic_in(&server, "events").await;
    panic_in(&server, "metering").await;
    let events = format!("/api/v1/workspaces/{}/events", inbox.workspace);
    let last = inbox.key.get(&format!("{events}?limit=500")).await.ok()["next_after"].clone();
    let path = format!("{events}?after={last}&wait=30");
    let receive = async {
        // Most likely the call waits by then; where it does not, it finds the event at once.
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.receive(&inbox.address, plain("Hello", "Hello")).await
    };
    let (answer, _) = tokio::join!(inbox.key.get(&path), receive);
    assert_eq!(answer.ok()["events"][0]["type"], "message.received");
    let before = triage::used(&inbox).await;
    inbox.get("emails?limit=1").await;
    assert!(triage::used(&inbox).await > before);
}
