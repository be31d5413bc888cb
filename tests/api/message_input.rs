//! What is said about a message before it is sent: how it is read, and how everything that is wrong with it is told.

use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::{
    help::assert_refuses_fields,
    mails::{Inbox, plain},
};

/// A list says how many addresses it has: one element cannot bring a second one along.
// rules: SEND-2
#[both_engines]
async fn one_element_is_one_address(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let to = inbox.address.clone();
    let id = server.receive(&to, plain("Hello", "text")).await;
    let at = "2026-07-15T09:00:00Z";
    let two = format!("{to},evil@evil.test");
    for line in ["to", "cc", "bcc"] {
        for (path, mut body) in [
            ("emails".to_owned(), json!({ "to": to, "subject": "S", "text": "T" })),
            (format!("emails/{id}/reply"), json!({ "text": "T" })),
            (format!("emails/{id}/forward"), json!({ "to": to })),
            ("drafts".to_owned(), json!({ "body": "B" })),
            ("scheduled-sends".to_owned(), json!({ "to": to, "body": "B", "scheduled_send_at": at })),
        ] {
            body[line] = json!([to, two]);
            let refused = inbox.post(&path, body.clone()).await;
            assert_refuses_fields(&refused, &[&format!("{line}[1]")]);
            assert!(refused.text().contains("one address"), "{}", refused.text());
            // As one text it is a line as people write it.
            if path == "drafts" {
                body[line] = json!(two);
                let saved = inbox.post(&path, body).await.ok();
                let draft = inbox.get(&format!("drafts/{}", saved["id"].as_str().unwrap())).await;
                assert_eq!(draft[line], json!([to, "evil@evil.test"]));
            }
        }
    }
    assert_eq!(inbox.get("emails?folder=sent").await["totalCount"], 0);
    let named = json!({ "to": [format!("\"Doe, J.\" <{to}>")], "subject": "S", "text": "T" });
    inbox.post("emails", named).await.ok();
}

/// Whoever mends a request should not need a call for each of its faults.
// rules: ERR-3
#[both_engines]
async fn wrong_types_and_wrong_values_are_told_together(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let mail = json!({
        "to": ["nobody", 7, inbox.address], "cc": 5, "bcc": "x@", "from": "not an address", "subject": "a\nb",
        "text": true, "html": ["x"], "in_reply_to": "two words", "references": [1], "colour": "red",
        "headers": { "Bcc": "a@b.test", "X-Fine": "yes", "X-Odd": 9 }, "source_draft_id": {},
        "attachments": [{ "filename": 3, "type": "bad", "content": "eA==" }, "file", { "contents": "" }],
    });
    let paths = [
        "to[0]",
        "to[1]",
        "cc",
        "bcc",
        "from",
        "subject",
        "text",
        "html",
        "in_reply_to",
        "references",
        "colour",
        "headers.Bcc",
        "headers.X-Odd",
        "source_draft_id",
        "attachments[0].filename",
        "attachments[0].type",
        "attachments[1]",
        "attachments[2].contents",
        "attachments[2].content",
        "attachments[2].filename",
        "attachments[2].type",
    ];
    assert_refuses_fields(&inbox.post("emails", mail).await, &paths);
    // A required field that no simple value fits keeps nothing else from being told.
    for at in [json!("soon"), json!(5), json!(null), json!({}), json!("2026-07-15T09:00:00+25:00")] {
        let mail = json!({ "scheduled_send_at": at, "to": ["nobody"], "body": 5, "subject": "a\rb" });
        let refused = inbox.post("scheduled-sends", mail).await;
        assert_refuses_fields(&refused, &["scheduled_send_at", "to[0]", "body", "subject"]);
    }
    let refused = inbox.post("scheduled-sends", json!({ "to": "nobody", "body_format": "rtf" })).await;
    assert_refuses_fields(&refused, &["scheduled_send_at", "to", "body_format"]);
    let late = json!({ "scheduled_send_at": "2020-01-01T00:00:00Z" });
    assert_refuses_fields(&inbox.post("scheduled-sends", late).await, &["scheduled_send_at", "to", "body"]);
    assert_refuses_fields(&inbox.post("emails", json!({})).await, &["to", "subject", "text"]);
    let wait = json!({ "timeout_seconds": 500, "from": "x", "require_scan_status": "fine", "subject": 4 });
    let fields = ["timeout_seconds", "from", "require_scan_status", "subject"];
    assert_refuses_fields(&inbox.post("emails/wait", wait).await, &fields);
    // Parameters, and both at once.
    let refused =
        inbox.try_get("emails?limit=500&is_read=maybe&category=x&colour=red&max_body_chars=0").await;
    assert_refuses_fields(&refused, &["limit", "is_read", "category", "colour", "max_body_chars"]);
    let refused = inbox.post("drafts?colour=red", json!({ "body": 5, "to": "nobody" })).await;
    assert_refuses_fields(&refused, &["colour", "body", "to"]);
    // Also of a long body, such as one with files.
    let files = json!([{ "filename": "a.bin", "type": 5, "content": "A".repeat(3 << 20) }]);
    let long = json!({ "to": ["nobody"], "subject": 4, "text": "T", "attachments": files });
    let refused = inbox.post("emails", long).await;
    assert_refuses_fields(&refused, &["to[0]", "subject", "attachments[0].type"]);
}
