//! Examples generated from schemas: request bodies and responses.
//!
//! An example in the schema is used as it is; others are generated from names and bounds.

use serde_json::{Map, Value, json};

use super::{
    reference::{Reference, text},
    schema::Shape,
};

const MAX_DEPTH: usize = 8;

/// What an example is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A request: only what is required.
    Request,
    /// A response: every field.
    Answer,
}

/// A request body: the required fields, or the simple ones if none is required.
pub(super) fn request(reference: &Reference, schema: &Value) -> Value {
    make(reference, "", schema, Purpose::Request, 0)
}

/// A value for a field of this name.
pub(super) fn named(reference: &Reference, name: &str, schema: &Value) -> Value {
    make(reference, name, schema, Purpose::Request, 0)
}

/// A response body.
pub(super) fn answer(reference: &Reference, schema: &Value) -> Value {
    make(reference, "", schema, Purpose::Answer, 0)
}

fn make(reference: &Reference, name: &str, schema: &Value, purpose: Purpose, depth: usize) -> Value {
    let shape = Shape::of(reference, schema);
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    let is_text = shape.get("type").is_some_and(|kind| kind == "string");
    // Most nullable strings are null most of the time, such as the reason why a mailbox is disabled.
    if purpose == Purpose::Answer && shape.nullable && is_text {
        return Value::Null;
    }
    if let Some(example) = shape.get("examples").and_then(|examples| examples.get(0)) {
        return example.clone();
    }
    if let Some(first) = shape.alternatives.first() {
        let schema = Value::Object(first.schema.clone());
        return make(reference, name, &schema, purpose, depth + 1);
    }
    if let Some(items) = shape.items() {
        return json!([make(reference, singular(name), items, purpose, depth + 1)]);
    }
    if shape.get("properties").is_some() {
        return object(reference, &shape, purpose, depth);
    }
    let default = shape.get("default").filter(|value| !value.is_null());
    match default {
        // An empty string is a valid response, but not a helpful request.
        Some(default) if purpose == Purpose::Answer || default != "" => default.clone(),
        _ => simple(name, &shape, schema),
    }
}

fn object(reference: &Reference, shape: &Shape, purpose: Purpose, depth: usize) -> Value {
    let mut members = Map::new();
    let nothing_required = shape.properties().all(|(_, _, required)| !required);
    for (name, schema, required) in shape.properties() {
        let wanted = match purpose {
            Purpose::Answer => true,
            Purpose::Request => required || (nothing_required && is_simple(reference, schema)),
        };
        if wanted {
            members.insert(name.clone(), make(reference, name, schema, purpose, depth + 1));
        }
    }
    Value::Object(members)
}

fn is_simple(reference: &Reference, schema: &Value) -> bool {
    let shape = Shape::of(reference, schema);
    shape.items().is_none() && shape.get("properties").is_none() && shape.alternatives.is_empty()
}

/// A scalar value.
fn simple(name: &str, shape: &Shape, schema: &Value) -> Value {
    if let Some((choice, _)) = shape.choices().into_iter().next() {
        return choice.into();
    }
    match shape.get("type").and_then(Value::as_str) {
        Some("boolean") => true.into(),
        Some("integer") => whole_number(name, shape).into(),
        Some("number") => json!(0.25),
        Some("object") => json!({}),
        Some("null") | None => Value::Null,
        Some(_) => words(name, shape, schema).into(),
    }
}

fn whole_number(name: &str, shape: &Shape) -> u64 {
    match name {
        "limit" | "quota" => 1000,
        "used" => 120,
        "remaining" => 880,
        "commission_percent" => 20,
        _ if name.ends_with("_cents") => 1900,
        _ => shape.get("minimum").and_then(Value::as_u64).unwrap_or(3),
    }
}

/// A string, from the best hint: its format, an example in its description, its name.
fn words(name: &str, shape: &Shape, schema: &Value) -> String {
    let format = shape.get("format").and_then(Value::as_str).unwrap_or_default();
    let from_format = match format {
        "date-time" => Some("2026-07-14T09:00:00.000Z"),
        "date" => Some("2026-07-14"),
        "email" => Some("ada@example.com"),
        "uuid" => Some("0190b2f4-6c1e-7d3a-9b5f-2e8c4a7d1f60"),
        _ => None,
    };
    let hinted = || text(schema, "description").split_once("such as `")?.1.split('`').next();
    from_format.or_else(hinted).or_else(|| by_name(name)).unwrap_or("…").to_owned()
}

fn by_name(name: &str) -> Option<&'static str> {
    let plain = name.to_ascii_lowercase().replace('_', "");
    let found = match plain.as_str() {
        "name" => "Support",
        "workspacename" => "Acme",
        "email" | "payoutemail" | "to" | "from" | "sender" | "recipient" => "ada@example.com",
        "password" => "a-long-passphrase",
        "timezone" => "Europe/Lisbon",
        "publicid" => "0190b2f4-6c1e-7d3a-9b5f-2e8c4a7d1f60",
        "id" | "folderid" => "invoices",
        "slug" => "support",
        "code" | "affiliatecode" => "acme-mail",
        "color" => "#1f6feb",
        "rules" => "from:@acme.com and has:attachment",
        "token" => "inv-4f9c21d07b",
        "key" => "sk-proj-4f9c21d07b…",
        "hint" => "sk-proj-4f9c",
        "domain" | "domains" => "agents.example",
        "version" => env!("CARGO_PKG_VERSION"),
        "subject" | "title" => "Your order",
        "text" | "body" | "message" | "content" => "Thank you for writing.",
        "query" => "invoice",
        "inreplyto" => "<id@example.com>",
        "currency" => "USD",
        "useragent" => "curl/8.5.0",
        "outbound" | "provider" => "local",
        "link" => "/sign-up?code=acme-mail",
        "planname" => "Free",
        _ => return None,
    };
    Some(found)
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}
