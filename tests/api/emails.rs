//! Emails one by one: what they look like, changing, moving, deleting.

use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields, encoded, keys},
    mails::{Inbox, message, new_label, plain, with_file},
};

/// What a single read shows of a clean mail.
const FIELDS: &[&str] = &[
    "agent_safe_content",
    "attachment_count",
    "attachments",
    "bcc",
    "body",
    "body_format",
    "body_storage_message",
    "body_storage_status",
    "category",
    "cc",
    "content_omitted",
    "content_truncated",
    "custom_labels",
    "date",
    "delivery_status",
    "email_references",
    "folder_id",
    "folder_name",
    "id",
    "in_reply_to",
    "is_urgent",
    "message_id",
    "provider_metadata",
    "raw_headers",
    "read",
    "received_at",
    "recipient",
    "scan_status",
    "scan_threats",
    "sender",
    "sender_authentication",
    "snippet",
    "starred",
    "subject",
    "thread_id",
    "to",
];

// rules: READ-1, READ-19, RECV-16, RECV-18
#[both_engines]
#[expect(clippy::too_many_lines, reason = "an email has many fields")]
async fn a_mail_is_shown_with_all_its_fields(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let raw = message(
        "First words",
        "Cc: Bob <bob@remote.test>\nDate: Mon, 13 Jul 2026 12:00:00 +0200\nIn-Reply-To: <0@remote.test>\n\
             References: <a@remote.test> <0@remote.test>\nX-Odd: yes",
        "Hello there.\r\n",
    );
    let id = server.receive(&inbox.address, raw.clone()).await;
    let email = inbox.get(&format!("emails/{id}")).await;
    let mut found = keys(&email);
    found.sort_unstable();
    assert_eq!(found, FIELDS);
    for (field, value) in [
        ("id", json!(id)),
        ("subject", json!("First words")),
        ("sender", json!("Ann <ann@remote.test>")),
        ("recipient", json!(inbox.address)),
        ("to", json!("Me <me@agents.test>")),
        ("cc", json!("Bob <bob@remote.test>")),
        ("bcc", Value::Null),
        ("date", json!("2026-07-13T10:00:00.000Z")),
        ("received_at", json!("2026-07-14T09:00:00.000Z")),
        ("read", json!(false)),
        ("starred", json!(false)),
        ("folder_id", json!("inbox")),
        ("folder_name", json!("Inbox")),
        ("body", json!("Hello there.\n")),
        ("body_format", json!("text")),
        ("snippet", json!("Hello there.")),
        ("in_reply_to", json!("0@remote.test")),
        ("email_references", json!("a@remote.test 0@remote.test")),
        ("message_id", json!("Firstwords@remote.test")),
        ("delivery_status", Value::Null),
        ("body_storage_status", json!("stored")),
        ("scan_status", json!("clean")),
        ("scan_threats", json!([])),
        ("attachments", json!([])),
        ("attachment_count", json!(0)),
        ("content_omitted", json!(false)),
        ("content_truncated", json!(false)),
        ("agent_safe_content", json!(false)),
    ] {
        assert_eq!(email[field], value, "{field}");
    }
    assert!(email["raw_headers"].as_str().unwrap().contains("X-Odd: yes\r\n"));
    assert_eq!(
        email["sender_authentication"],
        json!({ "status": "unknown", "spf": "unknown", "dkim": "unknown", "dmarc": "unknown",
                    "inbound_provider": "edge_routing",
                    "reason": "provider_sender_authentication_verdict_unavailable" })
    );
    // Another id finds nothing, the one in the mail least of all.
    for other in ["Firstwords@remote.test", "<Firstwords@remote.test>", "eml_0", "EML"] {
        assert_missing(&inbox.try_get(&format!("emails/{}", encoded(other))).await, "Email");
    }
    assert_missing(&inbox.try_get(&format!("emails/{}", id.to_string().to_uppercase())).await, "Email");
    let download = inbox.try_get(&format!("emails/{id}/raw")).await;
    assert_eq!((download.text(), download.header("content-type")), (raw, "message/rfc822"));
    assert!(download.header("content-disposition").starts_with("attachment"));
}

