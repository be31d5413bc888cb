//! Shell commands that call an operation with curl, ready to paste.

use super::{
    call::{Body, Call, Credential, Output},
    literal::Style,
};

/// Inside single quotes, which a variable leaves for a moment.
const JSON: Style = Style {
    words: ["true", "false", "null"],
    indent: 2,
    trailing_comma: false,
    bare_keys: false,
    variable: |name| format!("\"'\"${name}\"'\""),
    string: |text| text.replace('\'', "'\\''"),
};

/// How to make a call at `base`, which may be a shell variable.
pub(super) fn command(call: &Call, base: &str) -> String {
    let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
    let stream = if call.output == Output::Events { " -N" } else { "" };
    let mut lines = vec![format!("curl{stream}{} \"{base}{}{query}\"", method(call), call.path)];
    match call.credential {
        Credential::Nothing => {}
        Credential::Key => lines.push("-H \"x-api-key: $AGENT_MAILBOX_API_KEY\"".to_owned()),
        Credential::Session { changes } => {
            lines.push("-b cookies.txt".to_owned());
            if changes {
                lines.push(format!("-H \"origin: {base}\""));
            }
        }
        Credential::LogIn => lines.push("-c cookies.txt".to_owned()),
    }
    if call.idempotent {
        lines.push("-H \"idempotency-key: $(openssl rand -hex 16)\"".to_owned());
    }
    match &call.body {
        None => {}
        Some(Body::Json(json)) => {
            lines.push("-H \"content-type: application/json\"".to_owned());
            lines.push(format!("-d '{}'", JSON.write(json, 1)));
        }
        Some(Body::Text(kind, text)) => {
            lines.push(format!("-H \"content-type: {kind}\""));
            lines.push(format!("--data-binary '{}'", text.replace('\'', "'\\''")));
        }
    }
    if call.output == Output::File {
        lines.push("-o download".to_owned());
    }
    lines.join(" \\\n  ")
}

/// The method, unless it is curl's default.
fn method(call: &Call) -> String {
    match (call.method.as_str(), &call.body) {
        ("GET", None) | ("POST", Some(_)) => String::new(),
        (method, _) => format!(" -X {method}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::own_reference::REFERENCE, *};

    fn written(id: &str) -> String {
        command(&Call::of(&REFERENCE, &REFERENCE.operation(id).unwrap()), "$URL")
    }

    #[test]
    fn a_write_is_ready_to_paste() {
        let expected = r#"curl "$URL/api/v1/mailboxes/$MAILBOX_ID/emails/bulk-read" \
  -H "x-api-key: $AGENT_MAILBOX_API_KEY" \
  -H "idempotency-key: $(openssl rand -hex 16)" \
  -H "content-type: application/json" \
  -d '{
    "ids": ["'"$EMAIL_ID"'"],
    "read": true
  }'"#;
        assert_eq!(written("bulkReadEmails"), expected);
    }

    #[test]
    fn a_change_by_cookie_names_the_origin() {
        assert!(written("createApiKey").contains("-b cookies.txt \\\n  -H \"origin: $URL\""));
        assert!(!written("getMe").contains("origin"));
        assert_eq!((JSON.string)("\"it's\"".to_owned()), "\"it'\\''s\"");
    }
}
