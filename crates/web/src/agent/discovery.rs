//! What a 402 tells marketplaces about an endpoint (the `bazaar` extension), kept small.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::Endpoint;

/// An endpoint's description for marketplaces.
pub(crate) struct Bazaar {
    /// With the names and types of all its inputs.
    pub(crate) full: Value,
    /// Only its method and URL.
    pub(crate) brief: Value,
}

impl Bazaar {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut generator: SchemaGenerator = settings.into_generator();
        let input = (endpoint.describe_input)(&mut generator);
        let query = input.query.map(|schema| outline(schema.as_value()));
        let body = input.body.map(|schema| outline(schema.as_value()));
        let brief =
            describe(endpoint, query.as_ref().map(|_| &Value::Null), body.as_ref().map(|_| &Value::Null));
        Self { full: describe(endpoint, query.as_ref(), body.as_ref()), brief }
    }
}

fn describe(endpoint: &Endpoint, query: Option<&Value>, body: Option<&Value>) -> Value {
    let method = endpoint.method.as_str();
    let mut input = json!({ "type": "http", "method": method });
    let mut properties = json!({
        "type": { "type": "string", "const": "http" },
        "method": { "type": "string", "enum": [method] },
    });
    let known = |schema: &Value| if schema.is_null() { json!({ "type": "object" }) } else { schema.clone() };
    if let Some(schema) = query {
        properties["queryParams"] = known(schema);
    }
    if let Some(schema) = body {
        input["bodyType"] = "json".into();
        input["body"] = example(schema);
        properties["bodyType"] = json!({ "type": "string", "enum": ["json"] });
        properties["body"] = known(schema);
    }
    json!({
        "info": { "input": input, "output": { "type": "json" } },
        "routeTemplate": endpoint.path.replace('{', ":").replace('}', ""),
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "input": { "type": "object", "properties": properties, "required": ["type", "method"] } },
            "required": ["input"],
        },
    })
}

/// The names and types of an object's fields, without descriptions.
fn outline(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields.map(|(name, field)| (name.clone(), kind(field))).collect();
    let mut outline = json!({ "type": "object", "properties": fields });
    if schema["required"].as_array().is_some_and(|names| !names.is_empty()) {
        outline["required"] = schema["required"].clone();
    }
    outline
}

/// The type of a field; empty where several types are allowed.
fn kind(field: &Value) -> Value {
    let kind = match &field["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or(Value::Null),
        kind => kind.clone(),
    };
    if kind.is_null() { json!({}) } else { json!({ "type": kind }) }
}

/// An example input with every required field.
fn example(schema: &Value) -> Value {
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("boolean") => json!(false),
        Some("integer" | "number") => json!(1),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(name),
    };
    Value::Object(needed.map(|name| (name.to_owned(), value(name))).collect())
}
