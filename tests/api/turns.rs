//! Shared queues: one tenant fills each of them, and another's work is done after a turn, not after all of that. What is
//! counted is the order of work, never time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use model::{Plan, WorkspaceId, sending::OutboundMode};
use operations::{Outbound, knowledge::worker::index_next, scanning, sending::worker, webhooks::outbox};
use serde_json::{Value, json};
use testkit::{Engine, Hop, Receiver, ScriptedModel, Server, ServerOptions, Tenant, both_engines};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
};

use super::{
    conversations::begin,
    delivery::mail,
    help::new_mailbox,
    knowledge::{ALL, add, path, repeating_pdf},
    mails::{Inbox, plain},
    memory_faults::Letters,
    schedules::later,
    triage::{self, letter, run_due},
};

/// A text of many pieces.
fn book() -> String {
    let line = |number| {
        format!("Chapter {number} tells of the voyage, of storms, of maps and of port number {number}.\n\n")
    };
    (0..600).map(line).collect()
}

async fn document(tenant: &Tenant, made: &Value) -> Value {
    tenant.key.get(&path(made)).await.ok()
}

/// rules: MEMORY-5, MEMORY-12
#[both_engines]
async fn a_long_document_keeps_no_other_workspace_waiting(engine: Engine) {
    let options = |seed| ServerOptions {
        seed,
        // What the model knows does not matter here, and this one costs nothing.
        embedder: Some(Letters::new("letters")),
        ..ServerOptions::default()
    };
    let server = Server::with(engine, options(1)).await;
    let (busy, other) = (server.tenant(Plan::Enterprise).await, server.tenant(Plan::Enterprise).await);
    let mut long = Vec::new();
    for number in 0..2 {
        long.push(add(&busy.key, &format!("book-{number}.txt"), "text", book().as_bytes()).await);
    }
    assert!(index_next(&server.app).await.unwrap());
    let short = add(&other.key, "note.txt", "text", b"The spare keys hang behind the mirror.").await;
    assert!(index_next(&server.app).await.unwrap());
    assert_eq!(document(&other, &short).await["status"], "ready", "its turn comes after one slice");

    // How far the long one is stands in its record; the next ones of that workspace wait for it.
    let state = document(&busy, &long[0]).await;
    let (done, count) = (state["chunks_done"].as_i64().unwrap(), state["chunk_count"].as_i64().unwrap());
    assert!(state["status"] == "indexing" && 0 < done && done < count, "{state}");
    assert_eq!(document(&busy, &long[1]).await["chunk_count"], 0);

    // Another process goes on where this one was.
    let next = server.another_node(options(2)).await;
    assert!(index_next(&next.app).await.unwrap());
    let further = document(&busy, &long[0]).await;
    assert_eq!(further["chunk_count"], count);
    assert_eq!(further["chunks_done"], (done * 2).min(count));
    next.index_memory().await;
    for made in &long {
        let state = document(&busy, made).await;
        assert_eq!((&state["status"], &state["chunks_done"]), (&json!("ready"), &json!(count)));
        let verify = format!("{}/verify", path(made));
        assert_eq!(busy.key.send(http::Method::POST, &verify, None).await.ok()["ok"], true);
    }
}

/// What comes out of a document is bounded, whatever went in: a page that is shown a thousand times, more text than is
/// indexed, more pieces than are indexed.
/// rules: MEMORY-13
#[both_engines]
async fn documents_that_grow_are_refused_with_the_reason(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let page = "All work and no play makes a dull document. ".repeat(300);
    let cases = [
        ("pdf", repeating_pdf(&page, 60), "The document has more text than 20 times its size."),
        ("text", "word ".repeat(500_000).into_bytes(), "The document has more than 2 MB of text."),
    ];
    let mut made = Vec::new();
    for (kind, bytes, reason) in &cases {
        made.push((add(&tenant.key, "large", kind, bytes).await, *reason));
    }
    // A small one may say a thing often.
    let small = add(&tenant.key, "small", "pdf", &repeating_pdf("All work and no play.", 20)).await;
    server.index_memory().await;
    for (made, reason) in made {
        let state = document(&tenant, &made).await;
        assert_eq!((&state["status"], &state["last_error"]), (&json!("failed"), &json!(reason)));
        assert_eq!(state["chunks_done"], 0);
    }
    assert_eq!(document(&tenant, &small).await["status"], "ready");
    let listed = tenant.key.get(&format!("{ALL}?limit=10")).await.ok();
    assert_eq!(listed["documents"].as_array().unwrap().len(), 3);
}

