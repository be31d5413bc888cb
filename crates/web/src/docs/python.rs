//! Python code that calls an operation with `requests`, ready to run.

use std::fmt::Write;

use super::{
    call::{Body, Call, Credential, Output, pieces},
    literal::Style,
};

const VALUES: Style = Style {
    words: ["True", "False", "None"],
    indent: 4,
    trailing_comma: true,
    bare_keys: false,
    variable: |name| format!("env[\"{name}\"]"),
    string: |text| text,
};

/// How to make a call.
pub(super) fn code(call: &Call) -> String {
    let mut code = String::from("import os\n");
    if call.idempotent {
        code.push_str("import uuid\n");
    }
    if call.output == Output::File {
        code.push_str("from pathlib import Path\n");
    }
    code.push_str("\nimport requests\n\nenv = os.environ\n");
    let _ = writeln!(code, "response = requests.{}(", call.method.to_ascii_lowercase());
    let _ = writeln!(code, "    {},", address(call));
    let headers = headers(call);
    if !headers.is_empty() {
        code.push_str("    headers={\n");
        for (name, value) in headers {
            let _ = writeln!(code, "        \"{name}\": {value},");
        }
        code.push_str("    },\n");
    }
    match &call.body {
        None => {}
        Some(Body::Json(json)) => {
            let _ = writeln!(code, "    json={},", VALUES.write(json, 1));
        }
        Some(Body::Text(_, text)) => {
            let _ = writeln!(code, "    data={},", serde_json::Value::from(text.as_str()));
        }
    }
    if call.output == Output::Events {
        code.push_str("    stream=True,\n");
    }
    code.push_str(")\nresponse.raise_for_status()\n");
    code.push_str(match (call.credential, call.output) {
        (Credential::LogIn, _) => {
            "print(response.json())\n\
             print(\"; \".join(f\"{name}={value}\" for name, value in response.cookies.items()))"
        }
        (_, Output::Nothing) => "print(response.status_code)",
        (_, Output::Json) => "print(response.json())",
        (_, Output::File) => "Path(\"download\").write_bytes(response.content)",
        (_, Output::Events) => {
            "for line in response.iter_lines(decode_unicode=True):\n    print(line, flush=True)"
        }
    });
    code
}

fn address(call: &Call) -> String {
    let mut path = String::new();
    for (text, name) in pieces(&call.path) {
        if let Some(name) = name {
            let _ = write!(path, "{{env['{name}']}}");
        }
        path.push_str(text);
    }
    let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
    format!("f\"{{env['AGENT_MAILBOX_URL']}}{path}{query}\"")
}

fn headers(call: &Call) -> Vec<(&'static str, String)> {
    let variable = |name: &str| (VALUES.variable)(name);
    let mut headers = match call.credential {
        Credential::Nothing | Credential::LogIn => Vec::new(),
        Credential::Key => vec![("x-api-key", variable("AGENT_MAILBOX_API_KEY"))],
        Credential::Session { .. } => vec![("cookie", variable("AGENT_MAILBOX_COOKIE"))],
    };
    if call.credential == (Credential::Session { changes: true }) {
        headers.push(("origin", variable("AGENT_MAILBOX_URL")));
    }
    if call.idempotent {
        headers.push(("idempotency-key", "str(uuid.uuid4())".to_owned()));
    }
    if let Some(Body::Text(kind, _)) = &call.body {
        headers.push(("content-type", format!("\"{kind}\"")));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::{super::own_reference::REFERENCE, *};

    #[test]
    fn a_write_is_ready_to_run() {
        let call = Call::of(&REFERENCE, &REFERENCE.operation("bulkReadEmails").unwrap());
        let expected = r#"import os
import uuid

import requests

env = os.environ
response = requests.post(
    f"{env['AGENT_MAILBOX_URL']}/api/v1/mailboxes/{env['MAILBOX_ID']}/emails/bulk-read",
    headers={
        "x-api-key": env["AGENT_MAILBOX_API_KEY"],
        "idempotency-key": str(uuid.uuid4()),
    },
    json={
        "ids": [env["EMAIL_ID"]],
        "read": True,
    },
)
response.raise_for_status()
print(response.json())"#;
        assert_eq!(code(&call), expected);
    }
}
