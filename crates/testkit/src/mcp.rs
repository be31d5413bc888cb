//! An MCP client for tests.

use axum::{body::Body, http::Method};
use serde_json::{Value, json};

use crate::{Answer, Caller};

/// A client of `/mcp`.
#[derive(Clone)]
pub struct Mcp {
    caller: Caller,
    path: String,
}

impl Caller {
    /// The same caller as an MCP client with all tools.
    pub fn mcp(&self) -> Mcp {
        let caller = self
            .with("host", "mail.test")
            .with("accept", "application/json, text/event-stream")
            .with("mcp-protocol-version", "2025-11-25");
        Mcp { caller, path: "/mcp?profile=full".to_owned() }
    }
}

impl Mcp {
    /// The same client with a profile.
    #[must_use]
    pub fn profile(&self, profile: &str) -> Self {
        Self { path: format!("/mcp?profile={profile}"), ..self.clone() }
    }

    /// The same client without a profile, so with the default one.
    #[must_use]
    pub fn default_profile(&self) -> Self {
        Self { path: "/mcp".to_owned(), ..self.clone() }
    }

    /// The same client with one more header.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        Self { caller: self.caller.with(name, value), ..self.clone() }
    }

    /// Sends a message unchanged.
    pub async fn send(&self, message: Value) -> Answer {
        let body = Body::from(serde_json::to_vec(&message).unwrap());
        self.caller.send_raw(Method::POST, &self.path, Some("application/json"), body).await
    }

    /// Makes a request and returns the whole response.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let answer =
            self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        // A stream ends with the response; what precedes it are notifications.
        let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let message: Value = serde_json::from_str(last.unwrap_or(&text)).unwrap();
        assert_eq!(message["id"], 1, "{message}");
        message
    }

    /// The declarations of all tools.
    pub async fn tools(&self) -> Vec<Value> {
        self.request("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().clone()
    }

    /// Calls a tool and returns its result, successful or not.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let result = answer["result"].clone();
        assert!(result.is_object(), "{answer}");
        // Both forms have the same content.
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        result
    }

    /// Calls a tool that succeeds and returns its value.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails and returns the API's error.
    pub async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }
}
