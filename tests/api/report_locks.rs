//! Reports about messages that come in while the queue is worked on.

use std::{sync::Arc, time::Duration};

use model::{emails::InboundProvider, sending::OutboundMode};
use operations::{
    inbound::{self, Arrival, Refusal},
    sending::worker,
};
use serde_json::json;
use testkit::{Engine, Server};

use super::{
    delivery::{bounce, mail, server, states},
    mails::{Inbox, message},
};

/// Whoever works on the queue holds the row of a message first and the event log then. A report that comes in, alone, with
/// others to the same mailbox or for several mailboxes, holds them in the same order, so neither can wait for the other.
// rules: SEND-8
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_report_does_not_wait_for_a_worker_that_waits_for_it() {
    let (server, _) = server(Engine::Postgres, OutboundMode::Relay).await;
    let server = Arc::new(server);
    // Mailboxes are held in the order in which they were made, and the sender's comes last.
    let other = Inbox::new(&server).await;
    let inbox = other.another().await;
    let key = inbox.key.with("prefer", "respond-async");
    for round in 0..6 {
        let sent = key.post(&format!("{}/emails", inbox.path), mail(json!("a@remote.test"))).await.ok();
        let (id, message_id) =
            (sent["id"].as_str().unwrap().to_owned(), sent["message_id"].as_str().unwrap());
        worker::run_due(&server.app).await.unwrap();
        let report = bounce(message_id, "a@remote.test", "delivered");
        let addresses: Vec<String> = match round % 2 {
            0 => vec![inbox.address.clone()],
            _ => [&other, &inbox].map(|one| one.address.clone()).to_vec(),
        };
        let (held, holds) = tokio::sync::oneshot::channel();
        let (go_on, goes_on) = tokio::sync::oneshot::channel::<()>();
        let (db, workspace) = (server.app.db().clone(), inbox.workspace.clone());
        let worker = tokio::spawn(async move {
            let step = db.write(&workspace, async move |tx| {
                store::outbound::lock(tx, &id).await?.unwrap();
                held.send(()).unwrap();
                goes_on.await.unwrap();
                store::events::lock(tx).await
            });
            step.await
        });
        holds.await.unwrap();
        // The report comes among others, whose commit it must not share.
        let mut arrivals = tokio::task::JoinSet::new();
        for number in 0..40 {
            let (server, to) = (server.clone(), inbox.address.clone());
            if number == 20 {
                let (addresses, raw) = (addresses.clone(), report.clone());
                arrivals.spawn(async move { receive_all(&server, &addresses, raw).await });
                continue;
            }
            let raw = message(&format!("Other {round} {number}"), "From: b@remote.test", "x");
            arrivals.spawn(async move { server.try_receive(None, &to, raw).await.map(|_| ()) });
        }
        blocked(&server, &inbox).await;
        go_on.send(()).unwrap();
        worker.await.unwrap().unwrap();
        for outcome in arrivals.join_all().await {
            outcome.unwrap();
        }
        assert_eq!(states(&inbox, sent["id"].as_str().unwrap()).await.0, "delivered", "round {round}");
    }
}

async fn receive_all(server: &Server, to: &[String], raw: String) -> Result<(), Refusal> {
    let mut recipients = Vec::new();
    for address in to {
        recipients.push(inbound::route(&server.app, None, address).await?);
    }
    let arrival = Arrival {
        provider: Some(InboundProvider::EdgeRouting),
        from: None,
        recipients,
        raw: raw.into(),
        client: None,
    };
    inbound::receive(&server.app, arrival)
        .await?
        .emails
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map(|_| ())
}

/// Waits until somebody waits for a lock.
async fn blocked(server: &Server, inbox: &Inbox) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND $1 <> ''";
    loop {
        let look = server.app.db().read(&inbox.workspace, async move |tx| tx.one::<(i64,)>(sql, &[]).await);
        if look.await.unwrap().is_some_and(|(waiting,)| waiting > 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
