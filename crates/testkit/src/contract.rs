//! Checks answers against the OpenAPI document, so that what is published is what is served.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};

use axum::http::Method;
use serde_json::{Value, json};

use crate::Answer;

static DOCUMENT: LazyLock<Value> = LazyLock::new(web::document);
static VALIDATORS: LazyLock<Mutex<HashMap<String, jsonschema::Validator>>> = LazyLock::new(Mutex::default);

/// Fails when an answer of a described route has a status, a code or a shape that the document does not allow.
pub(crate) fn check(method: &Method, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap_or_default();
    let Some((template, operation)) = find(method, path) else { return };
    let responses = &operation["responses"];
    let response = &responses[answer.status.to_string()];
    assert!(
        !response.is_null(),
        "{method} {template} answered {}, which is not described: {}",
        answer.status,
        answer.text()
    );
    if answer.status >= 400 {
        let codes = response["x-codes"].as_array().unwrap();
        let code = answer.code();
        assert!(
            codes.iter().any(|one| *one == code),
            "{method} {template} gave {} {code}, which is not described",
            answer.status
        );
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
    let body = answer.json();
    let mut validators = VALIDATORS.lock().unwrap();
    let key = format!("{method} {template} {}", answer.status);
    let validator = validators.entry(key).or_insert_with(|| compile(schema));
    let faults: Vec<String> =
        validator.iter_errors(&body).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(
        faults.is_empty(),
        "{method} {template} {} is not as described: {faults:?}\n{body}",
        answer.status
    );
}

fn compile(schema: &Value) -> jsonschema::Validator {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": DOCUMENT["components"],
    });
    jsonschema::validator_for(&whole).unwrap()
}

/// The described operation that a path belongs to; literal segments win over parameters.
fn find<'a>(method: &Method, path: &str) -> Option<(&'a str, &'a Value)> {
    let method =
        if *method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
    let mut found: Vec<(&str, &Value)> = DOCUMENT["paths"]
        .as_object()?
        .iter()
        .filter(|(template, operations)| matches(template, path) && !operations[&method].is_null())
        .map(|(template, operations)| (template.as_str(), &operations[&method]))
        .collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    found.into_iter().next()
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
}
