//! The client of an OpenAI-compatible endpoint, against one that fails in every way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use adapters::language_model::{AssistantSettings, HttpAssistant};
use model::Plan;
use operations::ports::{Assistant, AssistantFault, ChatMessage, ChatReply, ChatRequest, ToolCall, ToolSpec};
use serde_json::{Value, json};
use testkit::{Engine, ModelAnswer, ModelEndpoint, Server, ServerOptions, both_engines};
use tokio::sync::mpsc;

use super::{conversations::begin, mails::Inbox};

fn question() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage::User("Hello".to_owned())],
        max_tokens: 50,
        ..ChatRequest::default()
    }
}

async fn ask(settings: AssistantSettings) -> Result<ChatReply, AssistantFault> {
    HttpAssistant::new(settings).chat(&question(), None).await
}

/// The answer with the pieces that came before it.
async fn ask_streamed(settings: AssistantSettings) -> (Result<ChatReply, AssistantFault>, String) {
    let (deltas, mut coming) = mpsc::channel::<String>(64);
    let assistant = HttpAssistant::new(settings);
    let request = question();
    let gather = async {
        let mut text = String::new();
        while let Some(piece) = coming.recv().await {
            text.push_str(&piece);
        }
        text
    };
    tokio::join!(assistant.chat(&request, Some(deltas)), gather)
}

#[tokio::test]
async fn a_question_goes_over_the_wire_as_others_send_it() {
    let endpoint = ModelEndpoint::start().await;
    endpoint.script([ModelAnswer::Message(json!({
        "content": "Well,", "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "list", "arguments": "{\"limit\":1}" } }],
    }))]);
    let tools = vec![ToolSpec {
        name: "list".to_owned(),
        description: "Lists".to_owned(),
        parameters: json!({ "type": "object" }),
    }];
    let call = ToolCall { id: "c0".to_owned(), name: "list".to_owned(), arguments: "{}".to_owned() };
    let messages = vec![
        ChatMessage::System("S".to_owned()),
        ChatMessage::User("U".to_owned()),
        ChatMessage::Assistant { text: String::new(), calls: vec![call] },
        ChatMessage::Tool { call_id: "c0".to_owned(), result: "{}".to_owned() },
    ];
    let request = ChatRequest { messages, tools, json: true, max_tokens: 77 };
    let settings = AssistantSettings { token_field: "max_completion_tokens", ..endpoint.settings() };
    let reply = HttpAssistant::new(settings).chat(&request, None).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls[0].arguments.as_str()), ("Well,", "{\"limit\":1}"));
    let asked = endpoint.received().remove(0);
    assert_eq!(
        (asked.path.as_str(), asked.header("authorization")),
        ("/v1/chat/completions", "Bearer sk-model-key")
    );
    let body = asked.json();
    assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("stub-1"), &json!(77)));
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert_eq!((&body["stream"], &body["max_tokens"]), (&Value::Null, &Value::Null));
    assert_eq!(body["tools"][0]["function"]["name"], "list");
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(body["messages"][3]["tool_call_id"], "c0");
}

