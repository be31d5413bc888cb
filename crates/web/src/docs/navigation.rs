//! The table of contents: a sidebar on wide screens, folded above the page on narrow ones.

use super::{
    html::Html,
    introduction,
    operation::badge,
    reference::{Reference, Tag},
};

/// Both forms. A stylesheet cannot force a folded list open, so each width shows one and hides the other.
pub(super) fn contents(html: &mut Html, reference: &Reference) {
    let tags = reference.tags();
    html.put_with("nav.wide", &[("aria-label", "Contents")], |html| groups(html, &tags, true));
    html.put("details.narrow", |html| {
        html.line("summary", "Contents");
        html.put_with("nav", &[("aria-label", "Contents")], |html| groups(html, &tags, false));
    });
}

/// The anchor of a tag.
pub(super) fn tag_id(tag: &Tag<'_>) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' }
    };
    format!("tag-{}", tag.name.chars().map(plain).collect::<String>())
}

fn groups(html: &mut Html, tags: &[Tag<'_>], open: bool) {
    let open: &[(&str, &str)] = if open { &[("open", "")] } else { &[] };
    html.put_with("details", &[("open", "")], |html| {
        html.line("summary", "Introduction");
        html.put("ul", |html| {
            for (id, title, _) in introduction::SECTIONS {
                html.put("li", |html| html.link("a", &format!("#{id}"), title));
            }
        });
    });
    for tag in tags {
        html.put_with("details", open, |html| {
            html.line("summary", tag.name);
            html.put("ul", |html| {
                for operation in &tag.operations {
                    html.put("li", |html| {
                        html.put_with("a", &[("href", &format!("#{}", operation.id()))], |html| {
                            badge(html, operation.method);
                            html.text(" ");
                            html.line("span", &operation.title());
                        });
                    });
                }
            });
        });
    }
}
