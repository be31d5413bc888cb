//! Keys that see some mailboxes of a workspace: every place that is not inside a mailbox leaves out the others.

use std::{sync::Arc, time::Duration};

use model::{Plan, Scope};
use operations::webhooks::outbox;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Receiver, ScriptedModel, Server, ServerOptions, Tenant, both_engines};

use super::{
    help::{assert_missing, assert_refused, encoded, new_mailbox, path_of},
    mails::plain,
    memory::recall_with,
};

/// A workspace with two mailboxes, and a key that sees the first.
struct Two {
    server: Server,
    tenant: Tenant,
    own: Value,
    other: Value,
    key: Caller,
    workspace: String,
}

impl Two {
    async fn new(engine: Engine) -> Self {
        Self::with(engine, ServerOptions::default()).await
    }

    async fn with(engine: Engine, mut options: ServerOptions) -> Self {
        options.plans.developer.credits_per_period = model::Limit::of(1_000_000);
        let server = Server::with(engine, options).await;
        let tenant = server.tenant(Plan::Developer).await;
        let own = new_mailbox(&tenant.key, "Own").await;
        let other = new_mailbox(&tenant.key, "Other").await;
        let key = server.narrowed(&tenant.workspace, None, Some(&[own["email"].as_str().unwrap()])).await;
        let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
        Self { server, tenant, own, other, key, workspace }
    }

    async fn receive(&self, mailbox: &Value, subject: &str, text: &str) -> String {
        self.server.receive(mailbox["email"].as_str().unwrap(), plain(subject, text)).await.to_string()
    }

    async fn get(&self, rest: &str) -> Value {
        self.key.get(&format!("{}{rest}", self.workspace)).await.ok()
    }
}

/// rules: AUTH-31
#[both_engines]
async fn lists_counts_and_usage_have_own_mailboxes_only(engine: Engine) {
    let two = Two::new(engine).await;
    two.receive(&two.other, "Secret", "s").await;
    two.receive(&two.own, "Mine", "m").await;
    let whole = two.tenant.key.get("/api/v1/mailboxes").await.ok();
    let own: Vec<&Value> =
        whole.as_array().unwrap().iter().filter(|one| one["id"] == two.own["id"]).collect();
    assert_eq!(two.key.get("/api/v1/mailboxes").await.ok(), json!(own));
    assert_eq!(two.get("/mailboxes").await, json!(own));
    assert_eq!(two.get("").await["mailbox_count"], 1);
    assert_eq!(two.key.get("/api/v1/workspaces").await.ok()["workspaces"][0]["mailbox_count"], 1);
    let usage = two.get("/usage/email").await;
    let listed: Vec<&Value> = usage["mailboxes"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!((listed, &usage["mailboxes"][0]["received"]), (vec![&two.own["id"]], &json!(1)));
    // By every name, in any spelling.
    let address = two.own["email"].as_str().unwrap().to_uppercase();
    for name in [two.own["id"].as_str().unwrap(), two.own["public_id"].as_str().unwrap(), &address] {
        let found = two.key.get(&format!("/api/v1/mailboxes/{}", encoded(name))).await.ok();
        assert_eq!(found["id"], two.own["id"]);
    }
    two.key.post("/api/v1/mailboxes", json!({ "name": "New" })).await.expect(403, "scope_required");
}

/// rules: AUTH-31
#[both_engines]
async fn events_are_those_of_own_mailboxes_on_full_pages(engine: Engine) {
    let two = Two::new(engine).await;
    for number in 0..5 {
        two.receive(&two.other, &format!("Secret {number}"), "s").await;
        two.receive(&two.own, &format!("Mine {number}"), "m").await;
    }
    let whole = two.tenant.key.get(&format!("{}/events", two.workspace)).await.ok();
    let all = whole["events"].as_array().unwrap();
    let own: Vec<&Value> = all.iter().filter(|one| one["mailbox_id"] == two.own["id"]).collect();
    assert_eq!(own.len(), 6);
    let mut listed = Vec::new();
    let mut after = json!(0);
    loop {
        let page = two.get(&format!("/events?after={after}&limit=2")).await;
        let events = page["events"].as_array().unwrap().clone();
        assert_eq!(page["has_more"] == json!(true), listed.len() + events.len() < 6, "{page}");
        assert_eq!(events.len(), 2, "no page is short");
        let is_last = page["has_more"] == json!(false);
        let seen = if is_last { &whole["next_after"] } else { &events[1]["sequence"] };
        assert_eq!(page["next_after"], *seen);
        after = page["next_after"].clone();
        listed.extend(events);
        if page["has_more"] == json!(false) {
            break;
        }
    }
    assert_eq!(json!(listed), json!(own));
    // What others get is passed over once, and not shown.
    two.receive(&two.other, "Secret", "s").await;
    let page = two.get(&format!("/events?after={after}")).await;
    let last = after.as_i64().unwrap() + 1;
    assert_eq!(page, json!({ "events": [], "has_more": false, "next_after": last }));
}

/// rules: AUTH-31, EVENT-8
#[both_engines]
async fn waits_and_streams_hear_of_own_mailboxes(engine: Engine) {
    let two = Two::new(engine).await;
    let last = two.tenant.key.get(&format!("{}/events", two.workspace)).await.ok()["next_after"].clone();
    let key = two.key.clone();
    let path = format!("{}/events?after={last}&wait=20", two.workspace);
    let poll = tokio::spawn(async move { key.get(&path).await.ok() });
    let mut stream = two.key.stream(&format!("{}/events/stream?after=0", two.workspace)).await;
    let first = stream.next().await.unwrap().1;
    assert_eq!((&first["type"], &first["mailbox_id"]), (&json!("mailbox.created"), &two.own["id"]));
    two.receive(&two.other, "Secret", "s").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!poll.is_finished());
    two.receive(&two.own, "Mine", "m").await;
    let heard = stream.next().await.unwrap().1;
    assert_eq!((&heard["mailbox_id"], &heard["data"]["subject"]), (&two.own["id"], &json!("Mine")));
    let page = poll.await.unwrap();
    assert_eq!(page["events"], json!([heard]));
}

