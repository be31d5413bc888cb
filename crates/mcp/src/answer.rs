//! The API's response as the result of a tool: the same JSON, as text and as structured content, with the headers'
//! figures in `_meta`.

use axum::{body::Bytes, response::Response};
use base64::Engine as _;
use http::{HeaderMap, header};
use operations::{Error, Rate};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Resource, ResourceContents};
use serde_json::{Value, json};

use crate::budget::{self, Budget};

/// The largest file inside a result; for a larger one the result has its URL.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Longer responses are converted on a blocking thread.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// Turns a response of the API into a result.
pub(crate) async fn shape(response: Response, address: String, budget: Budget) -> CallToolResult {
    let (parts, body) = response.into_parts();
    let failed = !parts.status.is_success();
    let meta = meta(parts.status.as_u16(), &parts.headers);
    let bytes = match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return failure(&Error::internal(error)),
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !failed && kind.is_some_and(|kind| kind != "application/json") {
        return file(&parts.headers, kind.unwrap_or_default(), &bytes, address, meta);
    }
    let long = bytes.len() > MAX_INLINE_BYTES;
    let work = move || budget::fit(read(&bytes), budget);
    let shaped = if long { tokio::task::spawn_blocking(work).await.ok() } else { Some(work()) };
    match shaped {
        Some((value, text)) => result(value, text, failed, meta),
        None => failure(&Error::internal("an answer could not be shaped")),
    }
}

/// A call that was refused, as the API's error.
pub(crate) fn failure(refused: &Error) -> CallToolResult {
    let mut value = json!({ "error": refused.message(), "code": refused.kind().code() });
    if !refused.details().is_empty() {
        let details = refused.details().iter();
        value["details"] =
            details.map(|detail| json!({ "path": detail.path, "message": detail.message })).collect();
    }
    if let Some(fix) = refused.fix_or_default() {
        value["fix"] = fix.into();
    }
    let mut meta = MetaObject::new();
    if let Some(seconds) = refused.retry_after() {
        meta.0.insert("agent-mailbox/retry-after".to_owned(), seconds.into());
    }
    let text = value.to_string();
    result(value, text, true, meta)
}

/// A result with both forms of a value.
pub(crate) fn result(value: Value, text: String, failed: bool, meta: MetaObject) -> CallToolResult {
    let mut result = CallToolResult::default();
    result.content = vec![ContentBlock::text(text)];
    result.structured_content = Some(value);
    result.is_error = Some(failed);
    result.meta = Some(meta);
    result
}

/// Structured content must be an object, whatever the API responds with.
fn read(bytes: &Bytes) -> Value {
    match serde_json::from_slice(bytes) {
        Ok(value @ Value::Object(_)) => value,
        Ok(Value::Array(items)) => json!({ "items": items }),
        Ok(other) => json!({ "value": other }),
        // 204: done, without content.
        Err(_) => json!({ "ok": true }),
    }
}

fn file(headers: &HeaderMap, kind: &str, bytes: &Bytes, address: String, meta: MetaObject) -> CallToolResult {
    let disposition =
        headers.get(header::CONTENT_DISPOSITION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = disposition.split("filename=\"").nth(1).and_then(|rest| rest.split('"').next());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("file");
    let mut file_info = json!({ "filename": name, "media_type": kind, "size": bytes.len(), "url": address });
    let content = if bytes.len() <= MAX_FILE_BYTES {
        file_info["encoding"] = "base64".into();
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        ContentBlock::resource(ResourceContents::blob(data, address).with_mime_type(kind))
    } else {
        file_info["fix"] =
            "The file is too large for a result: download it from url with the same x-api-key.".into();
        let resource = Resource::new(address, name).with_mime_type(kind).with_size(bytes.len() as u64);
        ContentBlock::resource_link(resource)
    };
    let text = file_info.to_string();
    let mut result = result(file_info, text, false, meta);
    result.content.push(content);
    result
}

/// The figures in the headers of a response.
fn meta(status: u16, headers: &HeaderMap) -> MetaObject {
    let number = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()?.parse::<i64>().ok()).map(Value::from)
    };
    let group = |names: &[(&str, &str)]| {
        let found = names.iter().filter_map(|(name, header)| Some(((*name).to_owned(), number(header)?)));
        let found: JsonObject = found.collect();
        (!found.is_empty()).then_some(Value::Object(found))
    };
    let credits = group(&[("charged", "x-credits-charged"), ("remaining", "x-credits-remaining")]);
    let rate = group(&[
        ("limit", "ratelimit-limit"),
        ("remaining", "ratelimit-remaining"),
        ("reset", "ratelimit-reset"),
    ]);
    let replayed = headers.contains_key("idempotent-replayed").then_some(Value::Bool(true));
    let fields = [
        ("agent-mailbox/status", Some(status.into())),
        ("agent-mailbox/credits", credits),
        ("agent-mailbox/rate", rate),
        ("agent-mailbox/retry-after", number("retry-after")),
        ("agent-mailbox/replayed", replayed),
    ];
    MetaObject(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// The figures of a call that was refused by a gate.
pub(crate) fn with_rate(mut result: CallToolResult, rate: Option<Rate>) -> CallToolResult {
    let meta = result.meta.get_or_insert_with(MetaObject::new);
    meta.0.insert("agent-mailbox/credits".to_owned(), json!({ "charged": 0 }));
    if let Some(rate) = rate {
        let rate = json!({ "limit": rate.limit, "remaining": rate.remaining, "reset": rate.reset });
        meta.0.insert("agent-mailbox/rate".to_owned(), rate);
    }
    result
}
