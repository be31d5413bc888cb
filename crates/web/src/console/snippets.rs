//! Code that uses an API key: for curl, Python, JavaScript and MCP clients, with the key and the URL filled in.

use serde_json::json;

/// Code in one language.
pub(super) struct Snippet {
    /// Its tab: a name for the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) hint: &'static str,
    pub(super) code: String,
}

/// Code that lists the mailboxes, and the configuration of an MCP client.
pub(super) fn snippets(url: &str, key: &str) -> Vec<Snippet> {
    let mailboxes = format!("{url}/api/v1/mailboxes");
    let curl = format!("curl {mailboxes} -H \"x-api-key: {key}\"");
    let python = format!(
        "import json, urllib.request\n\n\
         request = urllib.request.Request(\n    \"{mailboxes}\",\n    headers={{\"x-api-key\": \"{key}\"}},\n)\n\
         with urllib.request.urlopen(request) as response:\n    for mailbox in json.load(response):\n        print(mailbox[\"email\"])"
    );
    let javascript = format!(
        "const response = await fetch(\"{mailboxes}\", {{\n  headers: {{ \"x-api-key\": \"{key}\" }},\n}});\n\
         for (const mailbox of await response.json()) console.log(mailbox.email);"
    );
    let client = json!({ "mcpServers": { "agent-mailbox": {
        "type": "http", "url": format!("{url}/mcp"), "headers": { "x-api-key": key },
    } } });
    let client = serde_json::to_string_pretty(&client).unwrap_or_default();
    let listing = "Lists your mailboxes.";
    vec![
        Snippet { id: "curl", title: "curl", hint: listing, code: curl },
        Snippet { id: "python", title: "Python", hint: listing, code: python },
        Snippet { id: "javascript", title: "JavaScript", hint: listing, code: javascript },
        Snippet {
            id: "mcp",
            title: "MCP",
            hint: "Add this to the configuration of your MCP client, such as mcp.json.",
            code: client,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_snippet_has_the_key_and_the_url() {
        for one in snippets("https://mail.test", "sk-proj-1") {
            assert!(
                one.code.contains("sk-proj-1") && one.code.contains("https://mail.test/"),
                "{}",
                one.code
            );
        }
    }
}
