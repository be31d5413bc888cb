//! Tests of safe text: tricks that hide, text that must stay, layout, characters, and properties of all of it.

mod characters;
mod corpora;
mod hidden;
mod judged;
mod layout;
mod parts;
mod properties;
mod visible;
mod work;

use super::SafeText;

/// The safe text of HTML.
fn text_of(html: &str) -> String {
    SafeText::from_html(html).into_string()
}
