//! Schemas of arguments: those of the OpenAPI document, with every reference inlined.
//!
//! Many models' tool interfaces do not know `$ref`, and a tool's schema must stand alone anyway.

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