/// rules: AUTH-31, MCP-11
#[both_engines]
async fn search_recall_and_tools_find_own_mail(engine: Engine) {
    let two = Two::new(engine).await;
    two.receive(&two.other, "Refunds", "A refund of the zebra project takes ninety days.").await;
    let mine = two.receive(&two.own, "Refunds", "A refund is paid within five working days.").await;
    let remember = json!({ "text": "The zebra refund is a secret of the other mailbox." });
    two.tenant.key.post("/api/v1/rag/remember", remember.clone()).await.ok();
    let document =
        json!({ "name": "a.txt", "type": "text", "text": "Refunds of zebras are in this document." });
    two.tenant.key.post("/api/v1/rag/documents", document).await.ok();
    two.server.index_memory().await;
    let whole = recall_with(&two.tenant.key, json!({ "query": "zebra refund", "limit": 10 })).await;
    assert!(whole.len() >= 4, "{whole:?}");
    let found = recall_with(&two.key, json!({ "query": "zebra refund", "limit": 10 })).await;
    let ids: Vec<&Value> = found.iter().map(|one| &one["email_id"]).collect();
    assert_eq!(ids, [&json!(mine)]);
    let sources = json!({ "query": "zebra refund", "sources": ["memory", "document"] });
    assert_eq!(recall_with(&two.key, sources).await, Vec::<Value>::new());
    two.key.post("/api/v1/rag/remember", remember).await.expect(403, "scope_required");

    let hits = two.key.get(&format!("{}/search?query=refund", path_of(&two.own))).await.ok();
    assert_eq!((&hits["emails"][0]["id"], &hits["totalCount"]), (&json!(mine), &json!(1)));
    assert_missing(&two.key.get(&format!("{}/search?query=refund", path_of(&two.other))).await, "Mailbox");

    let agent = two.key.mcp();
    let names: Vec<Value> = agent.tools().await.into_iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("list_emails")) && names.contains(&json!("send_email")), "{names:?}");
    for hidden in ["create_mailbox", "list_members", "remember"] {
        assert!(!names.contains(&json!(hidden)), "{hidden}");
    }
    let mailboxes = agent.ok("list_mailboxes", json!({})).await;
    assert!(!mailboxes.to_string().contains(two.other["id"].as_str().unwrap()), "{mailboxes}");
    let listed = agent.ok("list_emails", json!({ "mailboxId": two.own["email"] })).await;
    assert_eq!(listed["emails"][0]["id"], json!(mine));
    let none = agent.refused("list_emails", json!({ "mailboxId": "nobody@agents.test" })).await;
    assert_eq!(agent.refused("list_emails", json!({ "mailboxId": two.other["email"] })).await, none);
    let refused = agent.refused("create_mailbox", json!({ "name": "New" })).await;
    assert_eq!(refused["code"], "scope_required");
}

