//! The bridge's side of streamable HTTP: one POST per message, answered with one JSON message or a stream of them.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use url::Url;

use crate::failure::{Failure, Result};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Read timeout. A wait lasts at most two minutes, and streams have keep-alives.
const READ_TIMEOUT: Duration = Duration::from_secs(150);
/// The longest answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Where a request of the newest protocol states its version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The first version whose requests repeat their method and name in headers.
const NAMED_IN_HEADERS: &str = "2026-07-28";

/// Why a request got no response of the protocol.
pub(super) enum RequestFailure {
    /// The server could not be reached.
    Unreachable(String),
    /// The server refused it, with its error.
    Refused(u16, Value),
}

/// The connection to the server.
pub(super) struct Wire {
    client: reqwest::Client,
    url: Url,
    /// The version that client and server agreed on.
    version: Mutex<Option<String>>,
}

impl Wire {
    pub(super) fn new(url: Url, key: &str) -> Result<Self> {
        let mut headers = HeaderMap::new();
        let mut key = HeaderValue::from_str(key)
            .map_err(|_| Failure::new("The API key contains characters that a key cannot have"))?;
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let client = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            // The key is for this server only, so redirects are not followed.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| Failure::new(format!("Cannot make connections: {error}")))?;
        Ok(Self { client, url, version: Mutex::new(None) })
    }

    /// Sends a message, and forwards all responses.
    pub(super) async fn send(
        &self,
        message: &Value,
        line: String,
        responses: &mpsc::Sender<String>,
    ) -> Result<(), RequestFailure> {
        let request = self.client.post(self.url.clone()).headers(self.headers(message)).body(line);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let expects = message.get("id").is_some() && message.get("method").is_some();
        let mut answer = Answer::new(is_stream && status.is_success());
        let mut response = response;
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            let messages = answer.add(&chunk).map_err(RequestFailure::Unreachable)?;
            for one in messages {
                self.forward(message, one, responses).await;
            }
        }
        let rest: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        if status.is_success() || rest.get("jsonrpc").is_some() {
            if !is_stream && rest.is_object() {
                self.forward(message, rest.to_string(), responses).await;
            } else if expects && !answer.complete {
                return Err(RequestFailure::Unreachable(format!("{} did not answer", self.url)));
            }
            return Ok(());
        }
        Err(RequestFailure::Refused(status.as_u16(), rest))
    }

    fn unreachable(&self, error: &reqwest::Error) -> RequestFailure {
        use std::error::Error as _;
        let mut cause = error.source();
        while let Some(next) = cause.and_then(std::error::Error::source) {
            cause = Some(next);
        }
        let why = cause.map_or_else(|| error.to_string(), ToString::to_string);
        RequestFailure::Unreachable(format!("Cannot reach {}: {why}", self.url))
    }

    /// Remembers the protocol version of the handshake.
    async fn forward(&self, request: &Value, answer: String, responses: &mpsc::Sender<String>) {
        if request["method"] == "initialize" {
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            if let Some(version) = answer["result"]["protocolVersion"].as_str() {
                *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
            }
        }
        // A client that disconnected needs no response.
        let _ = responses.send(answer).await;
    }

    fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let own = message["params"]["_meta"][VERSION].as_str().map(ToOwned::to_owned);
        let agreed = || self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_handshake = message["method"] == "initialize";
        let Some(version) = own.or_else(agreed).filter(|_| !is_handshake) else { return headers };
        let mut add = |name: &'static str, value: &Value| {
            if let Some(Ok(value)) = value.as_str().map(HeaderValue::from_str) {
                headers.insert(name, value);
            }
        };
        add("mcp-protocol-version", &json!(version));
        if version.as_str() >= NAMED_IN_HEADERS {
            add("mcp-method", &message["method"]);
            add("mcp-name", &message["params"]["name"]);
        }
        headers
    }
}

/// A response as it arrives.
struct Answer {
    is_stream: bool,
    bytes: Vec<u8>,
    /// Whether the response itself has arrived, not only notifications before it.
    complete: bool,
}

impl Answer {
    const fn new(is_stream: bool) -> Self {
        Self { is_stream, bytes: Vec::new(), complete: false }
    }

    /// Adds a piece, and returns the messages of a stream that are complete.
    fn add(&mut self, chunk: &[u8]) -> Result<Vec<String>, String> {
        if self.bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err("The answer has more than 64 MiB".to_owned());
        }
        self.bytes.extend_from_slice(chunk);
        let mut messages = Vec::new();
        while self.is_stream
            && let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n")
        {
            let event: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event);
            let data: Vec<&str> =
                event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
            let data = data.join("");
            if !data.is_empty() {
                let message: Value = serde_json::from_str(&data).unwrap_or_default();
                self.complete |= message.get("result").is_some() || message.get("error").is_some();
                messages.push(data);
            }
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_cut_into_messages_wherever_the_pieces_end() {
        let text = ": ping\n\ndata: {\"method\":\"a\"}\n\nid: 1\ndata: {\"result\":\ndata: 1}\n\n";
        for size in 1..text.len() {
            let mut answer = Answer::new(true);
            let mut messages = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                messages.extend(answer.add(chunk).unwrap());
            }
            assert_eq!(messages, ["{\"method\":\"a\"}", "{\"result\":1}"], "{size}");
            assert!(answer.complete && answer.bytes.is_empty());
        }
    }
}
