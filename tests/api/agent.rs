//! The mailbox agent at work: its tools, streams, and how mail reaches the model.

use std::sync::Arc;

use axum::body::Body;
use http::Method;
use operations::ports::{AssistantFault, ChatMessage, ChatReply, ChatRequest, ToolCall};
use serde_json::{Value, json};
use testkit::{Engine, ScriptedModel, Server, both_engines};

use super::{
    conversations::{begin, with},
    mails::Inbox,
};

/// The results of tools so far.
pub(super) fn results(request: &ChatRequest) -> Vec<Value> {
    let texts = request.messages.iter().filter_map(|message| match message {
        ChatMessage::Tool { result, .. } => Some(serde_json::from_str(result).unwrap()),
        _ => None,
    });
    texts.collect()
}

pub(super) fn saying(text: &str) -> ChatReply {
    ChatReply { text: text.to_owned(), calls: Vec::new() }
}

/// A model that uses tools one after the other, then says something.
pub(super) fn using(calls: Vec<(&str, Value)>, text: &str) -> ScriptedModel {
    let calls: Vec<(String, Value)> =
        calls.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let text = text.to_owned();
    ScriptedModel::new(move |request| match calls.get(results(request).len()) {
        Some((name, arguments)) => Ok(ScriptedModel::call(name, arguments)),
        None => Ok(saying(&text)),
    })
}

pub(super) async fn say(inbox: &Inbox, conversation: &str, body: Value) -> Value {
    inbox.key.post(&format!("{conversation}/messages"), body).await.ok()
}

/// rules: AGENT-4, AGENT-5
#[both_engines]
async fn the_agent_reads_the_mailbox_as_data(engine: Engine) {
    let model = using(
        vec![
            ("list_emails", json!({})),
            ("search_emails", json!({ "query": "zebra" })),
            ("list_folders", json!({})),
            ("list_labels", json!({})),
            ("no_such_tool", json!({})),
            ("read_email", json!({ "mailbox": "x" })),
        ],
        "Done.",
    );
    let server = Server::with(engine, with(&model)).await;
    let inbox = Inbox::new(&server).await;
    inbox.key.post(&format!("{}/custom-labels", inbox.path), json!({ "name": "Animals" })).await.ok();
    let raw = "From: zoo@remote.test\r\nSubject: zebra-subject\r\nContent-Type: text/html\r\n\r\n\
                   <p>zebra-text</p><p style=\"display:none\">zebra-hidden</p>\r\n";
    let email = server.receive(&inbox.address, raw).await;
    let eicar = "From: bad@remote.test\r\nSubject: Bad\r\n\r\nzebra-unsafe \
                     X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*\r\n";
    let flagged = server.receive(&inbox.address, eicar).await;
    let shown = inbox.get(&format!("emails/{flagged}")).await;
    assert_ne!(shown["scan_status"], "clean");
    let conversation = begin(&inbox).await;
    let turn = say(&inbox, &conversation, json!({ "content": "What about animals?" })).await;
    let outcomes: Vec<&str> = turn["reply"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["done", "done", "done", "done", "failed", "failed"]);
    let last = model.asked().pop().unwrap();
    let given = results(&last);
    let listed = given[0]["data"]["emails"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().any(|one| one["id"] == email.as_str() && one["snippet"] == "zebra-text"));
    assert!(listed.iter().any(|one| one["id"] == flagged.as_str() && one["content_omitted"] == true));
    let found = given[1]["data"]["emails"].as_array().unwrap();
    assert!(found.iter().any(|one| one["id"] == email.as_str()));
    assert!(given[2]["data"]["folders"].as_array().unwrap().iter().any(|one| one["id"] == "inbox"));
    assert_eq!(given[3]["data"]["labels"], json!([{ "name": "Animals", "slug": "animals" }]));
    for request in model.asked() {
        for message in &request.messages {
            // Results were read as JSON above; nowhere else stands a word of the mail.
            if let ChatMessage::System(text) | ChatMessage::User(text) = message {
                assert!(!text.contains("zebra"), "{text}");
            }
        }
        let whole = format!("{request:?}");
        assert!(!whole.contains("zebra-hidden") && !whole.contains("zebra-unsafe"), "{whole}");
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(!names.contains(&"send_email") && names.contains(&"save_draft"), "{names:?}");
    }
}