/// rules: MCP-11, AUTH-30
#[both_engines]
async fn tools_outside_the_scopes_are_not_listed(engine: Engine) {
    let two = Two::new(engine).await;
    let reader = two.server.narrowed(&two.tenant.workspace, Some(&[Scope::Read]), None).await.mcp();
    let names: Vec<Value> = reader.tools().await.into_iter().map(|tool| tool["name"].clone()).collect();
    for (name, is_listed) in
        [("list_emails", true), ("wait_for_email", true), ("get_thread", true), ("get_identity", true)]
            .into_iter()
            .chain([("send_email", false), ("save_draft", false), ("read_thread", false), ("recall", false)])
    {
        assert_eq!(names.contains(&json!(name)), is_listed, "{name}: {names:?}");
    }
    let mail = json!({ "mailboxId": two.own["id"], "to": "a@b.test", "subject": "S", "text": "T" });
    let refused = reader.refused("send_email", mail).await;
    assert_eq!(refused["code"], "scope_required");
    assert!(refused["fix"].as_str().unwrap().contains("`send`"), "{refused}");
    let me = reader.ok("get_identity", json!({})).await;
    assert_eq!((&me["scopes"], &me["mailbox_ids"]), (&json!(["read"]), &Value::Null));
}

/// rules: AUTH-33
#[both_engines]
async fn a_webhook_of_a_narrowed_key_stays_narrowed(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let two = Two::with(engine, options).await;
    let receiver = Receiver::start().await;
    let hooks = format!("{}/webhooks", two.workspace);
    let hook = |mailboxes: Value| {
        let mut body = json!({ "url": receiver.url(), "event_types": ["message.received"] });
        if !mailboxes.is_null() {
            body["mailbox_ids"] = mailboxes;
        }
        body
    };
    let made = two.key.post(&hooks, hook(Value::Null)).await.ok();
    assert_eq!(made["mailbox_ids"], json!([two.own["id"]]));
    for other in [&two.other["id"], &two.other["email"], &json!("mbx_none")] {
        let refused = two.key.post(&hooks, hook(json!([two.own["id"], other]))).await;
        assert_refused(&refused, &[("mailbox_ids[1]", "there is no such mailbox")]);
    }
    let one = format!("{hooks}/{}", made["id"].as_str().unwrap());
    let widened = two.key.patch(&one, json!({ "mailbox_ids": null })).await.ok();
    assert_eq!(widened["mailbox_ids"], json!([two.own["id"]]));
    two.receive(&two.other, "Secret", "s").await;
    two.receive(&two.own, "Mine", "m").await;
    outbox::run_due(&two.server.app).await.unwrap();
    let told: Vec<Value> =
        receiver.received().iter().map(|request| request.json()["mailbox_id"].clone()).collect();
    assert_eq!(told, [two.own["id"].clone()]);

    // One that gets events of other mailboxes too is none.
    let whole = two.tenant.key.post(&hooks, hook(Value::Null)).await.ok();
    let listed = two.get("/webhooks").await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &made["id"]));
    let path = format!("{hooks}/{}", whole["id"].as_str().unwrap());
    assert_missing(&two.key.get(&path).await, "Webhook");
    assert_missing(&two.key.patch(&path, json!({ "url": receiver.url() })).await, "Webhook");
    assert_missing(&two.key.delete(&path).await, "Webhook");
    assert_missing(&two.key.send(http::Method::POST, &format!("{path}/test"), None).await, "Webhook");
}

