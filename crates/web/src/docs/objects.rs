//! The objects of the API in a line each, for `llms.txt`: their fields with types, without descriptions.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Map, Value};

use super::reference::{Operation, Reference};

const SCHEMAS: &str = "#/components/schemas/";

/// What an operation returns, such as `Email` or `Mailbox[]`.
pub(super) fn response(reference: &Reference, operation: &Operation<'_>) -> Option<String> {
    let responses = operation.responses();
    let content = responses.iter().find(|response| !response.is_error())?.content?;
    match content.kind {
        "application/json" => Some(format!("`{}`", kind(reference, content.schema))),
        "text/event-stream" => Some("a stream of `Event`".to_owned()),
        _ => Some("the file".to_owned()),
    }
}

/// The objects that operations of the API take or return inside, one a line.
pub(super) fn list(reference: &Reference) -> String {
    let mut names = BTreeSet::new();
    for operation in reference.operations() {
        let responses = operation.responses();
        let fine = responses.iter().filter(|response| !response.is_error());
        for content in fine.filter_map(|response| response.content) {
            collect(reference, content.schema, &mut names);
        }
        // The fields of a body stand with its operation; what is inside stands here.
        if let Some(body) = operation.body() {
            for inner in body_parts(reference, body.schema) {
                collect(reference, inner, &mut names);
            }
        }
    }
    let mut lines = String::new();
    for name in names {
        let Some(schema) = reference.schema(&format!("{SCHEMAS}{name}")) else { continue };
        if let Some(line) = describe(reference, schema) {
            let _ = writeln!(lines, "- `{name}`: {line}");
        }
    }
    lines
}

fn body_parts<'a>(reference: &'a Reference, schema: &'a Value) -> Vec<&'a Value> {
    let target = schema["$ref"].as_str().and_then(|target| reference.schema(target));
    let properties = target.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(Map::values).collect()
}

/// The names of the schemas that a schema refers to, directly or not.
fn collect(reference: &Reference, schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (key, inner) in members {
                match inner.as_str().filter(|_| key == "$ref") {
                    Some(target) => {
                        let name = target.trim_start_matches(SCHEMAS).to_owned();
                        if names.insert(name)
                            && let Some(found) = reference.schema(target)
                        {
                            collect(reference, &Value::Object(found.clone()), names);
                        }
                    }
                    None => collect(reference, inner, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(reference, item, names)),
        _ => {}
    }
}

/// The fields of an object, or the values of an enumeration.
fn describe(reference: &Reference, schema: &Map<String, Value>) -> Option<String> {
    let whole = Value::Object(schema.clone());
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        let kind = kind(reference, &whole);
        return (kind != "string").then(|| kind.replace('|', " | "));
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let fields = properties.iter().map(|(name, inner)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{name}{mark}: {}", kind(reference, inner))
    });
    Some(fields.collect::<Vec<_>>().join(", "))
}

/// The type of a value in a word.
fn kind(reference: &Reference, schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        let found = reference.schema(target);
        // Ids and texts with bounds are plain strings to a reader.
        let is_plain = found.is_some_and(|schema| {
            schema.get("type").is_some_and(|kind| kind == "string") && !schema.contains_key("enum")
        });
        return if is_plain { "string".to_owned() } else { target.trim_start_matches(SCHEMAS).to_owned() };
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(options) = schema[keyword].as_array() {
            return options.iter().map(|one| kind(reference, one)).collect::<Vec<_>>().join("|");
        }
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("{}[]", kind(reference, &schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let name = |one: &Value| match one.as_str() {
                Some("array") => format!("{}[]", kind(reference, &schema["items"])),
                other => other.unwrap_or_default().to_owned(),
            };
            names.iter().map(name).collect::<Vec<_>>().join("|")
        }
        _ => "any".to_owned(),
    }
}
