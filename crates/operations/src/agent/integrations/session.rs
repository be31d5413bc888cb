//! A session with a tool server: initialize, list or call tools, close. Every step is bounded in time and size, and
//! nothing that the server says is more than data.

use std::{sync::Arc, time::Duration};

use mail::safe_text::SafeText;
use model::integrations::{OutsideTool, TOOLS_PER_CONNECTION};
use serde_json::{Value, json};
use url::Url;

use super::{Target, session_wire as wire};
use crate::{
    core::{
        app::App,
        error::Error,
        ports::{HttpExchange, HttpFault, HttpResponse},
    },
    notify::webhooks::target::check_target,
};

/// The protocol version that we speak, and the ones that we also accept.
const VERSION: &str = "2025-06-18";
const ACCEPTED_VERSIONS: [&str; 4] = ["2025-11-25", VERSION, "2025-03-26", "2024-11-05"];
/// Maximum time for one request, for a tool call, and for reading all tools.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of one response.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Pages of tools that are read.
const MAX_PAGES: usize = 10;
/// Characters of a description, bytes of a schema, and characters of a result.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
const MAX_SCHEMA_BYTES: usize = 16_000;
const MAX_RESULT_CHARS: usize = 16_000;

/// A session with a tool server.
pub(crate) struct Session {
    target: Arc<Target>,
    version: String,
    id: Option<String>,
    last_request: u64,
}

/// The tools of a server, or why they could not be read.
pub(super) async fn tools(app: &App, target: &Target) -> Result<Vec<OutsideTool>, String> {
    let read = async {
        let mut session = Session::begin(app, &Arc::new(target.clone())).await?;
        let tools = session.tools(app).await;
        session.close(app).await;
        tools
    };
    tokio::time::timeout(SYNC_TIMEOUT, read)
        .await
        .unwrap_or_else(|_| Err("Reading its tools takes too long.".to_owned()))
}

impl Session {
    /// Opens a session to call a tool.
    pub(crate) async fn open(app: &App, target: &Arc<Target>) -> Result<Self, Error> {
        Self::begin(app, target).await.map_err(|reason| Error::invalid("server", reason))
    }

    async fn begin(app: &App, target: &Arc<Target>) -> Result<Self, String> {
        let mut session = Self { target: target.clone(), version: String::new(), id: None, last_request: 0 };
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": { "name": "agent-mailbox", "version": env!("CARGO_PKG_VERSION") },
        });
        let begun = session.ask(app, "initialize", params, REQUEST_TIMEOUT).await?;
        let version = begun["protocolVersion"].as_str().unwrap_or_default();
        if !ACCEPTED_VERSIONS.contains(&version) {
            return Err("It speaks no version of the protocol that is understood here.".to_owned());
        }
        version.clone_into(&mut session.version);
        let body = wire::notification("notifications/initialized");
        session.exchange(app, body, false, REQUEST_TIMEOUT).await?;
        Ok(session)
    }

    async fn tools(&mut self, app: &App) -> Result<Vec<OutsideTool>, String> {
        let mut all: Vec<OutsideTool> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let page = self.ask(app, "tools/list", params, REQUEST_TIMEOUT).await?;
            let listed = page["tools"].as_array().ok_or("It lists no tools.")?;
            for tool in listed.iter().filter_map(read_tool) {
                if all.len() < TOOLS_PER_CONNECTION && !all.iter().any(|known| known.name == tool.name) {
                    all.push(tool);
                }
            }
            cursor = page["nextCursor"].as_str().filter(|next| next.len() <= 2048).map(ToOwned::to_owned);
            if cursor.is_none() || all.len() >= TOOLS_PER_CONNECTION {
                break;
            }
        }
        Ok(all)
    }

    /// Calls a tool, and returns its result as data.
    pub(crate) async fn call(&mut self, app: &App, tool: &str, arguments: Value) -> Result<Value, Error> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.ask(app, "tools/call", params, CALL_TIMEOUT).await;
        result.map(|result| read_result(&result)).map_err(|reason| Error::invalid("server", reason))
    }

    /// Closes the session; errors are ignored.
    pub(crate) async fn close(self, app: &App) {
        if self.id.is_some() {
            let _ = self.exchange(app, Vec::new(), true, Duration::from_secs(2)).await;
        }
    }

    async fn ask(
        &mut self,
        app: &App,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<Value, String> {
        self.last_request += 1;
        let body = wire::request(self.last_request, method, &params);
        let answered = self.exchange(app, body, false, timeout).await?;
        if answered.status != 200 {
            return Err(match answered.status {
                401 | 403 => format!("It refuses the credentials ({}).", answered.status),
                status => format!("It answered with status {status}."),
            });
        }
        let Some(mut message) = wire::answer(&answered.media_type, &answered.body, self.last_request) else {
            return Err("Its answer cannot be understood.".to_owned());
        };
        if method == "initialize" {
            self.id = answered.session.filter(|id| is_visible(id));
        }
        match message.get_mut("result") {
            Some(result) if result.is_object() => Ok(result.take()),
            _ => Err(refusal(&message["error"])),
        }
    }

    async fn exchange(
        &self,
        app: &App,
        body: Vec<u8>,
        delete: bool,
        timeout: Duration,
    ) -> Result<HttpResponse, String> {
        let url = Url::parse(&self.target.url).map_err(|_| "Its address cannot be read.")?;
        check_target(&url, app.settings().webhooks_allow_private)
            .map_err(|fault| format!("Its address {fault}."))?;
        let mut headers: Vec<(String, String)> =
            vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())];
        if !self.version.is_empty() {
            headers.push(("mcp-protocol-version".to_owned(), self.version.clone()));
        }
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id".to_owned(), id.clone()));
        }
        headers.extend(self.target.headers.clone());
        let request = HttpExchange {
            url,
            delete,
            headers,
            body,
            max_bytes: MAX_RESPONSE_BYTES,
            timeout,
            complete: wire::is_answered,
        };
        let answered = app.http().exchange(request).await;
        answered.map_err(|fault| match fault {
            HttpFault::Network(reason) | HttpFault::Refused(reason) => reason,
        })
    }
}