/// rules: AGENT-4
#[both_engines]
async fn drafts_are_saved_and_only_own_ones_replaced(engine: Engine) {
    let saved = Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let known = saved.clone();
    let model = ScriptedModel::new(move |request| {
        let Some(ChatMessage::User(wish)) =
            request.messages.iter().rev().find(|message| matches!(message, ChatMessage::User(_)))
        else {
            panic!("{request:?}")
        };
        let given = results(request);
        if let Some(last) = given.last() {
            if let Some(id) = last["data"]["draft_id"].as_str() {
                known.lock().unwrap().push(id.to_owned());
            }
            return Ok(saying(&last.to_string()));
        }
        let wish: Value = serde_json::from_str(wish).unwrap();
        Ok(ScriptedModel::call("save_draft", &wish))
    });
    let server = Server::with(engine, with(&model)).await;
    let inbox = Inbox::new(&server).await;
    let raw =
        "From: Bob <bob@remote.test>\r\nSubject: Lunch?\r\nMessage-ID: <l@remote.test>\r\n\r\nToday?\r\n";
    let email = server.receive(&inbox.address, raw).await;
    let conversation = begin(&inbox).await;
    let wish = json!({ "body": "Yes! See ![x](https://evil.test)", "reply_to_email_id": email });
    let turn = say(&inbox, &conversation, json!({ "content": wish.to_string() })).await;
    let id = turn["reply"]["tools"][0]["email_id"].as_str().unwrap().to_owned();
    let draft = inbox.get(&format!("drafts/{id}")).await;
    assert_eq!((&draft["subject"], &draft["in_reply_to"]), (&json!("Re: Lunch?"), &json!("l@remote.test")));
    assert_eq!(
        (&draft["body"], &draft["body_format"]),
        (&json!("Yes! See [x] (https://evil.test)"), &json!("text"))
    );
    assert!(draft["recipient"].as_str().unwrap().contains("bob@remote.test"));
    let of_mail = inbox.get(&format!("emails/{email}")).await;
    assert_eq!(draft["thread_id"], of_mail["thread_id"]);

    // Its own draft it may replace, that of the person not.
    let wish = json!({ "body": "No.", "draft_id": id });
    let turn = say(&inbox, &conversation, json!({ "content": wish.to_string() })).await;
    assert_eq!(turn["reply"]["tools"][0]["outcome"], "done");
    assert_eq!(inbox.get(&format!("drafts/{id}")).await["body"], "No.");
    let mine = inbox.key.post(&format!("{}/drafts", inbox.path), json!({ "body": "Mine" })).await.ok();
    let wish = json!({ "body": "Gone.", "draft_id": mine["id"] });
    let turn = say(&inbox, &conversation, json!({ "content": wish.to_string() })).await;
    assert_eq!(turn["reply"]["tools"][0]["outcome"], "failed");
    assert_eq!(inbox.get(&format!("drafts/{}", mine["id"].as_str().unwrap())).await["body"], "Mine");
}

/// The events of a stream, each as its data.
fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// A message with a stream as its answer, read to the end.
async fn streamed(inbox: &Inbox, conversation: &str, body: Value) -> (u16, String) {
    let caller = inbox.key.with("accept", "text/event-stream");
    let body = Body::from(body.to_string());
    let path = format!("{conversation}/messages");
    let (status, text) = caller.read_all(Method::POST, &path, Some("application/json"), body).await;
    (status, text)
}