// rules: READ-11, READ-17
#[both_engines]
async fn marks_category_and_labels_are_changed(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let (red, _) = (new_label(&inbox, "Red", "").await, new_label(&inbox, "Blue", "").await);
    let id = server.receive(&inbox.address, plain("One", "text")).await;
    let path = format!("emails/{id}");
    let change = json!({ "read": true, "starred": true, "is_urgent": true, "category": "technical",
                             "custom_labels": ["red", "blue", "red"] });
    let changed = inbox.put(&path, change).await.ok();
    assert_eq!(changed, inbox.get(&path).await);
    assert_eq!(changed["body"], "text\n");
    for field in ["read", "starred", "is_urgent"] {
        assert_eq!(changed[field], true, "{field}");
    }
    let mut labels: Vec<&str> =
        changed["custom_labels"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    labels.sort_unstable();
    assert_eq!((labels, &changed["category"]), (vec!["blue", "red"], &json!("technical")));
    // What is left out stays, and an empty change changes nothing.
    assert_eq!(inbox.put(&path, json!({})).await.ok(), changed);
    let changed = inbox.put(&path, json!({ "starred": false })).await.ok();
    assert_eq!((&changed["starred"], &changed["read"]), (&json!(false), &json!(true)));
    // A label that goes leaves all mail; one set by hand stays until it is taken off.
    inbox.delete(&format!("custom-labels/{}", red["id"].as_str().unwrap())).await.ok();
    assert_eq!(inbox.get(&path).await["custom_labels"], json!(["blue"]));
    assert_eq!(inbox.get("emails?custom_label=blue").await["totalCount"], 1);
    assert_eq!(inbox.get("emails?custom_label=red").await["totalCount"], 0);
    let changed = inbox.put(&path, json!({ "custom_labels": [] })).await.ok();
    assert_eq!(changed["custom_labels"], json!([]));
    assert_refuses_fields(&inbox.put(&path, json!({ "custom_labels": ["no"] })).await, &["custom_labels[0]"]);
    assert_refuses_fields(&inbox.put(&path, json!({ "category": "news" })).await, &["category"]);
    assert_refuses_fields(&inbox.put(&path, json!({ "subject": "x" })).await, &["subject"]);
}

/// The answer to a change is kept with its key, as it was given.
// rules: READ-11, READ-13
#[both_engines]
async fn a_repeated_change_gets_the_same_answer(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let id = server.receive(&inbox.address, plain("One", "text")).await;
    let calls = [
        ("PUT", format!("{}/emails/{id}", inbox.path), json!({ "read": true })),
        ("POST", format!("{}/emails/{id}/move", inbox.path), json!({ "folderId": "archive" })),
        ("POST", format!("{}/emails/bulk-read", inbox.path), json!({ "ids": [id], "read": false })),
        ("POST", format!("{}/trash/empty", inbox.path), json!({})),
        ("POST", format!("{}/emails/wait", inbox.path), json!({ "after": "2026-07-01T00:00:00Z" })),
    ];
    for (number, (method, path, body)) in calls.into_iter().enumerate() {
        let key = inbox.key.with("idempotency-key", &format!("key-{number}"));
        let method: http::Method = method.parse().unwrap();
        let first = key.send(method.clone(), &path, Some(body.clone())).await;
        let again = key.send(method.clone(), &path, Some(body.clone())).await;
        assert_eq!((first.status, &first.bytes), (again.status, &again.bytes), "{path}");
        assert!(first.json().is_object(), "{path}: {}", first.text());
        assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), ("", "true"));
        let other = key.send(method, &path, Some(json!({ "ids": ["eml_x"] }))).await;
        other.expect(422, "idempotency_key_reused");
    }
}

