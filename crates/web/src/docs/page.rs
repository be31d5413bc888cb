//! The documentation page: every operation of the API with its fields, errors and an example.

use std::sync::LazyLock;

use model::Timestamp;

use super::{
    html::Html,
    introduction, navigation, operation,
    own_reference::REFERENCE,
    reference::{Reference, Tag},
    samples, shell,
};

/// The documentation page of a service at `url`, for a reader at `now`.
pub(crate) fn page(url: &str, now: Timestamp) -> String {
    static PAGE: LazyLock<String> = LazyLock::new(|| render(&REFERENCE));
    let mut escaped = Html::default();
    escaped.text(url);
    samples::with_times(&PAGE, now).replace(introduction::URL, &escaped.finish())
}

pub(super) fn render(reference: &Reference) -> String {
    let description = "Every operation of the Agent Mailbox API: fields, errors, and examples in curl, Python and TypeScript.";
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
