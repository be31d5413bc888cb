//! What several of these tests need.

use operations::ErrorKind;
use serde_json::{Value, json};
use testkit::{Answer, Caller, error_text_with};

/// The faulty fields that an error names: path and message.
pub(super) fn details(answer: &Answer) -> Vec<(String, String)> {
    let body = answer.json();
    let text = |detail: &Value, name: &str| detail[name].as_str().unwrap().to_owned();
    let details = body["details"].as_array().cloned().unwrap_or_default();
    details.iter().map(|detail| (text(detail, "path"), text(detail, "message"))).collect()
}

/// Checks that a request was refused for exactly these fields, with exactly these words.
#[track_caller]
pub(super) fn assert_refused(answer: &Answer, faults: &[(&str, &str)]) {
    let faults: Vec<Value> =
        faults.iter().map(|(path, message)| json!({ "path": path, "message": message })).collect();
    let body = json!({ "error": "Invalid request", "code": "validation_failed", "details": faults });
    assert_eq!((answer.status, answer.json()), (400, body));
}

/// Checks that a request was refused for exactly these fields.
#[track_caller]
pub(super) fn assert_refuses_fields(answer: &Answer, paths: &[&str]) {
    answer.expect(400, "validation_failed");
    let mut found: Vec<String> = details(answer).into_iter().map(|(path, _)| path).collect();
    found.sort();
    found.dedup();
    let mut wanted = paths.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{}", answer.text());
}

/// Checks that something is missing, by the exact body of the answer.
#[track_caller]
pub(super) fn assert_missing(answer: &Answer, what: &str) {
    let body = error_text_with(&format!("{what} not found"), ErrorKind::NotFound);
    assert_eq!((answer.status, answer.text()), (404, body));
}

/// Makes a mailbox and gives it as answered.
pub(super) async fn new_mailbox(key: &Caller, name: &str) -> Value {
    key.post("/api/v1/mailboxes", json!({ "name": name })).await.ok()
}

/// The path of a mailbox.
pub(super) fn path_of(mailbox: &Value) -> String {
    format!("/api/v1/mailboxes/{}", mailbox["public_id"].as_str().unwrap())
}

/// A text for a path or a query, with everything encoded that is not a letter or a digit.
pub(super) fn encoded(text: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}

/// The keys of an object.
pub(super) fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}
