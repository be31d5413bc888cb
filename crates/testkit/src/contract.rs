//! Checks responses against the OpenAPI document, so that what is published is what is served.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock, Mutex},
};

use axum::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::answer::Answer;

static DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| Document::read(include_str!("../../../openapi/v1.json")));
static AGENT_DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| Document::read(include_str!("../../../openapi/agent-v1.json")));

/// A document as checked in, which other tests compare with what the service serves. Only what responses need is
/// read: building the whole took longer than most tests do.
struct Document {
    text: Text<'static>,
    /// The parts read so far.
    paths: Mutex<HashMap<&'static str, Arc<Value>>>,
    validators: Mutex<HashMap<String, jsonschema::Validator>>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    paths: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    components: Components<'a>,
}

#[derive(Deserialize)]
struct Components<'a> {
    #[serde(borrow)]
    schemas: BTreeMap<&'a str, &'a RawValue>,
}

impl Document {
    fn read(text: &'static str) -> Self {
        let text = serde_json::from_str(text).unwrap();
        Self { text, paths: Mutex::default(), validators: Mutex::default() }
    }

    /// The described path that matches a path, with its operations; literal segments win over parameters.
    fn find(&self, path: &str) -> Option<(&'static str, Arc<Value>)> {
        let matching = self.text.paths.iter().filter(|(template, _)| matches(template, path));
        let (template, text) = matching.min_by_key(|(template, _)| template.matches('{').count())?;
        let mut paths = self.paths.lock().unwrap();
        let operations =
            paths.entry(template).or_insert_with(|| serde_json::from_str(text.get()).unwrap()).clone();
        Some((template, operations))
    }

    /// A validator for a schema and everything it refers to.
    fn compile(&self, schema: &Value) -> jsonschema::Validator {
        let (mut needed, mut schemas) = (references(schema), Map::new());
        while let Some(name) = needed.pop() {
            if !schemas.contains_key(&name) {
                let referred: Value =
                    serde_json::from_str(self.text.components.schemas[name.as_str()].get()).unwrap();
                needed.extend(references(&referred));
                schemas.insert(name, referred);
            }
        }
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [schema],
            "components": { "schemas": schemas },
        });
        jsonschema::validator_for(&whole).unwrap()
    }
}

/// The names of the components that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match (name.as_str(), value.as_str()) {
                ("$ref", Some(place)) => {
                    vec![place.strip_prefix("#/components/schemas/").unwrap().to_owned()]
                }
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Fails when a response of a described route has a status, a code or a shape that the document does not allow.
pub(crate) fn check(method: &Method, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap_or_default();
    let document: &Document = if is_keyless(path) { &AGENT_DOCUMENT } else { &DOCUMENT };
    let Some((template, operations)) = document.find(path) else { return };
    let described_as = if *method == Method::HEAD { Method::GET } else { method.clone() };
    let operation = &operations[described_as.as_str().to_ascii_lowercase()];
    if operation.is_null() {
        return;
    }
    let responses = &operation["responses"];
    let response = &responses[answer.status.to_string()];
    assert!(
        !response.is_null(),
        "{method} {template} answered {}, which is not described: {}",
        answer.status,
        answer.text()
    );
    if answer.status >= 400 && *method != Method::HEAD {
        let codes = response["x-codes"].as_array().unwrap();
        let code = answer.code();
        assert!(
            codes.iter().any(|one| *one == code),
            "{method} {template} gave {} {code}, which is not described",
            answer.status
        );
        let fix = answer.json()["fix"].as_str().unwrap_or_default().to_owned();
        assert!(
            !matches!(answer.status, 401 | 403 | 404) || !fix.is_empty(),
            "{method} {template} gave {} {code} without a fix",
            answer.status
        );
    }
    let streams = answer.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let either = !response["content"]["application/json"].is_null() && !streams;
    if !either && ["*/*", "text/event-stream"].iter().any(|kind| !response["content"][*kind].is_null()) {
        return;
    }
    let schema = &response["content"]["application/json"]["schema"];
    if schema.is_null() || *method == Method::HEAD {
        assert!(
            answer.bytes.is_empty(),
            "{method} {template} answered {} with an undescribed body",
            answer.status
        );
        return;
    }
    if answer.headers.contains_key("content-encoding") {
        return;
    }
    let body = answer.json();
    let mut validators = document.validators.lock().unwrap();
    let key = format!("{method} {template} {}", answer.status);
    let validator = validators.entry(key).or_insert_with(|| document.compile(schema));
    let faults: Vec<String> =
        validator.iter_errors(&body).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(
        faults.is_empty(),
        "{method} {template} {} is not as described: {faults:?}\n{body}",
        answer.status
    );
}

/// The keyless interface has a document of its own.
fn is_keyless(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/agent/")
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;

    fn answer(status: u16, body: &Value) -> Answer {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        Answer { status, headers: HeaderMap::new(), bytes: bytes.into() }
    }

    fn passes(method: &Method, path: &str, answer: &Answer) -> bool {
        std::panic::catch_unwind(|| check(method, path, answer)).is_ok()
    }

    /// Every answer goes through this check, so it must notice what it is there for.
    /// rules: API-4
    #[test]
    fn what_is_not_described_is_noticed() {
        let path = "/api/v1/mailboxes/mbx_1/folders";
        let folder = json!({ "id": "a", "name": "A", "unreadCount": 0, "totalCount": 0, "system": false });
        let missing = json!({ "error": "Mailbox not found", "code": "not_found", "fix": "Check the id." });
        assert!(passes(&Method::GET, path, &answer(200, &json!([folder]))));
        assert!(passes(&Method::POST, path, &answer(201, &folder)));
        assert!(passes(&Method::GET, path, &answer(404, &missing)));
        assert!(passes(&Method::HEAD, path, &answer(404, &Value::Null)));
        assert!(!passes(&Method::GET, path, &answer(200, &folder)), "an object for an array");
        assert!(!passes(&Method::POST, path, &answer(201, &json!({ "id": "a" }))), "fields are missing");
        assert!(!passes(&Method::POST, path, &answer(200, &folder)), "another status");
        assert!(
            !passes(&Method::GET, path, &answer(404, &json!({ "error": "Gone", "fix": "F." }))),
            "no code"
        );
        assert!(!passes(
            &Method::GET,
            path,
            &answer(404, &json!({ "error": "", "code": "gone", "fix": "F." }))
        ));
        let helpless = json!({ "error": "Mailbox not found", "code": "not_found" });
        assert!(!passes(&Method::GET, path, &answer(404, &helpless)), "no fix");
        let delete = "/api/v1/mailboxes/mbx_1";
        assert!(passes(&Method::DELETE, delete, &answer(204, &Value::Null)));
        assert!(!passes(&Method::DELETE, delete, &answer(204, &json!({}))), "a body where there is none");
    }
}
