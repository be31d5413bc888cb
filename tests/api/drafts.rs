//! Drafts: saving, replacing, reading, sending, their files.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields},
    mails::{Inbox, plain, texts},
};

/// A file for a request.
pub(super) fn file(name: &str, kind: &str, bytes: &[u8]) -> Value {
    json!({ "filename": name, "type": kind, "disposition": "attachment", "content": STANDARD.encode(bytes) })
}

// rules: DRAFT-1, DRAFT-2, DRAFT-4, DRAFT-16
#[both_engines]
async fn a_draft_is_saved_read_replaced_and_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let draft = json!({
        "to": ["Ann Lee <ann@agents.test>", "bob@remote.test"], "cc": "\"Doe, J.\" <j@remote.test>",
        "bcc": "secret@remote.test", "subject": "Plans", "body": "Hello,\nworld",
    });
    let answer = inbox.post("drafts", draft).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("x-credits-charged"), "2");
    let saved = answer.ok();
    assert_eq!((&saved["draft_id"], &saved["status"]), (&saved["id"], &json!("draft")));
    assert_eq!(saved["recipient"], "Ann Lee <ann@agents.test>, bob@remote.test");
    assert_eq!((&saved["subject"], &saved["date"]), (&json!("Plans"), &json!("2026-07-14T09:00:00.000Z")));
    let id = saved["id"].as_str().unwrap().to_owned();
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!(read["body"], "Hello,\nworld");
    assert_eq!(read["to"], json!(["Ann Lee <ann@agents.test>", "bob@remote.test"]));
    assert_eq!(
        (&read["cc"], &read["bcc"]),
        (&json!(["\"Doe, J.\" <j@remote.test>"]), &json!(["secret@remote.test"]))
    );
    let email = inbox.get(&format!("emails/{id}")).await;
    assert_eq!((&email["folder_id"], &email["body"]), (&json!("draft"), &json!("Hello,\nworld")));
    assert_eq!((&email["bcc"], &email["delivery_status"]), (&json!("secret@remote.test"), &Value::Null));
    let raw = inbox.try_get(&format!("emails/{id}/raw")).await.text();
    assert!(!raw.to_lowercase().contains("bcc") && !raw.contains("secret@"), "{raw}");
    let event = inbox.key.get(&format!("/api/v1/workspaces/{}/events", inbox.workspace)).await.ok();
    let kinds = texts(&event["events"], "type");
    assert_eq!(kinds, ["mailbox.created", "draft.created"]);

    server.clock.advance(60);
    let replaced = json!({ "draft_id": id, "subject": "Other", "body": "<p>Hi</p>", "body_format": "html" });
    let saved = inbox.post("drafts", replaced).await.ok();
    assert_eq!((&saved["id"], &saved["recipient"]), (&json!(id), &json!("")));
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!(
        (&read["body"], &read["body_format"], &read["to"]),
        (&json!("<p>Hi</p>"), &json!("html"), &json!([]))
    );
    assert_eq!(read["thread_id"], email["thread_id"]);
    let list = inbox.get("drafts").await;
    assert_eq!((&list["totalCount"], list["drafts"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(inbox.get("emails?folder=draft").await["totalCount"], 1);

    let gone = inbox.delete(&format!("drafts/{id}")).await;
    assert_eq!(gone.status, 204);
    assert_missing(&inbox.try_get(&format!("drafts/{id}")).await, "Draft");
    assert_missing(&inbox.try_get(&format!("emails/{id}")).await, "Email");
    // As an email it goes for good too.
    let saved = inbox.post("drafts", json!({ "body": "x" })).await.ok();
    let id = saved["id"].as_str().unwrap();
    assert_eq!(inbox.delete(&format!("emails/{id}")).await.ok()["status"], "deleted");
    assert_missing(&inbox.try_get(&format!("drafts/{id}")).await, "Draft");
    assert_eq!(inbox.get("emails?folder=trash").await["totalCount"], 0);
}

// rules: DRAFT-3, SEND-19, SEND-22
#[both_engines]
async fn files_stay_go_and_are_replaced(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let files = json!([file("a.txt", "text/plain", b"A"), file("b.pdf", "application/pdf", b"%PDF B")]);
    let saved = inbox.post("drafts", json!({ "body": "x", "attachments": files })).await.ok();
    let id = saved["id"].as_str().unwrap().to_owned();
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!(texts(&read["attachments"], "filename"), ["a.txt", "b.pdf"]);
    let ids = texts(&read["attachments"], "id");
    // Left out: they stay, ids and all.
    inbox.post("drafts", json!({ "draft_id": id, "body": "y" })).await.ok();
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!(texts(&read["attachments"], "id"), ids);
    let bytes = inbox.try_get(&format!("attachments/{}", ids[1])).await;
    assert_eq!(bytes.text(), "%PDF B");
    // A list is the whole new set.
    let set = json!([{ "attachment_id": ids[1] }, file("c.txt", "text/plain", b"C")]);
    inbox.post("drafts", json!({ "draft_id": id, "body": "y", "attachments": set })).await.ok();
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!(texts(&read["attachments"], "filename"), ["b.pdf", "c.txt"]);
    assert_eq!(texts(&read["attachments"], "id")[0], ids[1]);
    // Another mailbox of the same workspace has no such file, and a file that is gone is gone.
    let foreign = json!({ "body": "y", "attachments": [{ "attachment_id": ids[1] }] });
    assert_missing(&other.post("drafts", foreign).await, "Attachment");
    let lost = json!({ "body": "y", "attachments": [{ "attachment_id": ids[0] }] });
    assert_missing(&inbox.post("drafts", lost).await, "Attachment");
    inbox.post("drafts", json!({ "draft_id": id, "body": "y", "attachments": [] })).await.ok();
    assert_eq!(inbox.get(&format!("drafts/{id}")).await["attachments"], json!([]));
    let foreign = json!({ "draft_id": id, "body": "stolen" });
    assert_missing(&other.post("drafts", foreign).await, "Draft");
}

/// A draft holds what may be stored; what may be sent is asked when it is sent, and what is refused then stays a draft.
// rules: SEND-20, SEND-21, DRAFT-17
#[both_engines]
async fn a_draft_holds_more_than_may_be_sent(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let files = |sizes: &[usize]| -> Value {
        let one = |size: &usize| file(&format!("{size}"), "application/octet-stream", &vec![7; *size]);
        sizes.iter().map(one).collect()
    };
    let draft =
        |files: Value| json!({ "to": inbox.address, "subject": "F", "body": "Here.", "attachments": files });
    let saved = inbox.post("drafts", draft(files(&[4 << 20]))).await.ok();
    let id = saved["id"].as_str().unwrap();
    let more = json!({ "draft_id": id, "to": inbox.address, "subject": "F", "body": "Here it is." });
    inbox.post("drafts", more).await.ok();
    let read = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!((&read["body"], &read["attachments"][0]["size"]), (&json!("Here it is."), &json!(4 << 20)));
    let at = "2026-07-15T10:00:00Z";
    for (path, body) in [
        (format!("drafts/{id}/send"), None),
        ("emails".to_owned(), Some(json!({ "source_draft_id": id }))),
        ("scheduled-sends".to_owned(), Some(json!({ "draft_id": id, "scheduled_send_at": at }))),
    ] {
        let refused = inbox.key.send(Method::POST, &format!("{}/{path}", inbox.path), body).await;
        refused.expect(413, "message_too_large");
        assert_eq!(refused.header("x-credits-charged"), "0");
        let kept = inbox.get(&format!("drafts/{id}")).await;
        assert_eq!(
            (&kept["status"], &kept["attachments"]),
            (&json!("draft"), &read["attachments"]),
            "{path}"
        );
    }
    for list in ["emails?folder=sent", "scheduled-sends"] {
        assert_eq!(inbox.get(list).await["totalCount"], 0, "{list}");
    }
    let mut small = draft(files(&[1 << 20]));
    small["draft_id"] = json!(id);
    inbox.post("drafts", small).await.ok();
    inbox.key.send(Method::POST, &format!("{}/drafts/{id}/send", inbox.path), None).await.ok();
    // The limits of storage themselves.
    inbox.post("drafts", draft(files(&[10 << 20, 10 << 20, 5 << 20]))).await.ok();
}

// rules: SEND-20, SEND-22
#[both_engines]
async fn too_many_and_too_large_files_are_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let draft = |files: Vec<Value>| json!({ "body": "<img src=\"cid:p1\">", "body_format": "html", "attachments": files });
    let small = |count: usize| (0..count).map(|n| file(&format!("{n}.txt"), "text/plain", b"x")).collect();
    inbox.post("drafts", draft(small(20))).await.ok();
    inbox.post("drafts", draft(small(21))).await.expect(413, "too_many_attachments");
    let large = vec![0; (10 << 20) + 1];
    inbox
        .post("drafts", draft(vec![file("a", "application/octet-stream", &large)]))
        .await
        .expect(413, "attachment_too_large");
    let nine = vec![0; 9 << 20];
    let three = (0..3).map(|n| file(&format!("{n}"), "application/octet-stream", &nine)).collect();
    inbox.post("drafts", draft(three)).await.expect(413, "attachments_too_large");
    let image = |id: &str, kind: &str| {
        let mut image = file("p.png", kind, b"\x89PNG\r\n\x1a\n");
        (image["disposition"], image["contentId"]) = (json!("inline"), json!(id));
        image
    };
    let saved = inbox.post("drafts", draft(vec![image("p1", "image/png")])).await.ok();
    let read = inbox.get(&format!("drafts/{}", saved["id"].as_str().unwrap())).await;
    assert_eq!(
        (&read["attachments"][0]["content_id"], &read["attachments"][0]["disposition"]),
        (&json!("p1"), &json!("inline"))
    );
    for (files, path) in [
        (vec![image("p2", "image/png")], "attachments[0].contentId"),
        (vec![image("p1", "image/svg+xml")], "attachments[0].type"),
        (vec![image("p1\r\nX: y", "image/png")], "attachments[0].contentId"),
        (vec![image("p1", "image/png"), image("p1", "image/png")], "attachments"),
        (
            vec![json!({ "filename": "a", "type": "text/plain", "content": "data:text/plain;base64,eA==" })],
            "attachments[0].content",
        ),
        (vec![json!({ "filename": "a", "type": "text/plain" })], "attachments[0].content"),
        (vec![json!({ "content": "eA==", "type": "text/plain" })], "attachments[0].filename"),
        (vec![json!({ "content": "eA==", "filename": "a" })], "attachments[0].type"),
        (
            vec![json!({ "content": "eA==", "filename": "a\nb", "type": "text/plain" })],
            "attachments[0].filename",
        ),
    ] {
        assert_refuses_fields(&inbox.post("drafts", draft(files)).await, &[path]);
    }
}

// rules: DRAFT-4, DRAFT-5, DRAFT-6
#[both_engines]
async fn a_draft_is_sent_as_it_stands_or_with_changes(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let draft = json!({
        "to": other.address, "subject": "Report", "body": "See the file.",
        "attachments": [file("r.csv", "text/csv", b"1;2")],
    });
    let saved = inbox.post("drafts", draft.clone()).await.ok();
    let id = saved["id"].as_str().unwrap();
    let answer = inbox.key.post(&format!("{}/drafts/{id}/send", inbox.path), json!({})).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (202, "5"));
    let sent = answer.ok();
    assert_eq!(sent["status"], "sent");
    assert_missing(&inbox.try_get(&format!("drafts/{id}")).await, "Draft");
    let email = inbox.get(&format!("emails/{}", sent["id"].as_str().unwrap())).await;
    assert_eq!((&email["folder_id"], &email["body"]), (&json!("sent"), &json!("See the file.")));
    let arrived = other.get("emails").await["emails"][0].clone();
    assert_eq!((&arrived["subject"], &arrived["attachment_count"]), (&json!("Report"), &json!(1)));
    let file = arrived["attachments"][0]["id"].as_str().unwrap();
    assert_eq!(other.try_get(&format!("attachments/{file}")).await.text(), "1;2");
    inbox.key.post(&format!("{}/drafts/{id}/send", inbox.path), json!({})).await.expect(404, "not_found");

    // With changes: what is given replaces what the draft says, and the draft is gone.
    let saved = inbox.post("drafts", draft).await.ok();
    let id = saved["id"].as_str().unwrap();
    let input = json!({ "source_draft_id": id, "subject": "Changed", "attachments": [] });
    let sent = inbox.post("emails", input).await.ok();
    let email = inbox.get(&format!("emails/{}", sent["id"].as_str().unwrap())).await;
    assert_eq!((&email["subject"], &email["attachment_count"]), (&json!("Changed"), &json!(0)));
    assert_missing(&inbox.try_get(&format!("emails/{id}")).await, "Email");
    assert_eq!(inbox.get("drafts").await["totalCount"], 0);
    inbox.post("emails", json!({ "source_draft_id": id, "subject": "Again" })).await.expect(404, "not_found");
    // One that nobody would get cannot be sent, and stays.
    let saved = inbox.post("drafts", json!({ "body": "x" })).await.ok();
    let id = saved["id"].as_str().unwrap();
    let refused = inbox.key.post(&format!("{}/drafts/{id}/send", inbox.path), json!({})).await;
    assert_refuses_fields(&refused, &["to"]);
    inbox.get(&format!("drafts/{id}")).await;
}

