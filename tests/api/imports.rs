//! Importing messages, and the room that a plan gives them.

use model::{Limit, Plan};
use operations::admin;
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::mails::{Inbox, flagged, plain, skipped, texts};

// rules: RECV-25, RECV-18
#[both_engines]
async fn a_message_is_imported_like_one_that_arrives(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    super::mails::new_label(&inbox, "Bills", "subject:invoice").await;
    let raw = plain("Invoice", "Pay me.");
    let answer = inbox.import("message/rfc822", raw.clone()).await;
    assert_eq!(answer.status, 201);
    let imported = answer.json();
    assert_eq!(imported["imported"], 1);
    let id = imported["ids"][0].as_str().unwrap().to_owned();
    let email = inbox.get(&format!("emails/{id}")).await;
    assert_eq!(
        email["sender_authentication"],
        json!({ "status": "unknown", "spf": "unknown", "dkim": "unknown", "dmarc": "unknown",
                    "inbound_provider": null, "reason": "inbound_provider_unavailable" })
    );
    assert_eq!((&email["custom_labels"], &email["scan_status"]), (&json!(["bills"]), &json!("clean")));
    assert_eq!((&email["recipient"], &email["folder_id"]), (&json!(inbox.address), &json!("inbox")));
    assert_eq!(inbox.try_get(&format!("emails/{id}/raw")).await.text(), raw);
    assert_eq!(inbox.search("pay").await, ["Invoice"]);
    let events = inbox.key.get(&format!("/api/v1/workspaces/{}/events?after=1", inbox.workspace)).await.ok();
    assert_eq!(events["events"][0]["data"]["email_id"], json!(id));
    for (raw, status) in [(flagged("Bad"), "flagged"), (skipped("Odd"), "skipped")] {
        let id = inbox.import("message/rfc822", raw).await.ok()["ids"][0].as_str().unwrap().to_owned();
        assert_eq!(inbox.get(&format!("emails/{id}")).await["scan_status"], status);
    }
}

/// Old mail that somebody brings along did not arrive today.
#[both_engines]
async fn imported_mail_is_not_counted_as_received(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    inbox.import("message/rfc822", plain("Old", "By the API.")).await.ok();
    let target = admin::find_mailbox(&server.app, &inbox.address).await.unwrap();
    admin::import_message(&server.app, target, plain("Older", "By the command line.").into()).await.unwrap();
    let figures = async || {
        let at = |rest: &str| format!("/api/v1/workspaces/{}/usage/{rest}", inbox.workspace);
        let emails = inbox.key.get(&at("email")).await.ok()["mailboxes"][0]["received"].clone();
        let days = inbox.key.get(&at("history?days=1")).await.ok()["days"].clone();
        (emails, days[0]["mails_in"].clone())
    };
    assert_eq!(figures().await, (json!(0), json!(0)));
    server.receive(&inbox.address, plain("New", "Over SMTP.")).await;
    assert_eq!(figures().await, (json!(1), json!(1)));
    assert_eq!(inbox.get("emails").await["totalCount"], 3);
}

// rules: RECV-25
#[both_engines]
async fn a_file_of_messages_is_imported_whole_or_not_at_all(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let mbox = "From a@x Mon Jul 13 10:00:00 2026\nSubject: One\n\nText\n>From here\n\nFrom b@x Mon Jul 13 10:00:00 2026\nSubject: Two\n\nmore\n";
    let key = inbox.key.with("idempotency-key", "import");
    let path = format!("{}/emails/import", inbox.path);
    let send = async |body: &str| {
        key.send_raw(http::Method::POST, &path, Some("application/mbox"), body.to_owned().into()).await
    };
    let first = send(mbox).await;
    assert_eq!((first.status, &first.json()["imported"]), (201, &json!(2)));
    assert_eq!(send(mbox).await.bytes, first.bytes, "a repeated import brings nothing in twice");
    let list = inbox.get("emails?sortColumn=subject&sortDirection=ASC").await;
    assert_eq!(texts(&list["emails"], "subject"), ["One", "Two"]);
    let one = list["emails"][0]["id"].as_str().unwrap();
    assert_eq!(inbox.try_get(&format!("emails/{one}/raw")).await.text(), "Subject: One\n\nText\nFrom here\n");
    for (kind, body) in
        [("application/mbox", "Subject: no mbox\n\n"), ("message/rfc822", ""), ("application/mbox", "")]
    {
        inbox.import(kind, body).await.expect(400, "validation_failed");
    }
    inbox.import("application/json", "{}").await.expect(415, "unsupported_media_type");
    inbox.import("text/plain", "Subject: x\n\n").await.expect(415, "unsupported_media_type");
    assert_eq!(inbox.get("emails").await["totalCount"], 2);
}

// rules: RECV-27
#[both_engines]
async fn a_full_workspace_takes_no_further_mail_for_now(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.developer.storage_bytes = Limit::of(5_000);
    let server = Server::with(engine, options).await;
    let inbox = Inbox::of(&server.tenant(Plan::Developer).await).await;
    let id = server.receive(&inbox.address, plain("First", &"x".repeat(4_000))).await;
    inbox.import("message/rfc822", plain("Large", &"x".repeat(2_000))).await.expect(403, "quota_exceeded");
    let small = inbox.import("message/rfc822", plain("Small", "x")).await;
    assert_eq!(small.status, 201);
    server.receive(&inbox.address, plain("Second", &"x".repeat(900))).await;
    let refusal =
        server.try_receive(Some("a@remote.test"), &inbox.address, plain("Third", "x")).await.unwrap_err();
    assert_eq!((refusal.code, refusal.enhanced), (452, "4.2.2"));
    inbox.import("message/rfc822", plain("Tiny", "x")).await.expect(403, "quota_exceeded");
    inbox.delete(&format!("emails/{id}?permanent=true")).await.ok();
    server.receive(&inbox.address, plain("Fourth", "x")).await;
    assert_eq!(inbox.get("emails").await["totalCount"], Value::from(3));
}
