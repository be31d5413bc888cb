//! Paragraphs of text on the pages.

use super::html::Html;

/// Prose; an empty line separates paragraphs.
pub(super) fn paragraphs(html: &mut Html, text: &str) {
    for paragraph in text.split("\n\n") {
        html.marked_line("p", paragraph);
    }
}
