//! A fake HTTP server: a real listener that records requests and answers as configured.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::Response,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The answer of a receiver.
#[derive(Clone, Debug)]
pub enum Reply {
    /// With a status and a body.
    Status(u16, String),
    /// A redirect to this URL.
    Redirect(String),
    /// No response.
    Hang,
    /// A head, and then an endless body.
    Endless,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Its path and query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// A header as text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The listener; it stops when dropped.
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

struct Behaviour {
    reply: Reply,
    received: Vec<ReceivedRequest>,
}

impl Receiver {
    /// Listens on loopback and answers everything with 200.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behaviour = Behaviour { reply: Reply::Status(200, "thanks".to_owned()), received: Vec::new() };
        let state = Arc::new(Mutex::new(behaviour));
        let router = axum::Router::new().fallback(receive).with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, task }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL on it.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Sets the answer from now on.
    pub fn reply(&self, reply: Reply) {
        self.state.lock().unwrap().reply = reply;
    }

    /// All requests, oldest first.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().received.clone()
    }

    /// Waits until this many requests have arrived.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedRequest> {
        for _ in 0..600 {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("only {} of {count} requests came in", self.received().len());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(
    State(state): State<Arc<Mutex<Behaviour>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let reply = {
        let mut state = state.lock().unwrap();
        state.received.push(ReceivedRequest { path: uri.to_string(), headers, body });
        state.reply.clone()
    };
    let answer = Response::builder();
    match reply {
        Reply::Status(status, body) => {
            answer.status(StatusCode::from_u16(status).unwrap()).body(Body::from(body)).unwrap()
        }
        Reply::Redirect(to) => answer.status(307).header("location", to).body(Body::empty()).unwrap(),
        Reply::Hang => std::future::pending().await,
        Reply::Endless => answer.body(Body::new(Flood)).unwrap(),
    }
}

/// An endless body.
struct Flood;

impl http_body::Body for Flood {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&[b'x'; 16_384])))))
    }
}
