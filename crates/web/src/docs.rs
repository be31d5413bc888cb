//! The pages for people and agents, made from the OpenAPI document: the documentation, the first page, `llms.txt`.
//!
//! No scripts and no outside assets: a page is one file of HTML with the one stylesheet inside.

mod curl;
mod example;
mod html;
mod introduction;
mod llms;
mod navigation;
mod operation;
mod reference;
mod schema;
mod shell;
mod stand_in;
mod tables;
#[cfg(test)]
mod tests;
mod welcome;

use std::sync::LazyLock;

use html::Html;
use reference::{Reference, Tag};

pub(crate) use llms::llms;
pub(crate) use shell::content_security_policy;
pub(crate) use stand_in::StandIns;
pub(crate) use welcome::welcome;

static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(crate::document()));

/// The documentation page.
pub(crate) fn page() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| render(&REFERENCE));
    &PAGE
}

fn render(reference: &Reference) -> String {
    let description = "Every operation of the Agent Mailbox API with its fields, errors and an example.";
    shell::document("Agent Mailbox API", description, |html| {
        html.put("div.layout", |html| {
            html.put("header.side", |html| {
                shell::brand(html);
                navigation::contents(html, reference);
            });
            html.put_with("main", &[("id", "content"), ("tabindex", "-1")], |html| {
                html.line("h1", "Agent Mailbox API");
                html.line("p.lead", "Mailboxes for scripts and AI agents, over plain HTTP and JSON.");
                links(html, reference);
                introduction::sections(html, reference);
                for tag in &reference.tags() {
                    section(html, reference, tag);
                }
            });
        });
    })
}

/// The same description in other forms.
fn links(html: &mut Html, reference: &Reference) {
    html.put("ul.links", |html| {
        html.line("li", &format!("Version {}", reference.version()));
        for (target, text) in [
            ("/openapi.json", "OpenAPI document"),
            ("/llms.txt", "llms.txt for agents"),
            ("/api/status", "Status"),
        ] {
            html.put("li", |html| html.link("a", target, text));
        }
    });
}

/// A tag with its operations.
fn section(html: &mut Html, reference: &Reference, tag: &Tag<'_>) {
    let id = navigation::tag_id(tag);
    let heading = format!("{id}-title");
    html.put_with("section.tag", &[("id", &id), ("aria-labelledby", &heading)], |html| {
        html.put_with("h2", &[("id", &heading)], |html| html.link("a", &format!("#{id}"), tag.name));
        for operation in &tag.operations {
            operation::article(html, reference, operation);
        }
    });
}
