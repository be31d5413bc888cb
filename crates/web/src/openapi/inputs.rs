//! An endpoint's inputs in an OpenAPI document: parameters and a body.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::examples;
use crate::endpoint::{Endpoint, Output};

/// An endpoint's inputs: parameters and a body.
pub(crate) fn inputs(endpoint: &Endpoint, reading: &mut SchemaGenerator) -> (Vec<Value>, Option<Value>) {
    let operation = endpoint.operation;
    let input = (endpoint.describe_input)(reading);
    let mut parameters = parameters("path", input.path.as_ref());
    parameters.extend(self::parameters("query", input.query.as_ref()));
    add_query_examples(operation.id, &mut parameters);
    if !endpoint.method.is_safe() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "A key of your own that makes the write safe to repeat for 24 hours.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }));
    }
    if input.prefers {
        parameters.push(json!({
            "name": "Prefer", "in": "header", "required": false,
            "description": "`respond-async` returns at once, without waiting for other servers.",
            "schema": { "type": "string" },
        }));
    }
    if operation.tagged {
        parameters.push(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "The ETag of an earlier response; 304 if it still matches.",
            "schema": { "type": "string" },
        }));
    }
    if matches!(endpoint.output, Output::Events(_)) {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "The sequence of the last event received, to resume after it.",
            "schema": { "type": "string" },
        }));
    }
    let body = input.body.map(|schema| {
        let types = endpoint.body_types.iter();
        let mut media = json!({ "schema": schema });
        if let Some(example) = examples::body(operation.id) {
            media["example"] = example;
        }
        let content: Map<String, Value> = types.map(|kind| ((*kind).to_owned(), media.clone())).collect();
        json!({ "required": !endpoint.body_optional, "content": content })
    });
    (parameters, body)
}

/// Adds the examples of query parameters.
pub(crate) fn add_query_examples(id: &str, parameters: &mut [Value]) {
    for parameter in parameters.iter_mut().filter(|parameter| parameter["in"] == "query") {
        if let Some(example) = parameter["name"].as_str().and_then(|name| examples::query(id, name)) {
            parameter["example"] = example;
        }
    }
}

/// The properties of an object as parameters.
pub(crate) fn parameters(location: &str, schema: Option<&Schema>) -> Vec<Value> {
    let Some(schema) = schema else { return Vec::new() };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let all = properties.into_iter().flatten();
    all.map(|(name, property)| {
        let mut property = property.clone();
        let description = property.as_object_mut().and_then(|object| object.remove("description"));
        json!({
            "name": name, "in": location, "required": location == "path" || is_required(name),
            "description": description, "schema": property,
        })
    })
    .collect()
}
