//! The schemas of an OpenAPI document: their generators, and how request and response schemas become one set.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// A generator of schemas for responses or for requests.
pub(crate) fn generator(contract: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let mut settings = contract(SchemaSettings::draft2020_12());
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

/// Merges both sets of schemas. A type that differs between requests and responses gets a second name for
/// responses.
pub(crate) fn merged(
    paths: &mut Map<String, Value>,
    reading: Map<String, Value>,
    writing: Map<String, Value>,
) -> Map<String, Value> {
    let renamed: Vec<String> = reading
        .iter()
        .filter(|(name, schema)| writing.get(*name).is_some_and(|other| other != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    let mut schemas = writing;
    for (name, mut schema) in reading {
        rename_references(&mut schema, &renamed);
        let name = if renamed.contains(&name) { format!("{name}Input") } else { name };
        schemas.insert(name, schema);
    }
    for path in paths.values_mut().filter_map(Value::as_object_mut) {
        for operation in path.values_mut() {
            for part in ["requestBody", "parameters"] {
                rename_references(&mut operation[part], &renamed);
            }
            if let Some(object) = operation.as_object_mut() {
                object.retain(|_, value| !value.is_null());
            }
        }
    }
    schemas.sort_keys();
    schemas
}

fn rename_references(value: &mut Value, renamed: &[String]) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                match inner {
                    Value::String(reference) if key == "$ref" => {
                        let name = reference.rsplit('/').next().unwrap_or_default();
                        if renamed.iter().any(|one| one == name) {
                            reference.push_str("Input");
                        }
                    }
                    inner => rename_references(inner, renamed),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_references(item, renamed)),
        _ => {}
    }
}