/// Whether a session id can be sent back.
fn is_visible(text: &str) -> bool {
    (1..=512).contains(&text.len()) && text.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

/// The error of a server, in its own words.
fn refusal(error: &Value) -> String {
    let said = error["message"].as_str().unwrap_or_default();
    let line = SafeText::line(said);
    format!("It answered with an error: {}", line.cut(200).0)
}

/// A tool as a server describes it, if it is usable.
fn read_tool(tool: &Value) -> Option<OutsideTool> {
    let name = tool["name"].as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    if name.is_empty() || name.len() > 128 || !name.chars().all(plain) {
        return None;
    }
    let described = SafeText::from_plain(tool["description"].as_str().unwrap_or_default());
    let schema = &tool["inputSchema"];
    let usable = schema.is_object() && schema.to_string().len() <= MAX_SCHEMA_BYTES;
    Some(OutsideTool {
        name: name.to_owned(),
        description: described.cut(MAX_DESCRIPTION_CHARS).0.to_owned(),
        parameters: if usable { schema.clone() } else { json!({ "type": "object" }) },
        read_only: tool["annotations"]["readOnlyHint"] == true,
    })
}

/// The result of a tool: its texts, or else its structured content as text.
fn read_result(result: &Value) -> Value {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|one| one["text"].as_str()).collect();
    let text = if texts.is_empty() && !result["structuredContent"].is_null() {
        result["structuredContent"].to_string()
    } else {
        texts.join("\n")
    };
    let safe = SafeText::from_plain(&text);
    let (shown, whole) = safe.cut(MAX_RESULT_CHARS);
    json!({ "text": shown, "truncated": whole.is_some(), "is_error": result["isError"] == true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_taken_over_within_bounds() {
        let tool = read_tool(&json!({
            "name": "find", "description": "Finds\u{e0041}\u{202e} things", "annotations": { "readOnlyHint": true },
            "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } } },
        }));
        let tool = tool.unwrap();
        assert_eq!((tool.description.as_str(), tool.read_only), ("Finds things", true));
        assert_eq!(tool.parameters["properties"]["q"]["type"], "string");
        for bad in
            [json!({}), json!({ "name": "" }), json!({ "name": "a b" }), json!({ "name": "x".repeat(200) })]
        {
            assert!(read_tool(&bad).is_none(), "{bad}");
        }
        let huge = json!({ "name": "a", "description": "d".repeat(9000), "inputSchema": { "x": "y".repeat(99_999) } });
        let huge = read_tool(&huge).unwrap();
        assert_eq!((huge.description.len(), huge.parameters), (1000, json!({ "type": "object" })));
        assert!(!huge.read_only);
    }

    #[test]
    fn results_are_bounded_text() {
        let result =
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "image" }, { "text": "b" }] });
        assert_eq!(read_result(&result), json!({ "text": "a\nb", "truncated": false, "is_error": false }));
        let long = json!({ "content": [{ "text": "x".repeat(50_000) }], "isError": true });
        let shown = read_result(&long);
        assert_eq!(shown["text"].as_str().unwrap().len(), MAX_RESULT_CHARS);
        assert_eq!((&shown["truncated"], &shown["is_error"]), (&json!(true), &json!(true)));
        assert_eq!(read_result(&json!({ "structuredContent": { "n": 1 } }))["text"], "{\"n\":1}");
    }
}
