//! Shell commands that call an operation, ready to paste.

use serde_json::Value;

use super::{
    example,
    reference::{Access, Operation, Reference, text},
};

/// How to call an operation at `base`, which may be a shell variable.
pub(super) fn command(reference: &Reference, operation: &Operation<'_>, base: &str) -> String {
    let mut lines = vec![format!("curl{} \"{base}{}\"", method(operation), address(reference, operation))];
    lines.extend(credential(operation).map(ToOwned::to_owned));
    // Only where a retry would create a duplicate.
    if operation.method == "post" && operation.has_parameter("Idempotency-Key") {
        lines.push("-H \"idempotency-key: $(uuidgen)\"".to_owned());
    }
    if let Some(body) = operation.body() {
        lines.push(format!("-H \"content-type: {}\"", body.kind));
        if body.kind == "application/json" {
            let json = serde_json::to_string_pretty(&example::request(reference, body.schema));
            lines.push(format!("-d {}", quoted(&json.unwrap_or_default().replace('\n', "\n  "))));
        } else {
            lines.push("--data-binary @file".to_owned());
        }
    }
    lines.join(" \\\n  ")
}

/// The method, unless it is curl's default.
fn method(operation: &Operation<'_>) -> String {
    match (operation.method, operation.body()) {
        ("get", None) | ("post", Some(_)) => String::new(),
        (method, _) => format!(" -X {}", method.to_ascii_uppercase()),
    }
}

/// Sessions are kept in a cookie file, which logging in writes.
fn credential(operation: &Operation<'_>) -> Option<&'static str> {
    let logs_in = ["signUp", "completeSignUp", "logIn", "acceptInvite"].contains(&operation.id());
    match operation.access() {
        Access::Key => Some("-H \"x-api-key: $AGENT_MAILBOX_KEY\""),
        Access::Session => Some("-b cookies.txt"),
        Access::Anyone if logs_in => Some("-c cookies.txt"),
        Access::Anyone => None,
    }
}

/// The path with shell variables for its parameters, and the required query parameters.
fn address(reference: &Reference, operation: &Operation<'_>) -> String {
    let mut address = operation.path.to_owned();
    let mut query = Vec::new();
    for parameter in operation.parameters() {
        let name = text(parameter, "name");
        match text(parameter, "in") {
            "path" => address = address.replace(&format!("{{{name}}}"), &format!("${}", variable(name))),
            "query" if parameter["required"] == true => {
                let value = match example::request(reference, &parameter["schema"]) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                query.push(format!(
                    "{name}={}",
                    form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>()
                ));
            }
            _ => {}
        }
    }
    if query.is_empty() { address } else { format!("{address}?{}", query.join("&")) }
}

/// A parameter's name as the name of a shell variable: `mailboxId` is `MAILBOX_ID`.
fn variable(name: &str) -> String {
    let mut variable = String::new();
    for character in name.chars() {
        if character.is_uppercase() {
            variable.push('_');
        }
        variable.push(character.to_ascii_uppercase());
    }
    variable
}

/// One word, quoted for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_variables_and_quotes_bodies() {
        assert_eq!(variable("mailboxId"), "MAILBOX_ID");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }

    #[test]
    fn a_write_is_ready_to_paste() {
        let reference = Reference::new(crate::document());
        let operation = reference.operation("createFolder").unwrap();
        let expected = r#"curl "$URL/api/v1/mailboxes/$MAILBOX_ID/folders" \
  -H "x-api-key: $AGENT_MAILBOX_KEY" \
  -H "idempotency-key: $(uuidgen)" \
  -H "content-type: application/json" \
  -d '{
    "name": "Support"
  }'"#;
        assert_eq!(command(&reference, &operation, "$URL"), expected);
    }
}