// rules: DRAFT-1, SEND-17
#[both_engines]
async fn a_draft_joins_the_thread_that_it_answers(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let id = server.receive(&inbox.address, plain("Question", "Why?")).await;
    let email = inbox.get(&format!("emails/{id}")).await;
    let by_id = json!({ "to": inbox.address, "body": "x", "in_reply_to": email["message_id"] });
    let by_thread = json!({ "to": inbox.address, "body": "x", "thread_id": email["thread_id"] });
    for input in [by_id, by_thread] {
        let saved = inbox.post("drafts", input).await.ok();
        let read = inbox.get(&format!("drafts/{}", saved["id"].as_str().unwrap())).await;
        assert_eq!(read["thread_id"], email["thread_id"]);
        assert_eq!(read["in_reply_to"], email["message_id"]);
    }
    // A Message-ID that is short of a host is one all the same: its sender chose it.
    let odd = plain("Odd", "Why?").replace("<Odd@remote.test>", "<odd-one>");
    let odd = server.receive(&inbox.address, odd).await;
    let odd = inbox.get(&format!("emails/{odd}")).await;
    assert_eq!(odd["message_id"], "odd-one");
    let answer = json!({ "to": inbox.address, "body": "x", "in_reply_to": odd["message_id"] });
    let saved = inbox.post("drafts", answer).await.ok();
    let read = inbox.get(&format!("drafts/{}", saved["id"].as_str().unwrap())).await;
    assert_eq!(read["thread_id"], odd["thread_id"]);
    let none = json!({ "body": "x", "thread_id": "thr_none" });
    assert_missing(&inbox.post("drafts", none).await, "Thread");
    // What is being written cannot be moved about.
    let draft = inbox.get("drafts").await["drafts"][0]["id"].as_str().unwrap().to_owned();
    inbox
        .post(&format!("emails/{draft}/move"), json!({ "folderId": "archive" }))
        .await
        .expect(400, "folder_protected");
    let thread = email["thread_id"].as_str().unwrap();
    let moved = inbox.post(&format!("threads/{thread}/move"), json!({ "folderId": "archive" })).await.ok();
    assert_eq!(moved["updated"], 1);
    assert_eq!(inbox.get("drafts").await["totalCount"], 3);
}
