//! Schemas of arguments: those of the OpenAPI document, with every reference inlined.
//!
//! Many models' tool interfaces do not know `$ref`, and a tool's schema must stand alone anyway. What a model does not
//! need to write a call is left out, since every client pays for each character: the API checks everything all the same.

use serde_json::{Map, Value};

/// Maximum depth of references. Ours stay far below; a circle would not.
const MAX_DEPTH: usize = 16;

/// A schema without references. Below the maximum depth anything is accepted; the API checks it all the same.
pub(crate) fn inline(schema: &Value, definitions: &Value) -> Value {
    replace(schema, definitions, MAX_DEPTH)
}

fn replace(schema: &Value, definitions: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(object) => {
            let own = object.iter().filter(|(key, _)| *key != "$ref");
            let own = own.map(|(key, value)| (key.clone(), replace(value, definitions, depth)));
            let Some(target) = object.get("$ref").and_then(Value::as_str) else {
                return Value::Object(own.collect());
            };
            let name = target.rsplit('/').next().unwrap_or_default();
            let mut resolved = match (definitions.get(name), depth) {
                (None, _) | (_, 0) => Map::new(),
                (Some(found), _) => match replace(found, definitions, depth - 1) {
                    Value::Object(found) => found,
                    _ => Map::new(),
                },
            };
            // Keywords next to a reference are more specific than those it refers to.
            resolved.extend(own);
            Value::Object(resolved)
        }
        Value::Array(items) => items.iter().map(|item| replace(item, definitions, depth)).collect(),
        plain => plain.clone(),
    }
}

/// Keywords that only a validator needs.
const LEFT_OUT: [&str; 9] = [
    "examples",
    "example",
    "title",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "uniqueItems",
];

/// A schema with what a model needs to know: types, choices, bounds of numbers, and one sentence.
pub(crate) fn shorten(schema: Value) -> Value {
    let mut object = match schema {
        Value::Object(object) => object,
        Value::Array(items) => return items.into_iter().map(shorten).collect(),
        plain => return plain,
    };
    object = without_null(object);
    let choices = choices(&object);
    if !choices.is_empty() {
        object.remove("oneOf");
        object.remove("anyOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), choices.into());
    }
    object.retain(|name, value| is_needed(name, value));
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = first_sentence(text).to_owned();
    }
    for (name, value) in &mut object {
        match name.as_str() {
            "properties" => {
                let inner = value.as_object_mut().into_iter().flatten();
                inner.for_each(|(_, inner)| *inner = shorten(inner.take()));
            }
            "items" | "additionalProperties" | "anyOf" | "oneOf" => *value = shorten(value.take()),
            _ => {}
        }
    }
    Value::Object(object)
}

fn is_needed(name: &str, value: &Value) -> bool {
    match name {
        "format" => value == "date-time",
        // An argument that is left out has its default anyway.
        "default" => value.is_number() || value.as_str().is_some_and(|text| !text.is_empty()),
        "minimum" => value.as_f64().is_some_and(|least| least > 1.0),
        "additionalProperties" => !value.is_boolean(),
        "required" => value.as_array().is_some_and(|names| !names.is_empty()),
        name => !LEFT_OUT.contains(&name),
    }
}

/// Leaving an argument out and giving null are the same, so null is not a type of its own.
fn without_null(mut object: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    for union in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = object.get_mut(union) else { continue };
        alternatives.retain(|one| one["type"] != "null");
        if let [Value::Object(only)] = alternatives.as_slice() {
            let mut only = without_null(only.clone());
            object.remove(union);
            // What is said here is about this argument, what is inside about its type.
            only.extend(object);
            return only;
        }
    }
    object
}

/// The texts of a union that is a choice among them.
fn choices(object: &Map<String, Value>) -> Vec<Value> {
    let union = object.get("oneOf").or_else(|| object.get("anyOf")).and_then(Value::as_array);
    let all: Option<Vec<Value>> = union
        .into_iter()
        .flatten()
        .map(|one| one.get("const").filter(|text| text.is_string()).cloned())
        .collect();
    all.unwrap_or_default()
}

/// The first sentence of a text, up to a semicolon where the rest is a remark.
pub(crate) fn first_sentence(text: &str) -> &str {
    let end = text.match_indices(". ").map(|(at, _)| at + 1).next().unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shortened_schema_says_what_a_call_needs() {
        let long = json!({
            "anyOf": [{ "oneOf": [
                { "type": "string", "const": "a", "description": "A." }, { "type": "string", "const": "b" },
            ], "description": "The type." }, { "type": "null" }],
            "description": "This one. And more.", "default": null,
        });
        assert_eq!(
            shorten(long),
            json!({ "type": "string", "enum": ["a", "b"], "description": "This one." })
        );
        let nested = json!({
            "type": ["array", "null"], "maxItems": 9,
            "items": { "type": "object", "additionalProperties": false, "required": ["email"], "properties": {
                "email": { "type": "string", "format": "email", "minLength": 3, "examples": ["x"] },
                "description": { "type": ["string", "null"], "default": null },
            } },
        });
        let short = json!({
            "type": "array", "items": { "type": "object", "required": ["email"], "properties": {
                "email": { "type": "string" }, "description": { "type": "string" },
            } },
        });
        assert_eq!(shorten(nested), short);
        let number =
            json!({ "type": "integer", "format": "uint32", "minimum": 1, "maximum": 100, "default": 25 });
        assert_eq!(shorten(number), json!({ "type": "integer", "maximum": 100, "default": 25 }));
        let either =
            json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
        assert_eq!(shorten(either.clone()), either);
    }

    #[test]
    fn references_are_replaced_and_circles_end() {
        let definitions = json!({
            "Name": { "type": "string", "description": "A name." },
            "Tree": { "type": "object", "properties": { "child": { "$ref": "#/x/Tree" } } },
        });
        let schema = json!({ "$ref": "#/x/Name", "description": "This one's name." });
        let expected = json!({ "type": "string", "description": "This one's name." });
        assert_eq!(inline(&schema, &definitions), expected);
        let tree = inline(&json!({ "anyOf": [{ "$ref": "#/x/Tree" }, { "type": "null" }] }), &definitions);
        assert!(!tree.to_string().contains("$ref"));
        assert_eq!(tree["anyOf"][0]["properties"]["child"]["type"], "object");
    }
}
