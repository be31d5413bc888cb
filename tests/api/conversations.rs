//! Conversations with the mailbox agent: lists, names, messages, prices.

use model::{ConversationId, Plan, TriagerId, conversations::Conversation};
use operations::ports::{AssistantFault, ChatMessage};
use serde_json::{Value, json};
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields},
    mails::Inbox,
};

/// A server with a model.
pub(super) fn with(model: &ScriptedModel) -> ServerOptions {
    ServerOptions { assistant: Some(model.clone()), ..ServerOptions::default() }
}

/// A new conversation of a mailbox: its path.
pub(super) async fn begin(inbox: &Inbox) -> String {
    let all = format!("{}/agent-conversations", inbox.path);
    let made = inbox.key.post(&all, json!({})).await.ok();
    format!("{all}/{}", made["id"].as_str().unwrap())
}

fn texts(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().unwrap().iter();
    messages
        .map(|one| format!("{}: {}", one["role"].as_str().unwrap(), one["content"].as_str().unwrap()))
        .collect()
}

/// rules: AGENT-1
#[both_engines]
async fn conversations_are_made_listed_renamed_and_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let all = format!("{}/agent-conversations", inbox.path);
    assert_eq!(inbox.key.get(&all).await.ok(), json!({ "conversations": [], "nextCursor": null }));
    let email = server.receive(&inbox.address, "From: a@remote.test\r\nSubject: S\r\n\r\nT\r\n").await;
    let thread = inbox.get(&format!("emails/{email}")).await["thread_id"].clone();
    let answer = inbox.key.post(&all, json!({ "title": " Invoices ", "thread_id": thread })).await;
    assert_eq!(answer.status, 201);
    let made = answer.json();
    assert!(made["id"].as_str().unwrap().starts_with("conv_"));
    let now = "2026-07-14T09:00:00.000Z";
    assert_eq!(
        made,
        json!({ "id": made["id"], "title": "Invoices", "message_count": 0, "thread_id": thread, "triager_id": null,
                    "created_at": now, "updated_at": now })
    );
    let nowhere = json!({ "thread_id": "thr_01h8xgjy4n7r2v6c0d5t9kqwez" });
    assert_missing(&inbox.key.post(&all, nowhere).await, "Thread");
    for title in ["", " ", &"x".repeat(81), "a\nb"] {
        assert_refuses_fields(&inbox.key.post(&all, json!({ "title": title })).await, &["title"]);
    }
    assert_refuses_fields(&inbox.key.post(&all, json!({ "name": "x" })).await, &["name"]);

    let mut made_ids = vec![made["id"].clone()];
    for _ in 0..22 {
        server.clock.advance(1);
        made_ids.push(inbox.key.post(&all, json!({})).await.ok()["id"].clone());
    }
    let (mut listed, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = inbox.key.get(&format!("{all}{cursor}")).await.ok();
        let found = page["conversations"].as_array().unwrap();
        sizes.push(found.len());
        listed.extend(found.iter().map(|one| one["id"].clone()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("?cursor={next}");
    }
    made_ids.reverse();
    assert_eq!((sizes, listed), (vec![10, 10, 3], made_ids));
    inbox.key.get(&format!("{all}?cursor=abc")).await.expect(400, "invalid_cursor");

    server.clock.advance(1);
    let one = format!("{all}/{}", made["id"].as_str().unwrap());
    let renamed = inbox.key.patch(&one, json!({ "title": "Bills" })).await.ok();
    assert_eq!((&renamed["title"], &renamed["id"]), (&json!("Bills"), &made["id"]));
    assert_eq!(inbox.key.get(&all).await.ok()["conversations"][0], renamed);
    assert_eq!(inbox.key.delete(&one).await.status, 204);
    assert_missing(&inbox.key.delete(&one).await, "Conversation");
    assert_missing(&inbox.key.get(&format!("{one}/messages")).await, "Conversation");
}

/// rules: AGENT-1
#[both_engines]
async fn a_triagers_conversation_is_made_once_and_cannot_be_changed(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let triager = TriagerId::from("trg_one");
    let mut ids = Vec::new();
    for attempt in ["conv_a", "conv_b"] {
        let (mailbox, triager, now) = (inbox.id.clone(), triager.clone(), server.clock.now());
        let fresh = Conversation {
            id: ConversationId::from(attempt),
            title: "Replies".to_owned(),
            message_count: 0,
            thread_id: None,
            triager_id: None,
            created_at: now,
            updated_at: now,
        };
        let found = server.app.db().write(&inbox.workspace, async move |tx| {
            store::conversations::find_or_insert_of_triager(tx, &mailbox, &triager, fresh).await
        });
        ids.push(found.await.unwrap().id);
    }
    assert_eq!(ids[0], ids[1]);
    let one = format!("{}/agent-conversations/{}", inbox.path, ids[0]);
    inbox.key.patch(&one, json!({ "title": "Mine" })).await.expect(400, "conversation_protected");
    inbox.key.delete(&one).await.expect(400, "conversation_protected");
    assert_eq!(inbox.get("agent-conversations").await["conversations"][0]["triager_id"], "trg_one");
}

/// The pages of a conversation with four messages, and messages that are refused.
async fn pages_and_refusals(inbox: &Inbox, messages: &str) {
    let newest = inbox.key.get(&format!("{messages}?order=desc&limit=3")).await.ok();
    assert_eq!(texts(&newest), ["assistant: You said two", "user: two", "assistant: You said one"]);
    let cursor = newest["nextCursor"].as_str().unwrap();
    let oldest = inbox.key.get(&format!("{messages}?order=desc&limit=3&cursor={cursor}")).await.ok();
    assert_eq!((texts(&oldest), &oldest["nextCursor"]), (vec!["user: one".to_owned()], &Value::Null));
    inbox.key.get(&format!("{messages}?limit=3&cursor={cursor}")).await.expect(400, "invalid_cursor");
    for limit in ["0", "51"] {
        assert_refuses_fields(&inbox.key.get(&format!("{messages}?limit={limit}")).await, &["limit"]);
    }
    for (field, body) in [
        ("content", json!({ "content": " " })),
        ("content", json!({ "content": "x".repeat(16_001) })),
        ("id", json!({ "content": "x", "id": "a b" })),
        ("aprove", json!({ "content": "x", "aprove": true })),
    ] {
        assert_refuses_fields(&inbox.key.post(messages, body).await, &[field]);
    }
}

/// rules: AGENT-2, AGENT-3, AGENT-10
#[both_engines]
async fn a_message_is_answered_kept_and_charged_once(engine: Engine) {
    let model = ScriptedModel::new(|request| {
        let Some(ChatMessage::User(last)) = request.messages.last() else { panic!("{request:?}") };
        Ok(operations::ports::ChatReply { text: format!("You said {last}"), calls: Vec::new() })
    });
    let server = Server::with(engine, with(&model)).await;
    let tenant = server.tenant(Plan::Developer).await;
    let inbox = Inbox::of(&tenant).await;
    let one = begin(&inbox).await;
    let messages = format!("{one}/messages");
    let answer = inbox.key.post(&messages, json!({ "content": "one", "id": "my-id.1" })).await;
    let turn = answer.ok();
    assert_eq!((answer.status, answer.header("x-credits-charged")), (200, "25"));
    assert_eq!((&turn["message"]["id"], &turn["message"]["role"]), (&json!("my-id.1"), &json!("user")));
    assert_eq!(turn["reply"]["content"], "You said one");
    assert!(turn["reply"]["id"].as_str().unwrap().starts_with("msg_"));

    // The same id again: nothing is asked, nothing is charged.
    let asked = model.asked().len();
    let again = inbox.key.post(&messages, json!({ "content": "else", "id": "my-id.1" })).await;
    assert_eq!(again.expect(409, "message_exists").header("x-credits-charged"), "0");
    assert_eq!(model.asked().len(), asked);

    // The same Idempotency-Key again: the same answer.
    let keyed = inbox.key.with("idempotency-key", "k1");
    let first = keyed.post(&messages, json!({ "content": "two" })).await;
    let repeated = keyed.post(&messages, json!({ "content": "two" })).await;
    assert_eq!((first.bytes.clone(), first.status), (repeated.bytes.clone(), 200));
    assert_eq!((repeated.header("idempotent-replayed"), repeated.header("x-credits-charged")), ("true", "0"));

    let page = inbox.key.get(&messages).await.ok();
    assert_eq!(
        texts(&page),
        ["user: one", "assistant: You said one", "user: two", "assistant: You said two"]
    );
    assert_eq!(inbox.get("agent-conversations").await["conversations"][0]["message_count"], 4);
    // The history reaches the model, oldest first.
    let last = model.asked().pop().unwrap();
    let said: Vec<String> = last
        .messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::User(text) | ChatMessage::Assistant { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["one", "You said one", "two"]);
    pages_and_refusals(&inbox, &messages).await;
}

/// rules: AGENT-8
#[both_engines]
async fn without_a_model_everything_that_needs_one_says_what_to_do(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let inbox = Inbox::of(&tenant).await;
    let messages = format!("{}/messages", begin(&inbox).await);
    let draft = inbox.key.post(&format!("{}/drafts", inbox.path), json!({ "body": "T" })).await.ok();
    let anew = json!({ "draftId": draft["id"], "prompt": "shorter", "body": "T" });
    for answer in [
        inbox.key.post(&messages, json!({ "content": "Hello" })).await,
        inbox.key.with("accept", "text/event-stream").post(&messages, json!({ "content": "Hello" })).await,
        inbox.key.post(&format!("{}/drafts/regenerate", inbox.path), anew).await,
    ] {
        answer.expect(503, "ai_unavailable");
        assert!(answer.json()["fix"].as_str().unwrap().contains("ai.base_url"), "{}", answer.text());
        assert_eq!(answer.header("x-credits-charged"), "0");
    }
    assert_eq!(inbox.key.get(&messages).await.ok()["messages"], json!([]));
    let config = server.anonymous().get("/api/v1/config").await.ok();
    assert_eq!(config["features"]["ai"], false);
    let with_model = Server::with(engine, with(&ScriptedModel::saying("x"))).await;
    assert_eq!(with_model.anonymous().get("/api/v1/config").await.ok()["features"]["ai"], true);
}

/// rules: AGENT-10, AGENT-11
#[both_engines]
async fn a_failed_answer_leaves_nothing_behind(engine: Engine) {
    let model = ScriptedModel::new(|_| Err(AssistantFault::Unavailable("asleep".to_owned())));
    let server = Server::with(engine, with(&model)).await;
    let tenant = server.tenant(Plan::Developer).await;
    let inbox = Inbox::of(&tenant).await;
    let one = begin(&inbox).await;
    let messages = format!("{one}/messages");
    let credits = format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace);
    let before = inbox.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    for _ in 0..2 {
        // The second attempt shows that the first left the conversation free.
        let answer = inbox.key.post(&messages, json!({ "content": "Hello", "id": "same" })).await;
        answer.expect(503, "ai_unavailable");
        assert_eq!(answer.header("x-credits-charged"), "0");
    }
    assert_eq!(inbox.key.get(&messages).await.ok()["messages"], json!([]));
    let after = inbox.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    assert_eq!(after - before, 2, "only the reads");

    // Somebody else is answering in this conversation, and then is lost.
    let id = ConversationId::from(one.rsplit('/').next().unwrap());
    let (mailbox, now) = (inbox.id.clone(), server.clock.now());
    let until = now.plus_seconds(180);
    let taken = server.app.db().write(&inbox.workspace, async move |tx| {
        store::conversations::claim(tx, &mailbox, &id, now, until).await
    });
    assert!(taken.await.unwrap());
    let busy = inbox.key.post(&messages, json!({ "content": "Hello" })).await;
    assert_eq!(busy.expect(409, "conversation_busy").header("retry-after"), "5");
    server.clock.advance(181);
    inbox.key.post(&messages, json!({ "content": "Hello" })).await.expect(503, "ai_unavailable");
}

/// What is said lies in the store as unreadable bytes.
/// rules: AGENT-10
#[both_engines]
async fn what_is_said_is_sealed(engine: Engine) {
    let server = Server::with(engine, with(&ScriptedModel::saying("a-telling-answer"))).await;
    let inbox = Inbox::new(&server).await;
    let messages = format!("{}/messages", begin(&inbox).await);
    inbox.key.post(&messages, json!({ "content": "a-telling-question" })).await.ok();
    let sql = "SELECT content FROM conversation_message WHERE workspace_id = $1";
    let kept: Vec<(Vec<u8>,)> =
        server.app.db().read(&inbox.workspace, async |tx| tx.all(sql, &[]).await).await.unwrap();
    assert_eq!(kept.len(), 2);
    for (bytes,) in kept {
        assert!(!String::from_utf8_lossy(&bytes).contains("telling"));
    }
}
