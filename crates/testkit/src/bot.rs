//! A fake server of Telegram's Bot API: a real listener with chats that the test writes in, and injected faults.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{Path, State},
    response::Response,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// The server's state.
#[derive(Default)]
struct Behaviour {
    /// Received calls: method and body.
    calls: Vec<(String, Value)>,
    /// Responses to the next calls of a method instead: status and body.
    faults: VecDeque<(String, u16, Value)>,
    updates: Vec<Value>,
    last_update: i64,
    last_message: i64,
}

/// The listener; it stops when dropped.
pub struct BotServer {
    address: SocketAddr,
    state: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

impl BotServer {
    /// Listens on loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Behaviour { last_message: 100, ..Behaviour::default() }));
        let router = axum::Router::new()
            .route("/{bot}/{method}", axum::routing::post(receive))
            .with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, task }
    }

    /// Its URL.
    pub fn url(&self) -> url::Url {
        format!("http://{}", self.address).parse().unwrap()
    }

    /// Answers the next call of a method with this status and body.
    pub fn fail(&self, method: &str, status: u16, body: Value) {
        self.state.lock().unwrap().faults.push_back((method.to_owned(), status, body));
    }

    /// The bodies of the calls of a method so far, oldest first.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        state.calls.iter().filter(|(name, _)| name == method).map(|(_, body)| body.clone()).collect()
    }

    /// The messages of a chat, oldest first.
    pub fn texts(&self, chat: i64) -> Vec<String> {
        let calls = self.calls("sendMessage").into_iter().filter(|call| call["chat_id"] == chat);
        calls.map(|call| call["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The notifications of a chat, oldest first: messages with buttons.
    pub fn notices(&self, chat: i64) -> Vec<Value> {
        let calls = self.calls("sendMessage").into_iter().filter(|call| call["chat_id"] == chat);
        calls.filter(|call| call["reply_markup"].is_object()).collect()
    }

    /// Waits until a chat has this many notifications.
    pub async fn wait_for(&self, chat: i64, count: usize) -> Vec<Value> {
        for _ in 0..300 {
            let notices = self.notices(chat);
            if notices.len() >= count {
                return notices;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("only {} of {count} notices came", self.notices(chat).len());
    }

    /// An update, numbered, for the next getUpdates.
    fn update(&self, kind: &str, body: Value) -> Value {
        let mut state = self.state.lock().unwrap();
        state.last_update += 1;
        let mut update = json!({ "update_id": state.last_update });
        update[kind] = body;
        state.updates.push(update.clone());
        update
    }

    /// A person writes in a private chat.
    pub fn write(&self, chat: i64, text: &str) -> Value {
        self.update("message", message(chat, text))
    }

    /// A person writes in a group.
    pub fn write_in_group(&self, chat: i64, text: &str) -> Value {
        let mut body = message(chat, text);
        body["chat"] = json!({ "id": chat, "type": "group", "title": "Team" });
        self.update("message", body)
    }

    /// A person answers a message.
    pub fn reply(&self, chat: i64, to: i64, text: &str) -> Value {
        let mut body = message(chat, text);
        body["reply_to_message"] = json!({ "message_id": to, "chat": { "id": chat, "type": "private" } });
        self.update("message", body)
    }

    /// A person presses a button.
    pub fn press(&self, chat: i64, data: &str) -> Value {
        let message = json!({ "message_id": 1, "chat": { "id": chat, "type": "private" } });
        self.update(
            "callback_query",
            json!({ "id": "q1", "from": { "id": chat }, "message": message, "data": data }),
        )
    }

    /// The number of the bot's last message.
    pub fn last_message(&self) -> i64 {
        self.state.lock().unwrap().last_message
    }
}

fn message(chat: i64, text: &str) -> Value {
    let who = json!({ "id": chat, "type": "private", "first_name": "Ada", "last_name": "L" });
    json!({ "message_id": 1, "from": { "id": chat, "first_name": "Ada" }, "chat": who, "text": text })
}

impl Drop for BotServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(
    State(state): State<Arc<Mutex<Behaviour>>>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let mut state = state.lock().unwrap();
    let answer = |status: u16, body: Value| {
        Response::builder().status(status).body(Body::from(body.to_string())).unwrap()
    };
    if bot != "bot7:secret" {
        return answer(401, json!({ "ok": false, "error_code": 401, "description": "Unauthorized" }));
    }
    if let Some(index) = state.faults.iter().position(|(name, ..)| *name == method) {
        let (_, status, body) = state.faults.remove(index).unwrap();
        return answer(status, body);
    }
    state.calls.push((method.clone(), body.clone()));
    let result = match method.as_str() {
        "getMe" => json!({ "id": 7, "is_bot": true, "username": "agent_test_bot" }),
        "getUpdates" => {
            let offset = body["offset"].as_i64().unwrap_or_default();
            state.updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
            json!(state.updates)
        }
        "sendMessage" => {
            state.last_message += 1;
            json!({ "message_id": state.last_message, "chat": { "id": body["chat_id"] } })
        }
        _ => json!(true),
    };
    answer(200, json!({ "ok": true, "result": result }))
}