/// rules: AGENT-2, AGENT-7, AGENT-10
#[both_engines]
async fn an_answer_can_be_watched(engine: Engine) {
    let text = "Two words and ![x](https://evil.test/?a=b) <img src=x>";
    let model = using(vec![("list_folders", json!({}))], text);
    let server = Server::with(engine, with(&model)).await;
    let inbox = Inbox::new(&server).await;
    let conversation = begin(&inbox).await;
    let (status, stream) = streamed(&inbox, &conversation, json!({ "content": "Hi" })).await;
    assert_eq!(status, 200, "{stream}");
    let all = events(&stream);
    let kinds: Vec<&str> = all.iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("tool", "message"));
    let shown: String =
        all.iter().filter(|one| one["type"] == "delta").map(|one| one["text"].as_str().unwrap()).collect();
    let harmless = "Two words and [x] (https://evil.test/?a=b) < img src=x>";
    assert_eq!(shown, harmless);
    let last = all.last().unwrap();
    assert_eq!(last["reply"]["content"], harmless);
    let kept = inbox.key.get(&format!("{conversation}/messages")).await.ok();
    assert_eq!(kept["messages"][1], last["reply"]);

    // A repeated id is refused before the stream begins.
    let body = json!({ "content": "Hi", "id": last["message"]["id"] });
    let (status, refused) = streamed(&inbox, &conversation, body).await;
    assert_eq!(status, 409, "{refused}");
    // JSON, when both would do.
    let both = inbox.key.with("accept", "application/json, text/event-stream");
    let plain = both.post(&format!("{conversation}/messages"), json!({ "content": "Hi" })).await;
    assert_eq!(plain.header("content-type"), "application/json");
    inbox
        .key
        .with("accept", "text/plain")
        .post(&format!("{conversation}/messages"), json!({ "content": "Hi" }))
        .await
        .expect(406, "not_acceptable");
}

/// rules: AGENT-10
#[both_engines]
async fn a_stream_tells_of_a_failure_and_nothing_is_charged(engine: Engine) {
    let model = ScriptedModel::new(|_| Err(AssistantFault::Unavailable("asleep".to_owned())));
    let server = Server::with(engine, with(&model)).await;
    let tenant = server.tenant(model::Plan::Developer).await;
    let inbox = Inbox::of(&tenant).await;
    let conversation = begin(&inbox).await;
    let credits = format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace);
    let before = inbox.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    let (status, stream) = streamed(&inbox, &conversation, json!({ "content": "Hi" })).await;
    let all = events(&stream);
    assert_eq!((status, all.len()), (200, 1), "{stream}");
    assert_eq!((&all[0]["type"], &all[0]["code"]), (&json!("error"), &json!("ai_unavailable")));
    let after = inbox.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    assert_eq!(after - before, 1, "only the read");
    assert_eq!(inbox.key.get(&format!("{conversation}/messages")).await.ok()["messages"], json!([]));
}

/// A model that calls tools without end is stopped; one that calls many at once too.
/// rules: AGENT-13
#[both_engines]
async fn rounds_calls_and_results_are_bounded(engine: Engine) {
    let model = ScriptedModel::new(|request| {
        let call = |place: usize| ToolCall {
            id: format!("call_{place}"),
            name: "read_email".to_owned(),
            arguments: if place.is_multiple_of(2) {
                "{broken".to_owned()
            } else {
                "{\"email_id\":\"eml_none\"}".to_owned()
            },
        };
        let calls = if request.tools.is_empty() { 1 } else { 30 };
        Ok(ChatReply { text: String::new(), calls: (0..calls).map(call).collect() })
    });
    let server = Server::with(engine, with(&model)).await;
    let inbox = Inbox::new(&server).await;
    let conversation = begin(&inbox).await;
    let turn = say(&inbox, &conversation, json!({ "content": "Go on for ever" })).await;
    assert!(turn["reply"]["content"].as_str().unwrap().contains("more steps"));
    let asked = model.asked();
    assert_eq!(asked.len(), 8);
    assert!(asked.last().unwrap().tools.is_empty());
    assert_eq!(turn["reply"]["tools"].as_array().unwrap().len(), 24);
    let total: usize = results(asked.last().unwrap()).iter().map(|one| one.to_string().len()).sum();
    assert!(total < 200_000, "{total}");
}
