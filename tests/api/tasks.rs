//! Tasks that triagers found.

use serde_json::{Value, json};
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields},
    mails::{Inbox, plain, texts},
    triage::{answer_all, run_due},
};

async fn found(server: &Server, inbox: &Inbox, titles: &[&str]) -> String {
    let tasks = json!([{ "kind": "extract_tasks", "config": { "limit": 10 } }]);
    let body = json!({ "name": "Finder", "triggers": [{ "kind": "mail.received" }], "tasks": tasks });
    let triager = inbox.post("task-triagers", body).await.ok();
    for title in titles {
        server.clock.advance(1);
        server.receive(&inbox.address, plain(title, "Please do it.")).await;
        run_due(server).await;
    }
    triager["id"].as_str().unwrap().to_owned()
}

fn finder() -> ServerOptions {
    let model = ScriptedModel::answering(|question| {
        let title = question["mail"]["subject"].clone();
        answer_all(
            question,
            &json!({
                "summary": "One task.",
                "tasks": [{ "title": title, "due_at": "2026-08-01T12:00:00Z", "priority": "high" }],
            }),
        )
    });
    ServerOptions { assistant: Some(model), ..ServerOptions::default() }
}

/// rules: TRIAGE-5
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn found_tasks_are_listed_page_by_page_and_changed(engine: Engine) {
    let server = Server::with(engine, finder()).await;
    let inbox = Inbox::new(&server).await;
    let triager = found(&server, &inbox, &["One", "Two", "Three"]).await;
    let page = inbox.get("tasks").await;
    assert_eq!(texts(&page["tasks"], "title"), ["Three", "Two", "One"]);
    assert_eq!((&page["has_more"], &page["next_cursor"]), (&json!(false), &Value::Null));
    let first = page["tasks"][0].clone();
    assert_eq!(
        first,
        json!({
            "id": first["id"], "title": "Three", "due_at": "2026-08-01T12:00:00.000Z", "priority": "high",
            "status": "open", "email_id": first["email_id"], "triager_id": triager,
            "created_at": "2026-07-14T09:00:03.000Z", "updated_at": "2026-07-14T09:00:03.000Z",
        })
    );
    let short = inbox.get("tasks?limit=2").await;
    assert_eq!(
        (texts(&short["tasks"], "title"), &short["has_more"]),
        (vec!["Three".into(), "Two".into()], &json!(true))
    );
    let rest = inbox.get(&format!("tasks?limit=2&cursor={}", short["next_cursor"].as_str().unwrap())).await;
    assert_eq!(texts(&rest["tasks"], "title"), ["One"]);
    let other_query = format!("tasks?status=open&cursor={}", short["next_cursor"].as_str().unwrap());
    inbox.try_get(&other_query).await.expect(400, "invalid_cursor");

    let one = format!("tasks/{}", first["id"].as_str().unwrap());
    server.clock.advance(7);
    let done = inbox.put(&one, json!({ "status": "done" })).await;
    assert_eq!(done.header("x-credits-charged"), "2");
    let mut wanted = first.clone();
    wanted["status"] = json!("done");
    wanted["updated_at"] = json!("2026-07-14T09:00:10.000Z");
    assert_eq!(done.ok(), wanted);
    let change = json!({ "status": "dismissed", "title": " New ", "priority": "low", "due_at": "2026-09-01T00:00:00Z" });
    let changed = inbox.put(&one, change).await.ok();
    assert_eq!(
        (&changed["title"], &changed["priority"], &changed["due_at"]),
        (&json!("New"), &json!("low"), &json!("2026-09-01T00:00:00.000Z"))
    );
    assert_eq!(texts(&inbox.get("tasks?status=open").await["tasks"], "title"), ["Two", "One"]);
    assert_eq!(texts(&inbox.get("tasks?status=dismissed").await["tasks"], "title"), ["New"]);
    assert_eq!(inbox.get("tasks?status=done").await["tasks"], json!([]));
    for (body, field) in [
        (json!({ "status": "gone" }), "status"),
        (json!({ "priority": "huge" }), "priority"),
        (json!({ "title": "" }), "title"),
        (json!({ "title": "x".repeat(201) }), "title"),
        (json!({ "title": "a\nb" }), "title"),
        (json!({ "due_at": "tomorrow" }), "due_at"),
        (json!({ "email_id": "eml_1" }), "email_id"),
    ] {
        assert_refuses_fields(&inbox.put(&one, body).await, &[field]);
    }
    assert_refuses_fields(&inbox.try_get("tasks?limit=101").await, &["limit"]);
    assert_refuses_fields(&inbox.try_get("tasks?status=new").await, &["status"]);
    for other in [inbox.another().await, Inbox::new(&server).await] {
        assert_missing(&other.put(&one, json!({ "status": "done" })).await, "Task");
        assert_eq!(other.get("tasks").await["tasks"], json!([]));
    }
    // What is settled goes after a while, what is open stays.
    server.clock.advance(91 * 86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(texts(&inbox.get("tasks").await["tasks"], "title"), ["Two", "One"]);
}
