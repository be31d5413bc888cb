//! Scheduled sends: when they leave, that they leave once, what keeps them back.

use model::Plan;
use operations::scheduled_sends::worker::run_due;
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{
    drafts::file,
    help::{assert_missing, assert_refuses_fields},
    mails::{Inbox, texts},
};

pub(super) fn later(to: &str, at: &str) -> Value {
    json!({ "to": to, "subject": "Later", "body": "Hello", "scheduled_send_at": at })
}

// rules: DRAFT-2, DRAFT-8, DRAFT-9, DRAFT-11, DRAFT-13, DRAFT-14
#[both_engines]
async fn a_scheduled_mail_leaves_at_its_time_and_once(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let answer = one.post("scheduled-sends", later(&two.address, "2026-07-14T10:00:00Z")).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (201, "5"));
    let item = answer.ok();
    assert_eq!((&item["draft_id"], &item["status"]), (&item["id"], &json!("scheduled")));
    assert_eq!(
        (&item["recipient"], &item["scheduled_send_at"]),
        (&json!(two.address), &json!("2026-07-14T10:00:00.000Z"))
    );
    let id = item["id"].as_str().unwrap().to_owned();
    assert_eq!(one.get(&format!("emails/{id}")).await["folder_id"], "scheduled");
    let sooner = one.post("scheduled-sends", later(&two.address, "2026-07-14T09:30:00Z")).await.ok();
    let list = one.get("scheduled-sends").await;
    assert_eq!(texts(&list["scheduled_sends"], "id"), [sooner["id"].as_str().unwrap(), &id]);
    assert_eq!(list["totalCount"], 2);

    let next = run_due(&server.app).await.unwrap();
    assert_eq!(next.unwrap().to_string(), "2026-07-14T09:30:00.000Z");
    assert_eq!(two.get("emails").await["totalCount"], 0);
    server.clock.set("2026-07-14T10:00:00Z");
    let (first, second) = tokio::join!(run_due(&server.app), run_due(&server.app));
    first.and(second).unwrap();
    assert_eq!(run_due(&server.app).await.unwrap(), None);
    assert_eq!(two.get("emails").await["totalCount"], 2);
    let read = one.get(&format!("scheduled-sends/{id}")).await;
    assert_eq!(read["status"], "sent");
    let email = one.get(&format!("emails/{id}")).await;
    assert_eq!((&email["folder_id"], &email["delivery_status"]), (&json!("sent"), &json!("sent")));
    assert_eq!(email["date"], "2026-07-14T10:00:00.000Z");
    assert_eq!(one.get("scheduled-sends").await["totalCount"], 0);
    assert_missing(&one.try_get(&format!("drafts/{id}")).await, "Draft");
    let events = one.key.get(&format!("/api/v1/workspaces/{}/events", one.workspace)).await.ok();
    let kinds = texts(&events["events"], "type");
    assert_eq!(kinds.iter().filter(|kind| *kind == "schedule.sent").count(), 2);
    // What has left cannot be moved or cancelled.
    let change = json!({ "scheduled_send_at": "2026-07-15T10:00:00Z" });
    one.key.patch(&format!("{}/scheduled-sends/{id}", one.path), change).await.expect(409, "draft_locked");
    one.delete(&format!("scheduled-sends/{id}")).await.expect(409, "draft_locked");
}

