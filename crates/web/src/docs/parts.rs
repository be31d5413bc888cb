//! The OpenAPI document in parts, one for each tag: the whole is too long for the context of a language model.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use serde_json::{Map, Value, json};

use super::own_reference::REFERENCE;

/// A part of the document.
pub(crate) struct Part {
    /// The tag.
    pub(crate) tag: String,
    /// The document with the operations of the tag, and everything that they refer to.
    pub(crate) json: String,
}

impl Part {
    /// Its path and query.
    pub(super) fn address(&self) -> String {
        let tag: String = form_urlencoded::byte_serialize(self.tag.as_bytes()).collect();
        format!("/openapi.json?tag={tag}")
    }
}

/// All parts, in the order of the document's tags.
pub(crate) fn parts() -> &'static [Part] {
    static PARTS: LazyLock<Vec<Part>> = LazyLock::new(|| {
        let document = REFERENCE.document();
        let tags = document["tags"].as_array().into_iter().flatten().filter_map(|tag| tag["name"].as_str());
        tags.map(|tag| Part { tag: tag.to_owned(), json: part(document, tag).to_string() }).collect()
    });
    &PARTS
}

/// The part of a tag, in any case.
pub(crate) fn find(tag: &str) -> Option<&'static Part> {
    parts().iter().find(|part| part.tag.eq_ignore_ascii_case(tag))
}

/// The length of a text, as people write it.
pub(super) fn kilobytes(text: &str) -> String {
    format!("{} kB", text.len().div_ceil(1000))
}

fn part(document: &Value, tag: &str) -> Value {
    let mut paths = Map::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        let methods = methods.as_object().into_iter().flatten();
        let wanted = methods.filter(|(_, operation)| operation["tags"][0] == tag);
        let wanted: Map<String, Value> = wanted.map(|(name, one)| (name.clone(), one.clone())).collect();
        if !wanted.is_empty() {
            paths.insert(path.clone(), Value::Object(wanted));
        }
    }
    let paths = Value::Object(paths);
    let mut schemas = HashMap::new();
    let mut pending: Vec<String> = references(&paths).into_iter().collect();
    while let Some(name) = pending.pop() {
        let schema = &document["components"]["schemas"][&name];
        if schemas.insert(name, schema.clone()).is_none() {
            pending.extend(references(schema));
        }
    }
    let all = document["components"]["schemas"].as_object().into_iter().flatten();
    let schemas: Map<String, Value> = all
        .filter(|(name, _)| schemas.contains_key(*name))
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect();
    let mut part = Map::new();
    for (key, value) in document.as_object().into_iter().flatten() {
        let value = match key.as_str() {
            "tags" => json!([{ "name": tag }]),
            "paths" => paths.clone(),
            "components" => json!({
                "securitySchemes": document["components"]["securitySchemes"], "schemas": schemas,
            }),
            _ => value.clone(),
        };
        part.insert(key.clone(), value);
    }
    Value::Object(part)
}

/// The names of the schemas that a value refers to.
fn references(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, inner)| match inner.as_str().filter(|_| key == "$ref") {
                Some(target) => target.rsplit('/').next().map(ToOwned::to_owned).into_iter().collect(),
                None => references(inner),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_operation_once_and_all_that_it_refers_to() {
        let mut operations = 0;
        for part in parts() {
            let document: Value = serde_json::from_str(&part.json).unwrap();
            for methods in document["paths"].as_object().unwrap().values() {
                for operation in methods.as_object().unwrap().values() {
                    assert_eq!(operation["tags"][0], part.tag);
                    operations += 1;
                }
            }
            for name in references(&document) {
                assert!(document["components"]["schemas"][&name].is_object(), "{}: {name}", part.tag);
            }
            assert!(part.json.len() < 250_000, "{} has {} bytes", part.tag, part.json.len());
        }
        assert_eq!(operations, REFERENCE.operations().count());
        assert!(find("emails").is_some() && find("Nothing").is_none());
    }
}
