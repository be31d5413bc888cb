//! An OpenAI-compatible endpoint that answers by a script, faults included: a real listener on this host.

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

/// How the endpoint answers one request.
#[derive(Clone, Debug)]
pub enum ModelAnswer {
    /// With a message, plain.
    Message(Value),
    /// With a status, a body and perhaps `Retry-After`.
    Status(u16, String, Option<u64>),
    /// With a stream of these lines of data.
    Stream(Vec<String>),
    /// With the beginning of such a stream; then the connection breaks.
    Cut(Vec<String>),
    /// With one piece after the other for ever, each after a pause.
    Drip(Duration),
    /// With text without end, as fast as it is read.
    Endless,
    /// Never.
    Hang,
}

impl ModelAnswer {
    /// A message of text.
    pub fn text(text: &str) -> Self {
        Self::Message(json!({ "role": "assistant", "content": text }))
    }

    /// A stream that ends as it should.
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

/// The listener; it ends with the value.
pub struct ModelEndpoint {
    address: SocketAddr,
    state: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

impl ModelEndpoint {
    /// Listens on this host. Without a script it answers with the text `ok`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Behaviour::default()));
        let router = axum::Router::new().fallback(answer).with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, task }
    }

    /// What a client of it is set up with.
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

    /// Answers the next requests like this, one after the other.
    pub fn script(&self, answers: impl IntoIterator<Item = ModelAnswer>) {
        self.state.lock().unwrap().answers.extend(answers);
    }

    /// Answers everything else like this.
    pub fn always(&self, answer: ModelAnswer) {
        self.state.lock().unwrap().always = Some(answer);
    }

    /// What was asked, oldest first.
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
        // What was written before must have left when the connection breaks.
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