// rules: DRAFT-9, DRAFT-10, HTTP-13
#[both_engines]
async fn times_recipients_and_bodies_are_checked_when_scheduling(engine: Engine) {
    let server = Server::start(engine).await;
    let free = server.tenant(Plan::Free).await;
    let inbox = Inbox::of(&free).await;
    let to = inbox.address.clone();
    for at in ["2026-07-14T09:00:00Z", "2026-07-13T09:00:00Z", "2027-07-16T09:00:00Z"] {
        assert_refuses_fields(&inbox.post("scheduled-sends", later(&to, at)).await, &["scheduled_send_at"]);
    }
    // No clock is a day or more away from UTC.
    for offset in ["+25:00", "-25:00", "+24:00", "-24:00", "+2400", "+25"] {
        let at = format!("2026-07-20T09:00:00{offset}");
        assert_refuses_fields(&inbox.post("scheduled-sends", later(&to, &at)).await, &["scheduled_send_at"]);
        let listed = inbox.try_get(&format!("emails?date_start={}", super::help::encoded(&at))).await;
        assert_refuses_fields(&listed, &["date_start"]);
    }
    let at = "2026-07-15T09:00:00Z";
    assert_refuses_fields(
        &inbox.post("scheduled-sends", later(&to, "tomorrow")).await,
        &["scheduled_send_at"],
    );
    let without = |name: &str| {
        let mut input = later(&to, at);
        input.as_object_mut().unwrap().remove(name);
        input
    };
    assert_refuses_fields(&inbox.post("scheduled-sends", without("to")).await, &["to"]);
    assert_refuses_fields(&inbox.post("scheduled-sends", without("body")).await, &["body"]);
    assert_refuses_fields(
        &inbox.post("scheduled-sends", without("scheduled_send_at")).await,
        &["scheduled_send_at"],
    );
    inbox.post("scheduled-sends", later("x@remote.test", at)).await.expect(422, "outbound_not_configured");
    let many: Vec<String> = (0..11).map(|n| to.replace('@', &format!("+{n}@"))).collect();
    let mut input = later(&to, at);
    input["to"] = json!(many);
    inbox.post("scheduled-sends", input).await.expect(400, "email_send_recipient_limit_exceeded");
    // A draft brings what the request leaves out.
    let draft = json!({ "to": to, "subject": "D", "body": "From the draft", "attachments": [file("a.txt", "text/plain", b"A")] });
    let draft = inbox.post("drafts", draft).await.ok();
    let item =
        inbox.post("scheduled-sends", json!({ "draft_id": draft["id"], "scheduled_send_at": at })).await.ok();
    assert_eq!((&item["id"], &item["subject"]), (&draft["id"], &json!("D")));
    assert_eq!(inbox.get("drafts").await["totalCount"], 0);
    let id = item["id"].as_str().unwrap();
    inbox.post("drafts", json!({ "draft_id": id, "body": "changed" })).await.expect(409, "draft_locked");
    inbox.key.post(&format!("{}/drafts/{id}/send", inbox.path), json!({})).await.expect(409, "draft_locked");
    server.clock.set("2026-07-15T09:00:01Z");
    run_due(&server.app).await.unwrap();
    let arrived = inbox.get("emails?folder=inbox").await["emails"][0].clone();
    assert_eq!((&arrived["subject"], &arrived["attachment_count"]), (&json!("D"), &json!(1)));
}

// rules: DRAFT-14, DRAFT-16
#[both_engines]
async fn a_schedule_is_moved_and_cancelled(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let item = one.post("scheduled-sends", later(&two.address, "2026-07-14T10:00:00Z")).await.ok();
    let id = item["id"].as_str().unwrap().to_owned();
    let path = format!("{}/scheduled-sends/{id}", one.path);
    let moved = one.key.patch(&path, json!({ "scheduled_send_at": "2026-07-14T12:00:00Z" })).await.ok();
    assert_eq!(moved["scheduled_send_at"], "2026-07-14T12:00:00.000Z");
    assert_refuses_fields(
        &one.key.patch(&path, json!({ "scheduled_send_at": "2026-07-14T08:00:00Z" })).await,
        &["scheduled_send_at"],
    );
    server.clock.set("2026-07-14T11:00:00Z");
    run_due(&server.app).await.unwrap();
    assert_eq!(two.get("emails").await["totalCount"], 0);
    let draft = one.delete(&format!("scheduled-sends/{id}")).await.ok();
    assert_eq!((&draft["id"], &draft["status"]), (&json!(id), &json!("draft")));
    assert_eq!(one.get(&format!("drafts/{id}")).await["body"], "Hello");
    assert_missing(&one.try_get(&format!("scheduled-sends/{id}")).await, "Scheduled send");
    // Deleting the email of one cancels it too.
    let item = one.post("scheduled-sends", later(&two.address, "2026-07-14T12:00:00Z")).await.ok();
    let other = item["id"].as_str().unwrap();
    assert_eq!(one.delete(&format!("emails/{other}")).await.ok()["status"], "cancelled");
    assert_eq!(one.get(&format!("emails/{other}")).await["folder_id"], "draft");
    let item = one.post("scheduled-sends", later(&two.address, "2026-07-14T12:00:00Z")).await.ok();
    let bulk = one.post("emails/bulk-delete", json!({ "ids": [item["id"], id] })).await.ok();
    assert_eq!((&bulk["cancelledScheduledCount"], &bulk["deletedCount"]), (&json!(1), &json!(1)));
    server.clock.set("2026-07-15T12:00:00Z");
    run_due(&server.app).await.unwrap();
    assert_eq!(two.get("emails").await["totalCount"], 0);
    assert_missing(&two.try_get(&format!("scheduled-sends/{id}")).await, "Scheduled send");
}

