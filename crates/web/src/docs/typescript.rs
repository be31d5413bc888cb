//! TypeScript code that calls an operation with `fetch`, ready to run: it is plain JavaScript too.

use std::fmt::Write;

use super::{
    call::{Body, Call, Credential, Output, pieces},
    literal::Style,
};

const VALUES: Style = Style {
    words: ["true", "false", "null"],
    indent: 2,
    trailing_comma: true,
    bare_keys: true,
    variable: ToOwned::to_owned,
    string: |text| text,
};

/// How to make a call.
pub(super) fn code(call: &Call) -> String {
    let mut code = String::new();
    if call.output == Output::File {
        code.push_str("import { writeFile } from \"node:fs/promises\";\n\n");
    }
    let _ = writeln!(code, "const {{ {} }} = process.env;", names(call).join(", "));
    let mut path = String::new();
    for (text, name) in pieces(&call.path) {
        if let Some(name) = name {
            let _ = write!(path, "${{{name}}}");
        }
        path.push_str(text);
    }
    let query = if call.query.is_empty() { String::new() } else { format!("?{}", call.query) };
    let _ = write!(code, "const response = await fetch(`${{AGENT_MAILBOX_URL}}{path}{query}`");
    let options = options(call);
    if options.is_empty() {
        code.push_str(");\n");
    } else {
        let _ = write!(code, ", {{\n{options}}});\n");
    }
    code.push_str("if (!response.ok) throw new Error(await response.text());\n");
    code.push_str(match (call.credential, call.output) {
        (Credential::LogIn, _) => {
            "console.log(await response.json());\n\
             console.log(response.headers.getSetCookie().map((one) => one.split(\";\")[0]).join(\"; \"));"
        }
        (_, Output::Nothing) => "console.log(response.status);",
        (_, Output::Json) => "console.log(await response.json());",
        (_, Output::File) => "await writeFile(\"download\", new Uint8Array(await response.arrayBuffer()));",
        (_, Output::Events) => {
            "const decoder = new TextDecoder();\n\
             for await (const chunk of response.body ?? []) console.log(decoder.decode(chunk, { stream: true }));"
        }
    });
    code
}

/// The variables; a header takes no undefined one.
fn names(call: &Call) -> Vec<String> {
    let changes = call.credential == (Credential::Session { changes: true });
    let mut names = vec![if changes { "AGENT_MAILBOX_URL = \"\"" } else { "AGENT_MAILBOX_URL" }.to_owned()];
    match call.credential {
        Credential::Nothing | Credential::LogIn => {}
        Credential::Key => names.push("AGENT_MAILBOX_API_KEY = \"\"".to_owned()),
        Credential::Session { .. } => names.push("AGENT_MAILBOX_COOKIE = \"\"".to_owned()),
    }
    names.extend(call.variables());
    names
}

/// The options of `fetch`, line by line.
fn options(call: &Call) -> String {
    let mut text = String::new();
    if call.method != "GET" {
        let _ = writeln!(text, "  method: \"{}\",", call.method);
    }
    let mut headers = match call.credential {
        Credential::Nothing | Credential::LogIn => Vec::new(),
        Credential::Key => vec!["\"x-api-key\": AGENT_MAILBOX_API_KEY".to_owned()],
        Credential::Session { .. } => vec!["cookie: AGENT_MAILBOX_COOKIE".to_owned()],
    };
    if call.credential == (Credential::Session { changes: true }) {
        headers.push("origin: AGENT_MAILBOX_URL".to_owned());
    }
    if call.idempotent {
        headers.push("\"idempotency-key\": crypto.randomUUID()".to_owned());
    }
    let body = match &call.body {
        None => None,
        Some(Body::Json(json)) => {
            headers.push("\"content-type\": \"application/json\"".to_owned());
            Some(format!("JSON.stringify({})", VALUES.write(json, 1)))
        }
        Some(Body::Text(kind, text)) => {
            headers.push(format!("\"content-type\": \"{kind}\""));
            Some(serde_json::Value::from(text.as_str()).to_string())
        }
    };
    if !headers.is_empty() {
        text.push_str("  headers: {\n");
        for header in headers {
            let _ = writeln!(text, "    {header},");
        }
        text.push_str("  },\n");
    }
    if let Some(body) = body {
        let _ = writeln!(text, "  body: {body},");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::own_reference::REFERENCE, *};

    #[test]
    fn a_write_is_ready_to_run() {
        let call = Call::of(&REFERENCE, &REFERENCE.operation("bulkReadEmails").unwrap());
        let expected = r#"const { AGENT_MAILBOX_URL, AGENT_MAILBOX_API_KEY = "", MAILBOX_ID, EMAIL_ID } = process.env;
const response = await fetch(`${AGENT_MAILBOX_URL}/api/v1/mailboxes/${MAILBOX_ID}/emails/bulk-read`, {
  method: "POST",
  headers: {
    "x-api-key": AGENT_MAILBOX_API_KEY,
    "idempotency-key": crypto.randomUUID(),
    "content-type": "application/json",
  },
  body: JSON.stringify({
    ids: [EMAIL_ID],
    read: true,
  }),
});
if (!response.ok) throw new Error(await response.text());
console.log(await response.json());"#;
        assert_eq!(code(&call), expected);
    }
}
