//! What is logged while something is worked on stands under its id and its workspace, and failures have their causes.

use model::Plan;
use operations::{knowledge, scheduled_sends, webhooks::outbox};
use serde_json::json;
use testkit::{Engine, Logs, Receiver, Server, ServerOptions, both_engines};

use super::{knowledge::add, mails::Inbox, schedules::later, webhooks::all};

/// The one line that has these words.
#[track_caller]
fn line_with(logs: &Logs, words: &str) -> String {
    let text = logs.text();
    let found: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {text}");
    found[0].to_owned()
}

/// A job that fails because of what the store has.
// rules: OBS-2, OBS-3
#[both_engines]
async fn the_log_of_a_job_names_it_and_its_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let document = add(&tenant.key, "Unspeakable name", "text", b"Unspeakable content").await;
    let damage = server.app.db().write(&tenant.workspace, async |tx| {
        tx.run("UPDATE document SET content = $2 WHERE workspace_id = $1", &[b"damaged".as_slice().into()])
            .await
    });
    let damaged: Result<u64, store::Error> = damage.await;
    assert_eq!(damaged.unwrap(), 1);
    let logs = Logs::catch();
    assert!(knowledge::worker::index_next(&server.app).await.unwrap());
    let line = line_with(&logs, "document indexing failed; giving up");
    let id = document["id"].as_str().unwrap();
    assert!(
        line.contains(&format!("ERROR document{{document={id} workspace={}}}: ", tenant.workspace)),
        "{line}"
    );
    // The error of the operation, that of the store and that of the vault are one chain.
    assert!(line.contains("error=Internal error: the sealed bytes have version 100"), "{line}");
    assert_eq!(line.matches("sealed bytes").count(), 1, "{line}");
    assert!(!logs.text().contains("Unspeakable"), "{}", logs.text());
}

// rules: OBS-2
#[both_engines]
async fn the_log_of_a_webhook_names_the_delivery(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let receiver = Receiver::start().await;
    let hook = json!({ "url": receiver.url(), "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), hook).await.ok();
    Inbox::of(&tenant).await;
    let logs = Logs::catch();
    assert_eq!(outbox::run_due(&server.app).await.unwrap(), 1);
    let line = line_with(&logs, "webhook delivery attempted");
    let id = hook["id"].as_str().unwrap();
    let span = format!(" webhook{{webhook={id} workspace={}}}:delivery{{delivery=", tenant.workspace);
    assert!(line.contains(&span) && line.contains("status=\"delivered\""), "{line}");
}

/// What a scheduled send brings about is logged under the draft.
// rules: OBS-2
#[both_engines]
async fn the_log_of_a_scheduled_send_names_the_draft(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let scheduled = inbox.post("scheduled-sends", later(&inbox.address, "2026-07-14T10:00:00Z")).await.ok();
    server.clock.set("2026-07-14T10:00:00Z");
    let logs = Logs::catch();
    scheduled_sends::worker::run_due(&server.app).await.unwrap();
    let line = line_with(&logs, " mail.submitted: ");
    let id = scheduled["id"].as_str().unwrap();
    assert!(line.contains(&format!(" schedule{{email={id} workspace={}}}: ", inbox.workspace)), "{line}");
}
