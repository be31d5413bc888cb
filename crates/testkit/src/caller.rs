//! A caller: a credential and the methods to make requests with it.

use axum::{
    body::Body,
    http::{Method, Request},
    response::Response,
};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::{answer::Answer, contract};

/// A caller with its credential.
#[derive(Clone)]
pub struct Caller {
    router: axum::Router,
    headers: Vec<(String, String)>,
    faults: bool,
}

/// Server-sent events as they arrive.
pub struct EventStream {
    body: Body,
    text: String,
}

impl EventStream {
    /// The next event: its id and its data. `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<(i64, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let event = field("id: ")
                    .zip(field("data: "))
                    .map(|(id, data)| (id.parse().unwrap(), serde_json::from_str(data).unwrap()));
                let rest = rest.to_owned();
                self.text = rest;
                if event.is_some() {
                    return event;
                }
            }
            let frame = self.body.frame().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }
}

impl Caller {
    pub(crate) fn new(router: axum::Router, headers: Vec<(String, String)>) -> Self {
        Self { router, headers, faults: false }
    }

    /// The caller's credential: the API key, or the cookie.
    pub fn secret(&self) -> &str {
        &self.headers.first().expect("a caller with a credential").1
    }

    /// The same caller with one more header.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut caller = self.clone();
        caller.headers.push((name.to_owned(), value.to_owned()));
        caller
    }

    /// The same caller without a header.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut caller = self.clone();
        caller.headers.retain(|(known, _)| known != name);
        caller
    }

    /// The same caller in a test that injects faults: only then may a response be 500.
    #[must_use]
    pub fn meets_faults(&self) -> Self {
        Self { faults: true, ..self.clone() }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }
    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }
    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }
    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, Some(body)).await
    }
    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    /// Any request with a JSON body or none.
    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let kind = body.as_ref().map(|_| "application/json");
        let bytes = body.map(|body| serde_json::to_vec(&body).unwrap()).unwrap_or_default();
        self.send_raw(method, path, kind, Body::from(bytes)).await
    }

    /// Opens a stream of server-sent events.
    pub async fn stream(&self, path: &str) -> EventStream {
        let response = self.open(Method::GET, path, None, Body::empty()).await;
        assert_eq!(response.status(), 200, "{path}");
        EventStream { body: response.into_body(), text: String::new() }
    }

    /// A request whose response, a stream or not, is read to its end: status and text.
    pub async fn read_all(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Body,
    ) -> (u16, String) {
        let response = self.open(method, path, content_type, body).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn open(&self, method: Method, path: &str, content_type: Option<&str>, body: Body) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(kind) = content_type {
            request = request.header("content-type", kind);
        }
        self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap()
    }

    /// Any request. The response is checked against the OpenAPI document.
    pub async fn send_raw(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Body,
    ) -> Answer {
        let (parts, mut body) = self.open(method.clone(), path, content_type, body).await.into_parts();
        // Only the event log is endless; the response of a waiting tool is a stream with an end.
        let endless = path != "/mcp"
            && !path.starts_with("/mcp?")
            && parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let bytes = if endless {
            // An endless stream: its first piece is the response.
            body.frame().await.unwrap().unwrap().into_data().unwrap()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, bytes };
        assert!(self.faults || answer.status != 500, "{method} {path} answered 500: {}", answer.text());
        contract::check(&method, path, &answer);
        answer
    }
}
