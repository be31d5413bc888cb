//! A tool call as an API request. The API validates the arguments: this file only puts them in their places.

use axum::{body::Body, extract::Request};
use base64::Engine as _;
use http::{HeaderValue, header};
use operations::{Error, ErrorKind, Result};
use rmcp::model::JsonObject;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    guest::Guest,
    meant,
    tools::{
        self, ArgumentLocation, CONFIRMATION, CONTENT, CONTENT_TYPE, IDEMPOTENCY_KEY, RESPOND_ASYNC, Tool,
    },
};

/// A call that is ready to be made.
pub(crate) struct PreparedCall {
    pub(crate) request: Request,
    pub(crate) details: CallDetails,
}

/// What is known about a call besides its request.
pub(crate) struct CallDetails {
    /// The workspace in the path.
    pub(crate) workspace: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) confirmation: Option<String>,
    /// Identifies this call among all calls of all keys.
    pub(crate) fingerprint: [u8; 32],
}

/// Puts the arguments in their places.
pub(crate) fn prepare(guest: &Guest, tool: &Tool, arguments: JsonObject) -> Result<PreparedCall> {
    meant::check(tool, &arguments)?;
    let mut arguments = arguments;
    let confirmation = if tool.destructive { take_text(&mut arguments, CONFIRMATION)? } else { None };
    let idempotency_key =
        if tool.operation.writes { take_text(&mut arguments, IDEMPOTENCY_KEY)? } else { None };
    let fingerprint = fingerprint(guest, tool, &arguments);
    let respond_async = tool.arguments().is_some_and(|known| known.contains_key(RESPOND_ASYNC))
        && arguments.remove(RESPOND_ASYNC) == Some(Value::Bool(true));

    let (path, workspace) = path(guest, tool, &mut arguments)?;
    let content = match tool.body {
        tools::Body::Bytes => Some(content(&mut arguments)?),
        tools::Body::Json | tools::Body::None => None,
    };
    let (query, rest) = split(tool, arguments)?;
    let uri = if query.is_empty() { path } else { format!("{path}?{query}") };
    let mut request = Request::builder().method(tool.method.clone()).uri(uri);
    if let Some(headers) = request.headers_mut() {
        headers.insert("x-api-key", HeaderValue::from_str(&guest.key).map_err(Error::internal)?);
        if let Some(key) = &idempotency_key {
            let key = HeaderValue::from_str(key).map_err(|_| Error::new(ErrorKind::InvalidIdempotencyKey))?;
            headers.insert("idempotency-key", key);
        }
        if respond_async {
            headers.insert("prefer", HeaderValue::from_static("respond-async"));
        }
    }
    let body = match (content, tool.body) {
        (Some((kind, bytes)), _) => {
            request = request.header(header::CONTENT_TYPE, kind);
            Body::from(bytes)
        }
        (None, tools::Body::Json) => {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(serde_json::to_vec(&rest).map_err(Error::internal)?)
        }
        (None, _) => Body::empty(),
    };
    let request = request.body(body).map_err(Error::internal)?;
    Ok(PreparedCall {
        request,
        details: CallDetails { workspace, idempotency_key, confirmation, fingerprint },
    })
}

/// The same arguments in another order are the same call.
fn fingerprint(guest: &Guest, tool: &Tool, arguments: &JsonObject) -> [u8; 32] {
    let mut arguments = Value::Object(arguments.clone());
    arguments.sort_all_objects();
    let mut hash = Sha256::new();
    for piece in [guest.caller.actor.id(), tool.name(), &arguments.to_string()] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    hash.finalize().into()
}

fn take_text(arguments: &mut JsonObject, name: &str) -> Result<Option<String>> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::invalid(name, "expected a text")),
    }
}

/// The path with its parameters, and the workspace in it.
fn path(guest: &Guest, tool: &Tool, arguments: &mut JsonObject) -> Result<(String, Option<String>)> {
    let (mut path, mut workspace) = (String::new(), None);
    for segment in tool.path.split('/').skip(1) {
        path.push('/');
        let Some(name) = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) else {
            path.push_str(segment);
            continue;
        };
        let own = || guest.caller.access(None).map(|access| access.workspace.to_string());
        let value = match take_text(arguments, name)? {
            Some(value) if !value.is_empty() => value,
            None if name == "workspaceId" => own()?,
            Some(_) => return Err(Error::invalid(name, "must not be empty")),
            None => return Err(Error::invalid(name, "is required")),
        };
        if name == "workspaceId" {
            workspace = Some(value.clone());
        }
        path.extend(percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC));
    }
    Ok((path, workspace))
}

/// The bytes of a body that is not JSON, and their media type.
fn content(arguments: &mut JsonObject) -> Result<(HeaderValue, Vec<u8>)> {
    let required = |name: &str| Error::invalid(name, "is required");
    let kind = take_text(arguments, CONTENT_TYPE)?.ok_or_else(|| required(CONTENT_TYPE))?;
    let text = take_text(arguments, CONTENT)?.ok_or_else(|| required(CONTENT))?;
    let kind = HeaderValue::from_str(&kind).map_err(|_| Error::invalid(CONTENT_TYPE, "is no media type"))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim());
    let bytes = bytes.map_err(|_| Error::invalid(CONTENT, "is not base64"))?;
    Ok((kind, bytes))
}

/// The query, and what is left for the body.
fn split(tool: &Tool, arguments: JsonObject) -> Result<(String, JsonObject)> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut rest = JsonObject::new();
    for (name, value) in arguments {
        let in_body = match tool.locations.get(&name) {
            Some(ArgumentLocation::Body) => true,
            Some(ArgumentLocation::Query | ArgumentLocation::Path) => false,
            None => tool.body == tools::Body::Json,
        };
        match value {
            value if in_body => {
                rest.insert(name, value);
            }
            Value::Null => {}
            Value::String(text) => {
                query.append_pair(&name, &text);
            }
            value @ (Value::Bool(_) | Value::Number(_)) => {
                query.append_pair(&name, &value.to_string());
            }
            Value::Array(_) | Value::Object(_) => {
                return Err(Error::invalid(name, "expected a text, a number, true or false"));
            }
        }
    }
    Ok((query.finish(), rest))
}