// rules: READ-12, READ-13
#[both_engines]
async fn deleting_goes_by_way_of_trash(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let (one, two) = (
        server.receive(&inbox.address, plain("One", "text")).await,
        server.receive(&inbox.address, with_file("Two", "a.csv", "text/csv", b"1;2")).await,
    );
    let gone = |status: &str| json!({ "status": status });
    assert_eq!(inbox.delete(&format!("emails/{one}")).await.ok(), gone("trashed"));
    let trashed = inbox.get(&format!("emails/{one}")).await;
    assert_eq!((&trashed["folder_id"], &trashed["folder_name"]), (&json!("trash"), &json!("Trash")));
    assert_eq!(inbox.delete(&format!("emails/{one}")).await.ok(), gone("deleted"));
    assert_missing(&inbox.try_get(&format!("emails/{one}")).await, "Email");
    assert_missing(&inbox.delete(&format!("emails/{one}")).await, "Email");
    let attachment = inbox.get(&format!("emails/{two}")).await["attachments"][0]["id"].clone();
    let attachment = attachment.as_str().unwrap();
    assert_eq!(inbox.delete(&format!("emails/{two}?permanent=true")).await.ok(), gone("deleted"));
    assert_missing(&inbox.try_get(&format!("attachments/{attachment}")).await, "Attachment");
    assert_missing(&inbox.try_get(&format!("emails/{two}/raw")).await, "Email");
    let storage = inbox.get("storage").await;
    assert_eq!((storage["storage_gb"].as_f64(), storage["blob_count"].as_i64()), (Some(0.0), Some(0)));
    // Moving takes the id of a folder that mail can lie in.
    let id = server.receive(&inbox.address, plain("Three", "text")).await;
    let path = format!("emails/{id}/move");
    let moved = inbox.post(&path, json!({ "folderId": "archive" })).await.ok();
    assert_eq!((&moved["folder_id"], &moved["body"]), (&json!("archive"), &json!("text\n")));
    for folder in ["Archive", "nowhere", "draft", "scheduled", ""] {
        let refused = inbox.post(&path, json!({ "folderId": folder })).await;
        refused.expect(400, "folder_unknown");
    }
}

/// What lies in another mailbox of the same workspace is not found under this one's path.
// rules: READ-21
#[both_engines]
async fn mailboxes_of_a_workspace_do_not_see_each_other(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let id = server.receive(&other.address, with_file("One", "a.csv", "text/csv", b"1;2")).await;
    let email = other.get(&format!("emails/{id}")).await;
    let (thread, file) =
        (email["thread_id"].as_str().unwrap(), email["attachments"][0]["id"].as_str().unwrap());
    for (rest, what) in [
        (format!("emails/{id}"), "Email"),
        (format!("emails/{id}/context"), "Email"),
        (format!("emails/{id}/raw"), "Email"),
        (format!("emails/{id}/verification"), "Email"),
        (format!("emails/{id}/attachments/{file}"), "Email"),
        (format!("attachments/{file}"), "Attachment"),
        (format!("threads/{thread}"), "Thread"),
    ] {
        assert_missing(&inbox.try_get(&rest).await, what);
        assert_eq!(other.try_get(&rest).await.status, 200, "{rest}");
    }
    assert_missing(&inbox.put(&format!("emails/{id}"), json!({ "read": true })).await, "Email");
    assert_missing(&inbox.delete(&format!("emails/{id}?permanent=1")).await, "Email");
    let archive = json!({ "folderId": "archive" });
    assert_missing(&inbox.post(&format!("emails/{id}/move"), archive.clone()).await, "Email");
    assert_missing(&inbox.post(&format!("threads/{thread}/move"), archive).await, "Thread");
    assert_missing(&inbox.post(&format!("threads/{thread}/read"), json!({})).await, "Thread");
    for (name, more) in [("read", json!({ "read": true })), ("delete", json!({ "permanent": true }))] {
        let mut body = more;
        body["ids"] = json!([id]);
        let answer = inbox.post(&format!("emails/bulk-{name}"), body).await.ok();
        assert_eq!((&answer["updated"], &answer["not_found"]), (&json!(0), &json!([id])), "{name}");
    }
    assert_eq!(inbox.get("emails").await["totalCount"], 0);
    assert_eq!(inbox.get(&format!("emails?thread_id={thread}")).await["emails"], json!([]));
    assert_eq!(other.get(&format!("emails/{id}")).await, email);
}
