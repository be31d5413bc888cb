//! An endpoint's responses in an OpenAPI document: the success, and every error by its status.

use std::collections::BTreeMap;

use operations::{Answer, ErrorKind};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::{
    endpoint::{Endpoint, Output},
    error,
    pipeline::success_status,
};

/// An endpoint's responses.
pub(crate) fn responses(
    endpoint: &Endpoint,
    writing: &mut SchemaGenerator,
    headers: &Value,
    errors: BTreeMap<u16, Vec<ErrorKind>>,
) -> Value {
    let operation = endpoint.operation;
    let status = success_status(operation.answer).as_str().to_owned();
    let description = match operation.answer {
        Answer::Ok => "The result.",
        Answer::Created => "The new resource.",
        Answer::Accepted => "Accepted.",
        Answer::Empty => "Done. There is no body.",
    };
    let mut success = json!({ "description": description, "headers": headers });
    if operation.tagged {
        let tag = json!({ "description": "The value for If-None-Match.", "schema": { "type": "string" } });
        success["headers"]["ETag"] = tag;
    }
    match endpoint.output {
        Output::Empty => {}
        Output::Json(output) => {
            success["content"] = json!({ "application/json": { "schema": output(writing) } });
        }
        Output::File => {
            success["content"] = json!({ "*/*": { "schema": { "type": "string", "format": "binary" } } });
        }
        Output::Either(output, event) => {
            success["content"] = json!({
                "application/json": { "schema": output(writing) },
                "text/event-stream": { "schema": { "type": "string" } },
            });
            success["x-event"] = json!(event(writing));
        }
        Output::Events(output) => {
            success["content"] = json!({ "text/event-stream": { "schema": { "type": "string" } } });
            // The content of each `data:` line.
            success["x-event"] = json!(output(writing));
        }
    }
    let mut responses = Map::new();
    if matches!(endpoint.output, Output::File) {
        let mut part = success.clone();
        part["description"] = "The part that the Range header requested.".into();
        responses.insert("206".to_owned(), part);
    }
    responses.insert(status, success);
    if operation.tagged {
        responses.insert("304".to_owned(), json!({ "description": "Not modified." }));
    }
    for (status, kinds) in errors {
        responses.insert(status.to_string(), error_response(&kinds));
    }
    Value::Object(responses)
}

/// An error response with its possible codes.
pub(crate) fn error_response(kinds: &[ErrorKind]) -> Value {
    let lines: Vec<String> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.code(), kind.message())).collect();
    let codes: Vec<&str> = kinds.iter().map(|kind| kind.code()).collect();
    let mut response = json!({
        "description": lines.join("\n\n"),
        "x-codes": codes,
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    let retry = [
        ErrorKind::RateLimited,
        ErrorKind::EmailSendRateLimitExceeded,
        ErrorKind::SendCapExceeded,
        ErrorKind::IdempotencyInProgress,
        ErrorKind::Overloaded,
        ErrorKind::StorageUnavailable,
    ];
    if kinds.iter().any(|kind| retry.contains(kind)) {
        response["headers"] =
            json!({ "Retry-After": { "description": "Seconds to wait.", "schema": { "type": "integer" } } });
    }
    response
}

/// Errors grouped by status.
pub(crate) fn by_status(mut kinds: Vec<ErrorKind>) -> BTreeMap<u16, Vec<ErrorKind>> {
    kinds.sort_unstable();
    kinds.dedup();
    let mut groups: BTreeMap<u16, Vec<ErrorKind>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(error::status(kind).as_u16()).or_default().push(kind);
    }
    groups
}
