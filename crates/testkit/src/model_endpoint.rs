//! A fake OpenAI-compatible endpoint that answers by a script, faults included: a real listener on loopback.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use adapters::language_model::AssistantSettings;
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::Response,
};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::Sleep};

use crate::ReceivedRequest;

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum ModelAnswer {
    /// A message, not streamed.
    Message(Value),
    /// A status, a body and optionally `Retry-After`.
    Status(u16, String, Option<u64>),
    /// A stream of these data lines.
    Stream(Vec<String>),
    /// The start of such a stream; then the connection breaks.
    Cut(Vec<String>),
    /// One piece after the other for ever, each after a delay.
    Drip(Duration),
    /// Endless text, as fast as it is read.
    Endless,
    /// No response.
    Hang,
}

impl ModelAnswer {
    /// A message of text.
    pub fn text(text: &str) -> Self {
        Self::Message(json!({ "role": "assistant", "content": text }))
    }

    /// A complete stream.
    pub fn streamed(deltas: &[Value]) -> Self {
        let mut lines: Vec<String> =
            deltas.iter().map(|delta| json!({ "choices": [{ "delta": delta }] }).to_string()).collect();
        lines.push(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }).to_string());
        lines.push("[DONE]".to_owned());
        Self::Stream(lines)
    }
}

#[derive(Default)]
struct Behaviour {
    answers: VecDeque<ModelAnswer>,
    always: Option<ModelAnswer>,
    received: Vec<ReceivedRequest>,
}

/// The listener; it stops when dropped.
pub struct ModelEndpoint {
    address: SocketAddr,
    state: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

impl ModelEndpoint {
    /// Listens on loopback. Without a script it answers `ok`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Behaviour::default()));
        let router = axum::Router::new().fallback(answer).with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, task }
    }

    /// The settings of a client for it.
    pub fn settings(&self) -> AssistantSettings {
        AssistantSettings {
            base_url: format!("http://{}/v1", self.address).parse().unwrap(),
            api_key: Some("sk-model-key".to_owned()),
            model: "stub-1".to_owned(),
            time_limit: Duration::from_secs(5),
            attempts: 3,
            concurrency: 8,
            token_field: "max_tokens",
        }
    }

    /// Sets the answers to the next requests.
    pub fn script(&self, answers: impl IntoIterator<Item = ModelAnswer>) {
        self.state.lock().unwrap().answers.extend(answers);
    }

    /// Sets the answer to all other requests.
    pub fn always(&self, answer: ModelAnswer) {
        self.state.lock().unwrap().always = Some(answer);
    }

    /// All requests, oldest first.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().received.clone()
    }
}

impl Drop for ModelEndpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(state): State<Arc<Mutex<Behaviour>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let answer = {
        let mut state = state.lock().unwrap();
        state.received.push(ReceivedRequest { path: uri.to_string(), headers, body });
        let next = state.answers.pop_front();
        next.or_else(|| state.always.clone()).unwrap_or_else(|| ModelAnswer::text("ok"))
    };
    let (json_answer, stream) = (Response::builder().header("content-type", "application/json"), |body| {
        Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
    });
    match answer {
        ModelAnswer::Message(message) => {
            let whole = json!({ "id": "x", "choices": [{ "index": 0, "message": message }] });
            json_answer.body(Body::from(whole.to_string())).unwrap()
        }
        ModelAnswer::Status(status, body, after) => {
            let mut response = json_answer.status(StatusCode::from_u16(status).unwrap());
            if let Some(after) = after {
                response = response.header("retry-after", after);
            }
            response.body(Body::from(body)).unwrap()
        }
        ModelAnswer::Stream(lines) => stream(Body::from(written(&lines))),
        ModelAnswer::Cut(lines) => stream(Body::new(Pieces::cut(written(&lines)))),
        ModelAnswer::Drip(pause) => stream(Body::new(Pieces::endless(Some(pause)))),
        ModelAnswer::Endless => stream(Body::new(Pieces::endless(None))),
        ModelAnswer::Hang => std::future::pending().await,
    }
}

fn written(lines: &[String]) -> String {
    let events: Vec<String> = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
    events.concat()
}

/// A body that breaks off, or never ends.
struct Pieces {
    first: Option<Bytes>,
    repeated: Option<Bytes>,
    pause: Option<Duration>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Pieces {
    fn cut(text: String) -> Self {
        // What was written must be sent before the connection breaks.
        let pause = Some(Duration::from_millis(200));
        Self { first: Some(Bytes::from(text)), repeated: None, pause, waiting: None }
    }

    fn endless(pause: Option<Duration>) -> Self {
        let delta = json!({ "choices": [{ "delta": { "content": "and " } }] });
        let repeated = Some(Bytes::from(format!("data: {delta}\n\n")));
        Self { first: None, repeated, pause, waiting: None }
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if let Some(pause) = self.pause {
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            if waiting.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.waiting = None;
        }
        Poll::Ready(Some(match self.repeated.clone() {
            Some(repeated) => Ok(Frame::data(repeated)),
            None => Err(io::Error::other("cut")),
        }))
    }
}
