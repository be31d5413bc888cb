//! The page at the root: what this is, links, and three commands to a first mailbox.

use super::{html::Html, own_reference::REFERENCE, samples, shell};

/// The links, with their descriptions.
const LINKS: [(&str, &str, &str); 5] = [
    ("/console", "Console", "Log in or sign up. Manage mailboxes, mail, API keys and usage."),
    (
        "/docs",
        "Documentation",
        "Every operation with its fields, errors, and examples in curl, Python and TypeScript.",
    ),
    ("/openapi.json", "OpenAPI document", "The API description for programs. Generate a client from it."),
    ("/llms.txt", "llms.txt", "The API in short, for agents to read in one go."),
    ("/api/status", "Status", "Whether the service works, and its version."),
];

/// The steps to a first mailbox: the operation, and what to keep from its response.
const STEPS: [(&str, &str, &str); 3] = [
    (
        "signUp",
        "Sign up",
        "Use your own address and password. Save `workspace_id` from the response as `$WORKSPACE_ID`. The session \
         cookie is saved in `cookies.txt`.",
    ),
    (
        "createApiKey",
        "Create an API key",
        "Save `key` from the response as `$AGENT_MAILBOX_API_KEY`. It is shown only once.",
    ),
    ("createMailbox", "Create a mailbox", "`email` in the response is its address. Send an email to it."),
];

/// The page for a service at `url`.
pub(crate) fn welcome(url: &str) -> String {
    let description = "Mailboxes for scripts and AI agents.";
    shell::document("Agent Mailbox", description, |html| {
        html.put_with("main.welcome", &[("id", "content"), ("tabindex", "-1")], |html| {
            html.put("header", |html| {
                html.put("p", shell::brand);
                html.line("h1", "Mailboxes for scripts and AI agents");
                html.marked_line(
                    "p.lead",
                    "Agent Mailbox gives programs real email addresses and a plain HTTP API to use them: receive, read, \
                     search, sort and send. Every email is scanned and sanitized, and always treated as data, never as \
                     instructions.",
                );
            });
            links(html);
            html.line("h2", "Your first mailbox in three calls");
            html.put("ol.steps", |html| steps(html, url));
        });
    })
}

fn links(html: &mut Html) {
    html.put_with("nav", &[("aria-label", "Documentation")], |html| {
        html.put("ul.cards", |html| {
            for (target, title, text) in LINKS {
                html.put("li", |html| {
                    html.put_with("a", &[("href", target)], |html| {
                        html.line("strong", title);
                        html.line("span", text);
                    });
                });
            }
        });
    });
}

fn steps(html: &mut Html, url: &str) {
    for (id, title, hint) in STEPS {
        let Some(operation) = REFERENCE.operation(id) else { continue };
        html.put("li", |html| {
            html.line("h3", title);
            html.code_of("sh", &samples::command_at(&REFERENCE, &operation, url));
            html.marked_line("p.note", hint);
        });
    }
}
