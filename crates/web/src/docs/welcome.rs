//! The page at the root: what this is, links, and three commands to a first mailbox.

use super::{html::Html, own_reference::REFERENCE, samples, shell};

/// The links, with their descriptions.
const LINKS: [(&str, &str, &str); 5] = [
    ("/console", "Console", "Log in or sign up: mailboxes, mail, keys and usage for people."),
    ("/docs", "Documentation", "Every operation with its fields, errors and an example."),
    ("/openapi.json", "OpenAPI document", "The same for programs: generate a client from it."),
    ("/llms.txt", "llms.txt", "The same for agents, short enough to read at once."),
    ("/api/status", "Status", "Whether the service works, and its version."),
];

/// The steps to a first mailbox: the operation, and what to keep from its response.
const STEPS: [(&str, &str, &str); 3] = [
    (
        "signUp",
        "Sign up",
        "With an address and a password of your own. Keep `workspace_id` from the answer as `$WORKSPACE_ID`; \
         the cookie lands in `cookies.txt`.",
    ),
    (
        "createApiKey",
        "Make a key",
        "Keep `key` from the answer as `$AGENT_MAILBOX_KEY`: it is shown only once.",
    ),
    ("createMailbox", "Make a mailbox", "The answer has its address in `email`. Write to it."),
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
                    "Agent Mailbox gives programs real mail addresses and a plain HTTP API to use them: receive, read, \
                     search, sort and send. Mail comes back checked and cleaned, and always as data, never as \
                     instructions.",
                );
            });
            links(html);
            html.line("h2", "From nothing to a mailbox");
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