/// A webhook that once got events of other mailboxes is not a way to them later.
/// rules: AUTH-33
#[both_engines]
async fn earlier_deliveries_of_other_mailboxes_stay_hidden(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let two = Two::with(engine, options).await;
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    let hooks = format!("{}/webhooks", two.workspace);
    let body = json!({ "url": first.url(), "event_types": ["message.received"] });
    let made = two.tenant.key.post(&hooks, body).await.ok();
    let one = format!("{hooks}/{}", made["id"].as_str().unwrap());
    two.receive(&two.other, "Secret", "s").await;
    two.receive(&two.own, "Mine", "m").await;
    outbox::run_due(&two.server.app).await.unwrap();
    assert_eq!(first.received().len(), 2);
    let all = two.tenant.key.get(&format!("{one}/deliveries")).await.ok();
    // The events are of the other mailbox and then of the own; the log has the newest first.
    let secret = all["deliveries"][1]["id"].as_str().unwrap().to_owned();

    two.tenant.key.patch(&one, json!({ "mailbox_ids": [two.own["id"]] })).await.ok();
    let log = two.key.get(&format!("{one}/deliveries")).await.ok();
    assert_eq!(log["deliveries"], json!([all["deliveries"][0]]));
    let retry = format!("{one}/deliveries/{secret}/retry");
    assert_missing(&two.key.send(http::Method::POST, &retry, None).await, "Delivery");
    // Nor does one that is due reach a new URL.
    two.tenant.key.send(http::Method::POST, &retry, None).await.ok();
    two.key.patch(&one, json!({ "url": second.url() })).await.ok();
    outbox::run_due(&two.server.app).await.unwrap();
    assert_eq!(second.received().len(), 0);
    let tried = two.tenant.key.get(&format!("{one}/deliveries")).await.ok();
    let secret = tried["deliveries"].as_array().unwrap().iter().find(|one| one["id"] == secret).unwrap();
    assert_eq!(secret["status"], "failed");
}

/// rules: AUTH-30
#[both_engines]
async fn the_agent_has_the_scopes_of_its_caller(engine: Engine) {
    let model = ScriptedModel::new(|request| {
        if request.messages.iter().any(|one| matches!(one, operations::ports::ChatMessage::Tool { .. })) {
            let last = request.messages.last();
            return Ok(super::agent::saying(&format!("{last:?}")));
        }
        Ok(ScriptedModel::call("list_emails", &json!({})))
    });
    let two = Two::with(engine, ServerOptions { assistant: Some(model), ..ServerOptions::default() }).await;
    two.receive(&two.own, "zebra", "zebra").await;
    let all = format!("{}/agent-conversations", path_of(&two.own));
    for (scopes, reads) in [(&[Scope::Agent][..], false), (&[Scope::Agent, Scope::Read][..], true)] {
        let id = two.own["id"].as_str().unwrap();
        let key = two.server.narrowed(&two.tenant.workspace, Some(scopes), Some(&[id])).await;
        let talk = key.post(&all, json!({})).await.ok();
        let messages = format!("{all}/{}/messages", talk["id"].as_str().unwrap());
        let turn = key.post(&messages, json!({ "content": "What is new?" })).await.ok();
        let outcome = if reads { "done" } else { "failed" };
        assert_eq!(turn["reply"]["tools"][0]["outcome"], outcome, "{turn}");
        assert_eq!(turn["reply"]["content"].as_str().unwrap().contains("zebra"), reads, "{turn}");
    }
}

/// A connection is the workspace's, and may lead to what the key does not see.
/// rules: AUTH-32
#[both_engines]
async fn the_agent_uses_no_connection_for_a_key_of_some_mailboxes(engine: Engine) {
    let model = ScriptedModel::saying("Hello");
    let two =
        Two::with(engine, ServerOptions { assistant: Some(model.clone()), ..ServerOptions::default() }).await;
    let all = format!("{}/agent-conversations", path_of(&two.own));
    let talk = two.key.post(&all, json!({})).await.ok();
    let messages = format!("{all}/{}/messages", talk["id"].as_str().unwrap());
    let unknown = json!({ "content": "Hi", "connections": ["con_01h8xgjy4n7r2v6c0d5t9kqwez"] });
    let refused = two.key.post(&messages, unknown.clone()).await;
    assert_missing(&refused, "Connection");
    let full = two.tenant.key.post(&messages, unknown).await;
    assert_eq!((refused.status, refused.bytes), (full.status, full.bytes));
    assert!(model.asked().is_empty());
}