/// rules: AGENT-13
#[tokio::test]
async fn what_may_work_another_time_is_tried_again() {
    let overloaded =
        |status, after| ModelAnswer::Status(status, "{\"error\":{\"message\":\"busy\"}}".to_owned(), after);
    for faults in [
        vec![overloaded(500, None), overloaded(503, None)],
        vec![overloaded(429, Some(1))],
        vec![ModelAnswer::Status(200, "<html>not json".to_owned(), None)],
        vec![ModelAnswer::Status(200, "{\"error\":{\"message\":\"overloaded\"}}".to_owned(), None)],
        vec![ModelAnswer::Cut(Vec::new())],
    ] {
        let endpoint = ModelEndpoint::start().await;
        let tries = faults.len() + 1;
        endpoint.script(faults.clone());
        assert_eq!(ask(endpoint.settings()).await.unwrap().text, "ok", "{faults:?}");
        assert_eq!(endpoint.received().len(), tries, "{faults:?}");
    }
    // What the endpoint asks for is waited for, and a time that is too long is not.
    let endpoint = ModelEndpoint::start().await;
    endpoint.script([overloaded(429, Some(1))]);
    let started = Instant::now();
    ask(endpoint.settings()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    endpoint.script([overloaded(429, Some(600))]);
    let fault = ask(endpoint.settings()).await.unwrap_err();
    assert!(matches!(fault, AssistantFault::Unavailable(_)), "{fault}");
    // Nobody listens.
    let gone = endpoint.settings();
    drop(endpoint);
    assert!(matches!(ask(gone).await, Err(AssistantFault::Unavailable(_))));
}

/// rules: AGENT-13
#[tokio::test]
async fn what_will_never_work_is_not() {
    for status in [400, 401, 403, 404, 422] {
        let endpoint = ModelEndpoint::start().await;
        let body = "{\"error\":{\"message\":\"bad key sk-model-key\"}}".to_owned();
        endpoint.always(ModelAnswer::Status(status, body, None));
        let Err(AssistantFault::Refused(reason)) = ask(endpoint.settings()).await else { panic!("{status}") };
        assert!(reason.contains("bad key ***") && !reason.contains("sk-model-key"), "{reason}");
        assert_eq!(endpoint.received().len(), 1);
    }
}

/// rules: AGENT-13
#[tokio::test]
async fn streams_are_put_together_and_broken_ones_are_no_answer() {
    let endpoint = ModelEndpoint::start().await;
    let deltas = [json!({ "content": "Hel" }), json!({ "content": "lo" })];
    endpoint.script([ModelAnswer::streamed(&deltas)]);
    let (reply, pieces) = ask_streamed(endpoint.settings()).await;
    assert_eq!((reply.unwrap().text.as_str(), pieces.as_str()), ("Hello", "Hello"));
    assert_eq!(endpoint.received()[0].json()["stream"], true);
    // An endpoint that does not stream.
    endpoint.script([ModelAnswer::text("plain")]);
    assert_eq!(ask_streamed(endpoint.settings()).await.0.unwrap().text, "plain");
    // Broken before anything was shown: again. After that: an error, and no second beginning.
    let begun = json!({ "choices": [{ "delta": { "content": "Hel" } }] }).to_string();
    endpoint.script([ModelAnswer::Cut(Vec::new()), ModelAnswer::streamed(&deltas)]);
    assert_eq!(ask_streamed(endpoint.settings()).await.0.unwrap().text, "Hello");
    for broken in [ModelAnswer::Cut(vec![begun.clone()]), ModelAnswer::Stream(vec![begun.clone()])] {
        let before = endpoint.received().len();
        endpoint.script([broken.clone()]);
        let (reply, pieces) = ask_streamed(endpoint.settings()).await;
        assert!(matches!(reply, Err(AssistantFault::Unavailable(_))), "{broken:?}");
        assert_eq!((pieces.as_str(), endpoint.received().len()), ("Hel", before + 1), "{broken:?}");
    }
    // Rubbish that comes with the first piece is noticed before that is shown, so that another try is possible.
    for rubbish in ["{no json", "{\"error\":{\"message\":\"overloaded\"}}"] {
        endpoint.script([ModelAnswer::Stream(vec![begun.clone(), rubbish.to_owned()])]);
        let (reply, pieces) = ask_streamed(endpoint.settings()).await;
        match reply {
            Ok(reply) => assert_eq!((reply.text.as_str(), pieces.as_str()), ("ok", ""), "{rubbish}"),
            Err(_) => assert_eq!(pieces, "Hel", "{rubbish}"),
        }
    }
}

/// rules: AGENT-9, AGENT-13
#[tokio::test]
async fn time_and_size_are_bounded() {
    let endpoint = ModelEndpoint::start().await;
    let settings = AssistantSettings { time_limit: Duration::from_millis(700), ..endpoint.settings() };
    for answer in [ModelAnswer::Hang, ModelAnswer::Drip(Duration::from_millis(50))] {
        endpoint.always(answer.clone());
        let started = Instant::now();
        assert!(ask_streamed(settings.clone()).await.0.is_err(), "{answer:?}");
        assert!(started.elapsed() < Duration::from_secs(3), "{answer:?}");
    }
    endpoint.always(ModelAnswer::Endless);
    let patient = AssistantSettings { time_limit: Duration::from_secs(20), ..endpoint.settings() };
    let (reply, _) = ask_streamed(patient.clone()).await;
    assert!(reply.unwrap_err().to_string().contains("too long"));
    endpoint.always(ModelAnswer::Status(200, " ".repeat(5 << 20), None));
    assert!(ask(patient).await.unwrap_err().to_string().contains("too long"));
}

/// rules: AGENT-13
#[tokio::test]
async fn an_endpoint_that_keeps_failing_is_left_alone() {
    let endpoint = ModelEndpoint::start().await;
    endpoint.always(ModelAnswer::Status(500, String::new(), None));
    let assistant = HttpAssistant::new(AssistantSettings { attempts: 1, ..endpoint.settings() });
    for _ in 0..8 {
        assert!(assistant.chat(&question(), None).await.is_err());
    }
    assert_eq!(endpoint.received().len(), 5, "the others did not get through");
    endpoint.always(ModelAnswer::text("back"));
    tokio::time::sleep(Duration::from_millis(5200)).await;
    assert_eq!(assistant.chat(&question(), None).await.unwrap().text, "back");
    assert_eq!(assistant.chat(&question(), None).await.unwrap().text, "back");
}

/// No more questions at once than configured, and whoever waits too long is told so.
/// rules: AGENT-9
#[tokio::test]
async fn questions_take_turns() {
    let endpoint = ModelEndpoint::start().await;
    endpoint.always(ModelAnswer::Hang);
    let arrived = async |count: usize| {
        while endpoint.received().len() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(endpoint.received().len(), count);
    };
    let settings =
        AssistantSettings { concurrency: 2, time_limit: Duration::from_mins(5), ..endpoint.settings() };
    let assistant = Arc::new(HttpAssistant::new(settings));
    let ask = |_| {
        let assistant = assistant.clone();
        tokio::spawn(async move { assistant.chat(&question(), None).await })
    };
    let asked: Vec<_> = (0..5).map(ask).collect();
    arrived(2).await;
    // The others had the time to come too.
    tokio::time::sleep(Duration::from_millis(200)).await;
    arrived(2).await;
    asked[..2].iter().for_each(tokio::task::JoinHandle::abort);
    arrived(4).await;

    let hasty =
        AssistantSettings { concurrency: 2, time_limit: Duration::from_millis(600), ..endpoint.settings() };
    let (assistant, request) = (HttpAssistant::new(hasty), question());
    let all = futures_util::future::join_all((0..5).map(|_| assistant.chat(&request, None))).await;
    assert!(all.iter().all(Result::is_err));
}

/// The whole way: API, agent, client, endpoint.
/// rules: AGENT-2, AGENT-9, AGENT-13
#[both_engines]
async fn the_agent_works_with_a_real_endpoint(engine: Engine) {
    let endpoint = ModelEndpoint::start().await;
    let model_endpoint =
        AssistantSettings { time_limit: Duration::from_secs(2), attempts: 1, ..endpoint.settings() };
    let options =
        ServerOptions { model_endpoint: Some(Box::new(model_endpoint)), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let inbox = Inbox::of(&server.tenant(Plan::Developer).await).await;
    server.receive(&inbox.address, "From: a@remote.test\r\nSubject: Lunch\r\n\r\nToday?\r\n").await;
    let call =
        json!([{ "index": 0, "id": "c1", "function": { "name": "list_emails", "arguments": "{\"lim" } }]);
    let rest = json!([{ "index": 0, "function": { "arguments": "it\":5}" } }]);
    endpoint.script([
        ModelAnswer::streamed(&[json!({ "tool_calls": call }), json!({ "tool_calls": rest })]),
        ModelAnswer::streamed(&[json!({ "content": "One mail, " }), json!({ "content": "about lunch." })]),
    ]);
    let messages = format!("{}/messages", begin(&inbox).await);
    let caller = inbox.key.with("accept", "text/event-stream");
    let body = axum::body::Body::from(json!({ "content": "What is new?" }).to_string());
    let (status, stream) =
        caller.read_all(http::Method::POST, &messages, Some("application/json"), body).await;
    assert_eq!(status, 200);
    let deltas = stream.lines().filter(|line| line.starts_with("data: {\"type\":\"delta\""));
    let shown: String = deltas
        .map(|line| serde_json::from_str::<Value>(&line[6..]).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(shown, "One mail, about lunch.", "{stream}");
    assert!(stream.contains("\"content\":\"One mail, about lunch.\""), "{stream}");
    let second = endpoint.received()[1].json();
    let result = second["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("c1")));
    assert!(result["content"].as_str().unwrap().contains("Lunch"));

    for fault in [
        ModelAnswer::Hang,
        ModelAnswer::Status(500, String::new(), None),
        ModelAnswer::Status(200, "rubbish".to_owned(), None),
        ModelAnswer::Status(401, String::new(), None),
    ] {
        endpoint.script([fault.clone()]);
        let answer = inbox.key.post(&messages, json!({ "content": "And now?" })).await;
        answer.expect(503, "ai_unavailable");
        assert_eq!(answer.header("x-credits-charged"), "0", "{fault:?}");
    }
    assert_eq!(inbox.key.get(&messages).await.ok()["messages"].as_array().unwrap().len(), 2);
}