/// A virus scanner that finds nothing and remembers the subjects of what it was shown, in their order.
async fn remembering_clamd() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = shown.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut said, mut piece) = (Vec::new(), vec![0; 65_536]);
            while !said.ends_with(&[0, 0, 0, 0]) {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => said.extend_from_slice(&piece[..length]),
                }
            }
            let text = String::from_utf8_lossy(&said);
            let subject = text.split("Subject: ").nth(1).and_then(|rest| rest.lines().next());
            kept.lock().unwrap().push(subject.unwrap_or_default().to_owned());
            let _ = stream.write_all(b"stream: OK\0").await;
        }
    });
    (address, shown)
}

/// The place of the first text that names somebody.
fn place(all: &[String], name: &str) -> usize {
    all.iter().position(|one| one.contains(name)).unwrap_or_else(|| panic!("{name} is not in {all:?}"))
}

/// rules: SCAN-11
#[both_engines]
async fn a_flood_of_mail_keeps_no_other_workspace_from_its_scan(engine: Engine) {
    let (address, shown) = remembering_clamd().await;
    let clamd = Some(address.parse().unwrap());
    let server = Server::with(engine, ServerOptions { clamd, ..ServerOptions::default() }).await;
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    for number in 0..60 {
        server.receive(&busy.address, plain(&format!("Flood {number}"), "x")).await;
    }
    server.clock.advance(1);
    server.receive(&other.address, plain("Single", "x")).await;
    assert_eq!(scanning::scan_pending(&server.app).await.unwrap(), 61);
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 61);
    assert!(place(&shown, "Single") < 12, "{shown:?}");
}

/// Eight tenants with webhooks enough to fill all room of a worker, each with a backlog, and one with a single event.
/// rules: HOOK-11
#[both_engines]
async fn a_backlog_of_events_keeps_no_other_webhook_waiting(engine: Engine) {
    let receiver = Receiver::start().await;
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let hook = async |tenant: &Tenant, name: &str| {
        let url = receiver.url().replace("/hook", &format!("/{name}"));
        let body = json!({ "url": url, "event_types": ["mailbox.created"] });
        tenant.key.post(&super::webhooks::all(tenant), body).await.ok();
    };
    for busy in 0..8 {
        let tenant = server.tenant(Plan::Enterprise).await;
        for number in 0..8 {
            hook(&tenant, &format!("busy-{busy}-{number}")).await;
        }
        for number in 0..8 {
            new_mailbox(&tenant.key, &format!("Box {number}")).await;
        }
    }
    server.clock.advance(1);
    let other = server.tenant(Plan::Enterprise).await;
    hook(&other, "single").await;
    new_mailbox(&other.key, "Box").await;
    assert_eq!(outbox::run_due(&server.app).await.unwrap(), 8 * 8 * 8 + 1);
    let order: Vec<String> = receiver.received().into_iter().map(|one| one.path).collect();
    // Each takes four deliveries a turn, and in the first round every workspace has one.
    assert!(place(&order, "single") < 64 * 4, "{}", place(&order, "single"));
}

/// A server that sends to another one and lets nobody wait for it.
async fn sending_server(engine: Engine) -> (Server, Hop) {
    let hop = Hop::default();
    let mut outbound = Outbound::new(OutboundMode::Direct);
    outbound.send_window = Duration::ZERO;
    let options = ServerOptions { outbound, next_hop: Some(hop.clone()), ..ServerOptions::default() };
    (Server::with(engine, options).await, hop)
}

/// The senders of what another server was handed, in their order.
fn senders(hop: &Hop) -> Vec<String> {
    hop.handovers().into_iter().filter_map(|one| one.sender).collect()
}

/// rules: SEND-35
#[both_engines]
async fn a_mass_mailing_keeps_no_other_workspace_from_the_same_destination(engine: Engine) {
    let (server, hop) = sending_server(engine).await;
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    for number in 0..40 {
        busy.post("emails", mail(format!("n{number}@remote.test"))).await.ok();
    }
    server.clock.advance(1);
    other.post("emails", mail("one@remote.test")).await.ok();
    worker::run_due(&server.app).await.unwrap();
    let order = senders(&hop);
    assert_eq!(order.len(), 41);
    // Four tasks begin with the first mails of both.
    assert!(place(&order, &other.address) < 6, "{order:?}");
}