/// An answer of the agent that is being written has the rights of a key that has them no more.
/// rules: AUTH-35
#[both_engines]
async fn a_turn_of_the_agent_ends_when_its_key_is_narrowed(engine: Engine) {
    let never = Arc::new(tokio::sync::Semaphore::new(0));
    let model = ScriptedModel::saying("Hello").gated_by(never);
    let two =
        Two::with(engine, ServerOptions { assistant: Some(model.clone()), ..ServerOptions::default() }).await;
    let session = two.server.log_in(&two.tenant).await;
    let keys = format!("{}/api-keys", two.workspace);
    let made = session.post(&keys, json!({ "name": "K", "role": "admin" })).await.json();
    let key = two.server.key(made["key"].as_str().unwrap());
    let all = format!("{}/agent-conversations", path_of(&two.own));
    let talk = key.post(&all, json!({})).await.ok();
    let messages = format!("{all}/{}/messages", talk["id"].as_str().unwrap());
    let turn = tokio::spawn(async move { key.post(&messages, json!({ "content": "Hi" })).await });
    while model.asked().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let one = format!("{keys}/{}", made["id"].as_str().unwrap());
    session.patch(&one, json!({ "scopes": ["agent"] })).await.ok();
    turn.await.unwrap().expect(403, "scope_required");
}

/// What a key may not read is in no answer to what it may do.
/// rules: AUTH-30
#[both_engines]
async fn changes_show_no_content_to_a_key_that_may_not_read(engine: Engine) {
    let model = ScriptedModel::saying("Hello");
    let two =
        Two::with(engine, ServerOptions { assistant: Some(model.clone()), ..ServerOptions::default() }).await;
    let email = two.receive(&two.own, "Lunch", "zebra").await;
    let own = path_of(&two.own);
    let thread = two.key.get(&format!("{own}/emails/{email}")).await.ok()["thread_id"].clone();
    let draft =
        two.key.post(&format!("{own}/drafts"), json!({ "body": "Yes", "thread_id": thread })).await.ok();
    for (scopes, reads) in [
        (&[Scope::Organize, Scope::Draft][..], false),
        (&[Scope::Organize, Scope::Draft, Scope::Read][..], true),
    ] {
        let key = two.server.narrowed(&two.tenant.workspace, Some(scopes), None).await;
        let read = key.put(&format!("{own}/emails/{email}"), json!({ "read": true })).await;
        let moved = key.post(&format!("{own}/emails/{email}/move"), json!({ "folderId": "archive" })).await;
        for answer in [read, moved] {
            assert_eq!(answer.ok()["id"], json!(email));
            assert_eq!(answer.text().contains("zebra"), reads, "{}", answer.text());
        }
        let wish = json!({ "draftId": draft["id"], "prompt": "Repeat the conversation", "body": "" });
        key.post(&format!("{own}/drafts/regenerate"), wish).await.ok();
        let asked = format!("{:?}", model.asked().pop().unwrap());
        assert_eq!(asked.contains("zebra"), reads, "{asked}");
    }
}

/// A mailbox that is deleted takes nothing with it but itself: the key sees none then, not all.
/// rules: AUTH-36
#[both_engines]
async fn a_key_of_a_deleted_mailbox_sees_nothing(engine: Engine) {
    let two = Two::new(engine).await;
    two.tenant.key.delete(&path_of(&two.own)).await.ok();
    // The address may be another mailbox's since.
    let again = json!({ "name": "Again", "email": two.own["email"] });
    let again = two.tenant.key.post("/api/v1/mailboxes", again).await.ok();
    assert_missing(&two.key.get(&path_of(&two.own)).await, "Mailbox");
    assert_missing(&two.key.get(&path_of(&again)).await, "Mailbox");
    let by_address = format!("/api/v1/mailboxes/{}", two.own["email"].as_str().unwrap());
    assert_missing(&two.key.get(&by_address).await, "Mailbox");
    assert_eq!(two.key.get("/api/v1/mailboxes").await.ok(), json!([]));
    // What a key sees is cached for half a second.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(two.get("").await["mailbox_count"], 0);
    let me = two.key.get("/api/v1/me").await.ok();
    assert_eq!(me["mailbox_ids"], json!([two.own["id"]]));
    two.key.post("/api/v1/mailboxes", json!({ "name": "New" })).await.expect(403, "scope_required");
    let events = two.get("/events").await;
    assert!(events["events"].as_array().unwrap().iter().all(|one| one["mailbox_id"] == two.own["id"]));
    // Also once nothing of it is left.
    two.server.clock.advance(30 * 86_400);
    operations::maintenance::run(&two.server.app).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(two.key.get("/api/v1/mailboxes").await.ok(), json!([]));
    assert_missing(&two.key.get(&path_of(&again)).await, "Mailbox");
}