// rules: DRAFT-10, DRAFT-12, DRAFT-13
#[both_engines]
async fn a_full_quota_defers_and_never_sends(engine: Engine) {
    let server = Server::start(engine).await;
    let free = server.tenant(Plan::Free).await;
    let (inbox, other) = (Inbox::of(&free).await, Inbox::new(&server).await);
    let many: Vec<String> = (0..9).map(|n| other.address.replace('@', &format!("+{n}@"))).collect();
    let mut input = later(&other.address, "2026-07-14T09:00:30Z");
    input["to"] = json!(many[..2]);
    let item = inbox.post("scheduled-sends", input).await.ok();
    let id = item["id"].as_str().unwrap().to_owned();
    server.clock.advance(10);
    inbox.post("emails", json!({ "to": many, "subject": "S", "text": "T" })).await.ok();
    server.clock.advance(20);
    let next = run_due(&server.app).await.unwrap();
    assert_eq!(next.unwrap().to_string(), "2026-07-14T09:01:10.000Z");
    let read = inbox.get(&format!("scheduled-sends/{id}")).await;
    assert_eq!(
        (&read["status"], &read["scheduled_send_at"]),
        (&json!("deferred"), &json!("2026-07-14T09:01:10.000Z"))
    );
    assert_eq!(other.get("emails").await["totalCount"], 9);
    let events = inbox.key.get(&format!("/api/v1/workspaces/{}/events", inbox.workspace)).await.ok();
    assert_eq!(texts(&events["events"], "type").last().unwrap(), "message.deferred");
    server.clock.set("2026-07-14T09:01:10Z");
    run_due(&server.app).await.unwrap();
    assert_eq!(inbox.get(&format!("scheduled-sends/{id}")).await["status"], "sent");
    assert_eq!(other.get("emails").await["totalCount"], 11);
}

// rules: DRAFT-11, DRAFT-15
#[both_engines]
async fn neither_nodes_nor_clocks_send_twice(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    for minute in 1..=20 {
        one.post("scheduled-sends", later(&two.address, &format!("2026-07-14T09:{minute:02}:00Z")))
            .await
            .ok();
    }
    // SQLite has one node; its own tasks compete then.
    let node = if matches!(engine, Engine::Postgres) {
        server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await.app
    } else {
        server.app.clone()
    };
    server.clock.set("2026-07-14T10:30:00Z");
    let (first, second, third) = tokio::join!(run_due(&server.app), run_due(&node), run_due(&node));
    first.and(second).and(third).unwrap();
    // Back, and forward again.
    for at in ["2026-07-14T08:00:00Z", "2026-07-15T09:00:00Z", "2026-07-14T09:10:00Z", "2026-07-16T00:00:00Z"]
    {
        server.clock.set(at);
        run_due(&server.app).await.unwrap();
        run_due(&node).await.unwrap();
    }
    let found = two.get("emails?limit=100").await;
    let mut ids = texts(&found["emails"], "message_id");
    ids.sort();
    ids.dedup();
    assert_eq!((found["totalCount"].clone(), ids.len()), (json!(20), 20));
}

// rules: DRAFT-5, DRAFT-13
#[both_engines]
async fn one_that_is_leaving_is_locked_and_one_that_cannot_leave_fails(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let item = one.post("scheduled-sends", later(&two.address, "2026-07-14T10:00:00Z")).await.ok();
    let id = item["id"].as_str().unwrap().to_owned();
    server.clock.set("2026-07-14T10:00:00Z");
    // A node takes it on and is lost.
    let (now, until) = (server.clock.now(), server.clock.now().plus_seconds(15));
    let workspace = one.workspace.clone();
    let claimed = server
        .app
        .db()
        .system_write(async move |tx| store::drafts::claim_due(tx, &workspace, (now, until), 10).await);
    assert_eq!(claimed.await.unwrap().len(), 1);
    assert_eq!(one.get(&format!("scheduled-sends/{id}")).await["status"], "sending");
    let path = format!("{}/scheduled-sends/{id}", one.path);
    one.key
        .patch(&path, json!({ "scheduled_send_at": "2026-07-15T10:00:00Z" }))
        .await
        .expect(409, "draft_locked");
    one.key.delete(&path).await.expect(409, "draft_locked");
    one.delete(&format!("emails/{id}")).await.expect(409, "draft_locked");
    one.delete(&format!("drafts/{id}")).await.expect(409, "draft_locked");
    one.post("emails", json!({ "source_draft_id": id })).await.expect(409, "draft_locked");
    run_due(&server.app).await.unwrap();
    assert_eq!(two.get("emails").await["totalCount"], 0, "it is believed to be alive");
    server.clock.advance(15);
    run_due(&server.app).await.unwrap();
    assert_eq!(two.get("emails").await["totalCount"], 1);

    // The mailbox's storage is full when its time comes.
    let item = one.post("scheduled-sends", later(&two.address, "2026-07-14T11:00:00Z")).await.ok();
    let id = item["id"].as_str().unwrap().to_owned();
    operations::admin::set_plan(&server.app, one.workspace.clone(), Plan::Free, &testkit::operator())
        .await
        .unwrap();
    let sql =
        "UPDATE mailbox_counter SET value = 4000000000 WHERE workspace_id = $1 AND name = 'storage_bytes'";
    server.app.db().write(&one.workspace, async move |tx| tx.run(sql, &[]).await).await.unwrap();
    server.clock.set("2026-07-14T11:00:00Z");
    run_due(&server.app).await.unwrap();
    let read = one.get(&format!("scheduled-sends/{id}")).await;
    assert_eq!(read["status"], "failed");
    assert!(read["last_error"].as_str().unwrap().contains("storage"), "{read}");
    let draft = one.delete(&format!("scheduled-sends/{id}")).await.ok();
    assert_eq!(draft["status"], "draft");
}
