//! `/.well-known/mcp/server-card.json`: a description of this server, for clients that read it before connecting.
//!
//! The format is not final; the card has the fields of both drafts that clients read today.

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use web::DoorContext;

use crate::{handler, profile::Profile};

/// The server card.
pub(crate) fn card(context: &DoorContext) -> Value {
    let url = &context.app().settings().public_url;
    let endpoint = format!("{url}/mcp");
    let server = handler::implementation(context);
    let versions: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let description = "Mailboxes for agents: read, wait for, search and send mail through tools.";
    let header = json!({
        "name": "x-api-key", "description": "An API key, which starts with sk-proj-.",
        "isRequired": true, "isSecret": true,
    });
    let tools = |profile: Profile| -> Vec<Value> {
        let tools = profile.tools().declarations.iter();
        tools
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description,
                    "annotations": tool.annotations,
                })
            })
            .collect()
    };
    let address = |profile: Profile| format!("{endpoint}?profile={}", profile.name());
    let profiles: Vec<Value> = Profile::ALL
        .iter()
        .map(|profile| {
            let names: Vec<_> = profile.tools().declarations.iter().map(|tool| &tool.name).collect();
            json!({
                "name": profile.name(), "url": address(*profile), "description": profile.description(),
                "default": *profile == Profile::default(), "tools": names,
            })
        })
        .collect();
    let remote = |url: &str| json!({ "type": "streamable-http", "url": url, "headers": [header], "supportedProtocolVersions": versions });
    let others = Profile::ALL.into_iter().filter(|profile| *profile != Profile::default());
    let remotes: Vec<Value> =
        std::iter::once(remote(&endpoint)).chain(others.map(|profile| remote(&address(profile)))).collect();
    json!({
        "name": format!("{}/agent-mailbox", reversed_host(url)),
        "title": server.title,
        "version": server.version,
        "description": description,
        "websiteUrl": url,
        "documentationUrl": format!("{url}/llms.txt"),
        "remotes": remotes,
        "protocolVersion": ProtocolVersion::LATEST.as_str(),
        "serverInfo": server,
        "transport": { "type": "streamable-http", "endpoint": "/mcp", "url": endpoint },
        "authentication": {
            "required": true,
            "schemes": [
                { "type": "apiKey", "in": "header", "name": "x-api-key" },
                { "type": "http", "scheme": "bearer" },
            ],
        },
        "capabilities": { "tools": { "listChanged": false } },
        "instructions": handler::INSTRUCTIONS,
        "profiles": profiles,
        "tools": tools(Profile::default()),
    })
}

/// A namespace from the server's host name: `mail.example.org` becomes `org.example.mail`.
fn reversed_host(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    let host = host.unwrap_or_else(|| "localhost".to_owned());
    if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') {
        return "localhost".to_owned();
    }
    host.rsplit('.').collect::<Vec<_>>().join(".")
}
