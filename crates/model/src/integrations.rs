//! Connections to outside tool servers (Model Context Protocol) whose tools the mailbox agent may use.

use std::{collections::BTreeMap, fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccountId, ConnectionId, Timestamp, emails::named, names::valid_name};

/// How many connections a workspace can have.
pub const CONNECTIONS_PER_WORKSPACE: u64 = 20;
/// Tools of one server that are kept.
pub const TOOLS_PER_CONNECTION: usize = 100;
/// Headers of one connection.
const MAX_HEADERS: usize = 10;

named! {
    /// Whether a connection can be used.
    ConnectionStatus {
        /// Its tools are known.
        Ready "ready",
        /// The server could not be reached or understood; `last_error` says why.
        Error "error",
        /// The member who created it has left. It is not used until an admin syncs it, which takes it over.
        Paused "paused",
    }
}

/// A connection to an outside tool server. Its address and headers are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connection {
    /// Its id.
    pub id: ConnectionId,
    /// Its name.
    pub name: String,
    /// The host of its URL.
    pub url_host: String,
    /// Whether it can be used.
    pub status: ConnectionStatus,
    /// The names of the tools that the server offers.
    pub tools: Vec<String>,
    /// The names of the tools that the agent can use.
    pub allowed_tools: Vec<String>,
    /// The names of the headers sent with every request.
    pub header_names: Vec<String>,
    /// Why it cannot be used.
    pub last_error: Option<String>,
    /// When its tools were last read.
    pub synced_at: Option<Timestamp>,
    /// The member who created it or took it over; null if it belongs to the workspace, as everything created with an
    /// API key does.
    pub created_by: Option<AccountId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A new connection.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConnection {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// The URL of the server's MCP endpoint (streamable HTTP).
    #[garde(length(min = 1, max = 2048))]
    pub url: String,
    /// Headers for every request, such as `Authorization`. They are write-only.
    #[garde(custom(valid_headers))]
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The names of the tools that the agent can use. If omitted, those that the server marks as read-only.
    #[garde(inner(length(max = TOOLS_PER_CONNECTION), inner(length(chars, min = 1, max = 128))))]
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
}

/// Changes to a connection. Omitted fields stay as they are.
#[derive(Clone, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new headers; they replace all of the old ones.
    #[garde(inner(custom(valid_headers)))]
    #[serde(default)]
    pub headers: Option<BTreeMap<String, String>>,
    /// The names of the tools that the agent can use.
    #[garde(inner(length(max = TOOLS_PER_CONNECTION), inner(length(chars, min = 1, max = 128))))]
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
}

impl fmt::Debug for NewConnection {
    /// Without the address and the headers, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewConnection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionChange {
    /// Without the headers, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionChange").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Headers that belong to the protocol or to the connection itself.
const OURS: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn valid_headers(headers: &BTreeMap<String, String>, (): &()) -> garde::Result {
    let fault = |text: &str| Err(garde::Error::new(text));
    if headers.len() > MAX_HEADERS {
        return fault("at most 10 headers");
    }
    for (name, value) in headers {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
            return fault("names consist of letters, digits, hyphens and underscores");
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return fault("one of the names is used by the protocol itself");
        }
        if value.len() > 4096 || !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return fault("values have at most 4096 printable ASCII characters");
        }
    }
    Ok(())
}

/// A tool of an outside server, as far as it is kept. All of it is the server's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutsideTool {
    /// Its name there.
    pub name: String,
    /// What it does, as plain text.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
    /// Whether the server says that it changes nothing.
    pub read_only: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, value: &str) -> bool {
        valid_headers(&BTreeMap::from([(name.to_owned(), value.to_owned())]), &()).is_ok()
    }

    #[test]
    fn headers_cannot_change_the_protocol() {
        assert!(checked("Authorization", "Bearer abc"));
        assert!(checked("x-api-key", ""));
        for (name, value) in [
            ("Host", "x"),
            ("content-length", "1"),
            ("Mcp-Session-Id", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("", "x"),
        ] {
            assert!(!checked(name, value), "{name}");
        }
        for value in ["a\r\nb: c", "ü", "\0"] {
            assert!(!checked("x-a", value), "{value:?}");
        }
    }
}