/// rules: SEND-35
#[both_engines]
async fn who_comes_while_a_mass_mailing_is_under_way_waits_for_one_mail_of_it(engine: Engine) {
    let (server, hop) = sending_server(engine).await;
    let gate = Arc::new(Semaphore::new(0));
    hop.gated_by(gate.clone());
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    for number in 0..40 {
        busy.post("emails", mail(format!("n{number}@remote.test"))).await.ok();
    }
    let mut tasks = worker::start_due(&server.app).await.unwrap();
    assert_eq!(tasks.len(), 4, "all that there are for one destination");
    other.post("emails", mail("one@remote.test")).await.ok();
    tasks.extend(worker::start_due(&server.app).await.unwrap());
    assert_eq!(tasks.len(), 4);
    // One by one, so that no task overtakes another that is still preparing its message.
    let mut permits = 0;
    while !senders(&hop).contains(&other.address) {
        while hop.waiting() < 4 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        gate.add_permits(1);
        permits += 1;
        while senders(&hop).len() < permits {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    gate.add_permits(41 - permits);
    for task in tasks {
        task.await.unwrap();
    }
    worker::run_due(&server.app).await.unwrap();
    let order = senders(&hop);
    assert_eq!(order.len(), 41);
    // Behind the four that were under way, and at most one more of each.
    assert!(place(&order, &other.address) < 10, "{order:?}");
}

/// rules: DRAFT-18
#[both_engines]
async fn scheduled_sends_leave_in_turn_over_workspaces(engine: Engine) {
    let server = Server::start(engine).await;
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let reader = Inbox::new(&server).await;
    for _ in 0..20 {
        busy.post("scheduled-sends", later(&reader.address, "2026-07-14T10:00:00Z")).await.ok();
    }
    other.post("scheduled-sends", later(&reader.address, "2026-07-14T10:00:01Z")).await.ok();
    let waiting = async |after: &WorkspaceId| {
        let (now, after) = (server.clock.now(), after.to_string());
        let look =
            async move |tx: &mut store::SystemTx| store::drafts::due_workspaces(tx, now, &after, 9).await;
        server.app.db().system_read(look).await.unwrap()
    };
    server.clock.set("2026-07-14T10:00:00Z");
    let due = waiting(&other.workspace).await;
    assert_eq!(due.as_slice(), std::slice::from_ref(&busy.workspace), "the other's time has not come");
    server.clock.set("2026-07-14T10:00:01Z");
    for (last, next) in [(&busy, &other), (&other, &busy)] {
        let in_turn = [next.workspace.clone(), last.workspace.clone()];
        assert_eq!(waiting(&last.workspace).await, in_turn);
    }
    operations::scheduled_sends::worker::run_due(&server.app).await.unwrap();
    assert_eq!(reader.get("emails").await["totalCount"], 21);
    assert_eq!(waiting(&busy.workspace).await, []);
}

/// rules: TRIAGE-13
#[both_engines]
async fn a_flood_of_mail_keeps_no_other_workspace_from_the_model(engine: Engine) {
    let model = ScriptedModel::answering(|_| json!({ "category": "personal" }));
    let server = Server::with(engine, triage::with(model.clone())).await;
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    for number in 0..40 {
        server.receive(&busy.address, letter(&busy, &format!("Flood {number}"), "", "x")).await;
    }
    server.clock.advance(1);
    server.receive(&other.address, letter(&other, "Single", "", "x")).await;
    run_due(&server).await;
    let asked: Vec<String> = model.asked().iter().map(|one| format!("{one:?}")).collect();
    assert_eq!(asked.len(), 41);
    assert!(place(&asked, "Single") < 8, "{}", place(&asked, "Single"));
}

/// Where the model takes one question at a time, a workspace has one with it, and the others wait before it.
/// rules: AGENT-9
#[both_engines]
async fn questions_of_one_workspace_never_take_all_of_the_model(engine: Engine) {
    let gate = Arc::new(Semaphore::new(0));
    let model = ScriptedModel::saying("Hello.").gated_by(gate.clone()).with_concurrency(1);
    let server = Server::with(engine, triage::with(model.clone())).await;
    let (busy, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let mut waiting = Vec::new();
    for (inbox, text) in [(&busy, "Busy"); 4].into_iter().chain([(&other, "Other")]) {
        let messages = format!("{}/messages", begin(inbox).await);
        let (key, body) = (inbox.key.clone(), json!({ "content": text }));
        waiting.push(tokio::spawn(async move { key.post(&messages, body).await.ok() }));
    }
    let asked = |text: &str| model.asked().iter().any(|one| format!("{one:?}").contains(text));
    while !(asked("Busy") && asked("Other")) {
        tokio::task::yield_now().await;
    }
    assert_eq!(model.asked().len(), 2, "one of each");
    gate.add_permits(5);
    for one in waiting {
        one.await.unwrap();
    }
    assert_eq!(model.asked().len(), 5);
}
