//! The leak guard: what is found in messages, on every way of sending, and that no value is kept.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use operations::{SendPolicySettings, sending::worker};
use serde_json::{Value, json};
use testkit::{Engine, ServerOptions, both_engines};

use super::{delivery::forward, mails::message, send_policies::Desk};

/// A token of a well-known shape, which is put together here so that it stands in no file.
fn secret() -> String {
    format!("AKIA{}", "QRSTUVWXYZ234567")
}

fn card() -> String {
    ["4111", "1111", "1111", "1111"].join(" ")
}

/// Nothing here is about time, and the machine may be busy.
async fn desk(engine: Engine) -> Desk {
    let send_policy = SendPolicySettings {
        scan_timeout: Some(std::time::Duration::from_mins(1)),
        ..SendPolicySettings::default()
    };
    Desk::with(engine, ServerOptions { send_policy, ..ServerOptions::default() }).await
}

impl Desk {
    async fn mail(&self, fields: Value) -> testkit::Answer {
        let mut body = json!({ "to": "bob@remote.test", "subject": "S", "text": "T" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let key = self.inbox.key.with("prefer", "respond-async");
        key.post(&format!("{}/emails", self.inbox.path), body).await
    }
}

// rules: LEAK-1, LEAK-2, LEAK-3, LEAK-4
#[both_engines]
async fn secrets_are_found_wherever_they_are_and_never_kept(engine: Engine) {
    let desk = desk(engine).await;
    desk.set(json!({ "scan": { "secrets": "block", "personal": "review" } })).await.ok();
    let file = |name: &str, kind: &str, content: &str| json!([{ "filename": name, "type": kind, "content": STANDARD.encode(content) }]);
    let secret = secret();
    let eml = format!("From: a@x.test\r\nSubject: Old\r\n\r\nThe key is {secret}.\r\n");
    for (fields, place) in [
        (json!({ "subject": format!("Key {secret}") }), "subject"),
        (json!({ "text": format!("It is {secret}.") }), "text"),
        (json!({ "html": format!("<p>It is <b>{secret}</b></p>"), "text": null }), "html"),
        (
            json!({ "html": format!("<p>Hi</p><div style=\"display:none\">{secret}</div>"), "text": null }),
            "html",
        ),
        (
            json!({ "attachments": file(&format!("{secret}.txt"), "text/plain", "x") }),
            "attachments[0].filename",
        ),
        (
            json!({ "attachments": file("notes.env", "application/octet-stream", &format!("A={secret}")) }),
            "attachments[0]",
        ),
        (
            json!({ "attachments": file("page.html", "text/html", &format!("<p>{secret}</p>")) }),
            "attachments[0]",
        ),
        (json!({ "attachments": file("old.eml", "message/rfc822", &eml) }), "attachments[0]"),
    ] {
        let answer = desk.mail(fields).await;
        let refused = answer.expect(403, "send_blocked").json();
        assert_eq!(refused["details"], json!([{ "path": place, "message": "content" }]), "{place}");
        assert!(!answer.text().contains(&secret), "{}", answer.text());
    }
    let check = json!({ "to": "bob@remote.test", "subject": "S", "text": secret });
    let check = desk.session.post(&format!("{}/send-policy/check", desk.inbox.path), check).await.ok();
    assert_eq!((&check["verdict"], &check["reasons"][0]["code"]), (&json!("block"), &json!("content")));
    // What only looks like one leaves.
    desk.mail(json!({ "text": "Order 4111 1111 1111 1112 of 2026-07-14, commit 1b2bb14." })).await.ok();
    let card = card();
    let sent = desk.mail(json!({ "text": format!("My card: {card}") })).await.ok();
    assert_eq!(sent["status"], "in_review");
    let path = format!("{}/reviews/{}", desk.workspace, sent["review_id"].as_str().unwrap());
    let review = desk.session.get(&path).await;
    let shown = review.json();
    assert_eq!(shown["reasons"], json!(["content"]));
    let finding = &shown["findings"][0];
    assert_eq!((&finding["kind"], &finding["where"]), (&json!("personal"), &json!("text")), "{shown}");
    assert!(
        finding["masked"].as_str().unwrap().ends_with("1111") && !review.text().contains(&card),
        "{shown}"
    );
    for path in ["events?limit=500", "audit?include_routine=true"] {
        let text = desk.session.get(&format!("{}/{path}", desk.workspace)).await.text();
        assert!(!text.contains(&secret) && !text.contains(&card), "{path}: {text}");
    }
}

// rules: LEAK-6
#[both_engines]
async fn an_approval_lets_out_what_was_found_unless_it_is_blocked_by_then(engine: Engine) {
    let desk = desk(engine).await;
    desk.set(json!({ "scan": { "secrets": "review" } })).await.ok();
    let approve = async || {
        let sent = desk.mail(json!({ "text": secret() })).await.ok();
        let path = format!("{}/reviews/{}", desk.workspace, sent["review_id"].as_str().unwrap());
        let digest = desk.session.get(&path).await.ok()["digest"].clone();
        (format!("{path}/approve"), json!({ "digest": digest }))
    };
    let (path, body) = approve().await;
    desk.session.post(&path, body).await.ok();
    assert_eq!(desk.handed_over().await, ["bob@remote.test"]);
    let (path, body) = approve().await;
    desk.set(json!({ "scan": { "secrets": "block" } })).await.ok();
    desk.session.post(&path, body).await.expect(409, "review_blocked");
}

// rules: LEAK-1, LEAK-5, LEAK-7
#[both_engines]
async fn what_cannot_be_searched_is_not_let_through(engine: Engine) {
    let send_policy =
        SendPolicySettings { scan_timeout: Some(std::time::Duration::ZERO), ..SendPolicySettings::default() };
    let desk = Desk::with(engine, ServerOptions { send_policy, ..ServerOptions::default() }).await;
    desk.set(json!({ "scan": { "other_correspondents": "review" } })).await.expect(400, "validation_failed");
    desk.set(json!({ "scan": { "secrets": "block" } })).await.ok();
    let sent = desk.mail(json!({})).await.ok();
    assert_eq!(sent["status"], "in_review");
    let path = format!("{}/reviews/{}", desk.workspace, sent["review_id"].as_str().unwrap());
    assert_eq!(desk.session.get(&path).await.ok()["reasons"], json!(["scan_failed"]));
    forward(&desk.inbox, "home@remote.test").await;
    let raw = message("News", "From: ada@people.test", "x").replace("me@agents.test", &desk.inbox.address);
    desk.server.try_receive(Some("ada@people.test"), &desk.inbox.address, raw).await.unwrap();
    worker::run_due(&desk.server.app).await.unwrap();
    assert_eq!(desk.handed_over().await, Vec::<String>::new());
}

// rules: LEAK-1
#[both_engines]
async fn files_of_any_kind_can_be_held_back(engine: Engine) {
    let desk = desk(engine).await;
    desk.set(json!({ "scan": { "attachments": "review" } })).await.ok();
    let files = json!([{ "filename": "a.bin", "type": "application/octet-stream", "content": STANDARD.encode([0, 255]) }]);
    let sent = desk.mail(json!({ "attachments": files })).await.ok();
    assert_eq!(sent["status"], "in_review");
    assert_eq!(desk.mail(json!({})).await.ok()["status"], "queued");
}
