//! A bucket for tests, behind a gate that can hold requests: of a server in this process, or of the one that
//! `AGENT_MAILBOX_TEST_S3` names, which scripts/moto starts.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    error_handling::HandleError,
    extract::{Request, State},
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch};
use url::Url;

/// How long a request is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// More than any object of a test has.
const MAX_BODY_BYTES: usize = 64 << 20;

/// A bucket.
pub(crate) struct Bucket {
    location: String,
    gate: Arc<Gate>,
    // Has its objects, if the server is in this process. Its name is new in either case.
    _folder: TempDir,
}

/// What is between the service and the server.
struct Gate {
    server: String,
    client: reqwest::Client,
    /// Requests of this method wait.
    held: watch::Sender<Option<Method>>,
    /// How many have waited.
    waited: watch::Sender<usize>,
}

impl Bucket {
    /// An empty bucket.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut location = match server() {
            Some(location) => location,
            None => serve(&folder).await,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gate = Arc::new(Gate {
            server: location.socket_addrs(|| None).unwrap()[0].to_string(),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            held: watch::Sender::new(None),
            waited: watch::Sender::new(0),
        });
        location.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        // Tests share the server's bucket, so each has a prefix.
        let prefix: String = folder
            .path()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        location.set_path(&format!("{}/{prefix}", location.path()));
        let router = Router::new().fallback(pass).with_state(gate.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { location: location.into(), gate, _folder: folder }
    }

    /// What the configuration would say.
    pub(crate) fn location(&self) -> String {
        self.location.clone()
    }

    /// From now on requests of a method wait, until they are released.
    pub(crate) fn hold(&self, method: Method) {
        self.gate.waited.send_replace(0);
        self.gate.held.send_replace(Some(method));
    }

    /// Returns when a request waits.
    pub(crate) async fn somebody_waits(&self) {
        let mut waited = self.gate.waited.subscribe();
        let waits = waited.wait_for(|count| *count > 0);
        tokio::time::timeout(REQUEST_TIMEOUT, waits).await.expect("a request comes").unwrap();
    }

    /// Lets everything pass.
    pub(crate) fn release(&self) {
        self.gate.held.send_replace(None);
    }
}

/// The server that scripts/moto has started: a location with credentials and bucket.
pub(crate) fn server() -> Option<Url> {
    let location = std::env::var("AGENT_MAILBOX_TEST_S3").ok()?;
    Some(location.parse().unwrap())
}

/// An S3 server whose buckets are the folders in a folder, and which checks signatures.
pub(crate) fn s3_server(folder: &Path, access_key: &str, secret_key: &str) -> Router {
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder).unwrap());
    service.set_auth(SimpleAuth::from_single(access_key, secret_key));
    let objects = HandleError::new(service.build(), async |_| StatusCode::INTERNAL_SERVER_ERROR);
    Router::new().fallback_service(objects)
}

/// Serves a folder with one bucket.
async fn serve(folder: &TempDir) -> Url {
    std::fs::create_dir(folder.path().join("mail")).unwrap();
    let server = s3_server(folder.path(), "AKIATEST", "hush");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, server).await });
    format!("s3://AKIATEST:hush@{address}/mail?tls=false").parse().unwrap()
}

/// Passes a request on, with the name of the host that its signature is about.
async fn pass(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut held = gate.held.subscribe();
    if held.borrow().as_ref() == Some(&parts.method) {
        gate.waited.send_modify(|count| *count += 1);
        held.wait_for(|held| held.as_ref() != Some(&parts.method)).await.unwrap();
    }
    let body = axum::body::to_bytes(body, MAX_BODY_BYTES).await.unwrap();
    let url = format!("http://{}{}", gate.server, parts.uri.path_and_query().unwrap());
    let request = gate.client.request(parts.method, url).headers(parts.headers).body(body);
    let answer = request.send().await.unwrap();
    let mut response = Response::builder().status(answer.status());
    if let Some(kind) = answer.headers().get(CONTENT_TYPE) {
        response = response.header(CONTENT_TYPE, kind);
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}
