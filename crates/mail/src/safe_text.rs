//! Text of a message made safe for an agent: what a person would see, and nothing that is hidden.
//!
//! [`SafeText`] is created in this module only, so its type proves that it was cleaned. HTML is read in one pass that
//! builds no tree and fetches nothing (a second one counts, where style sheets ask what follows an element);
//! `docs/spec/safe-content.md` has the rules. Not detected: text covered by another element, fonts that draw other
//! characters, generated content, and colours of images.

mod animation;
mod attribute;
mod brackets;
mod calc;
mod cascade;
mod characters;
mod colour;
mod css;
mod declaration;
mod divergence;
mod element;
mod entities;
mod family;
mod flow;
mod identifier;
mod implied;
mod length;
mod link;
mod media;
mod prepare;
mod presentation;
mod property;
mod pseudo;
mod render;
mod selector;
mod shape;
mod sheet;
mod sibling_position;
mod style;
mod styling;
mod subject;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;
mod tree;
mod window;
mod writer;

use std::fmt;

pub use characters::is_forbidden;

pub(crate) use render::VisibleLink;

/// Text with only what a person sees. Created in this module only.
///
/// It is in Unicode NFC, has no character for which [`is_forbidden`] holds, one space at most between words and one
/// empty line at most between lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SafeText {
    text: String,
    char_count: usize,
}

impl SafeText {
    /// Cleans plain text of any number of lines.
    pub fn from_plain(text: &str) -> Self {
        Self::new(link::with_ascii_hosts(characters::clean_lines(text)))
    }

    /// Takes the text out of HTML that a reader would see; what lies beyond 1 MiB is not read.
    pub fn from_html(html: &str) -> Self {
        Self::from_plain(&render::render(html).text)
    }

    /// Cleans text that must stay on one line: subjects, names of people and files.
    pub fn line(text: &str) -> Self {
        Self::new(link::with_ascii_hosts(characters::clean_line(text)))
    }

    fn new(text: String) -> Self {
        let char_count = text.chars().count();
        Self { text, char_count }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.text
    }

    /// How many characters it has.
    pub fn char_count(&self) -> usize {
        self.char_count
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Cuts to at most `max` characters; when something was cut, the number of all characters comes with it.
    pub fn cut(&self, max: usize) -> (&str, Option<usize>) {
        if self.char_count <= max {
            return (&self.text, None);
        }
        let end = self.text.char_indices().nth(max).map_or(self.text.len(), |(place, _)| place);
        (self.text.get(..end).unwrap_or(&self.text), Some(self.char_count))
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The part of a message from which its safe text was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The plain text part.
    Text,
    /// The HTML part.
    Html,
    /// Neither part has text.
    None,
}

/// An agent's view of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it says.
    pub text: SafeText,
    /// Where that comes from.
    pub source: Source,
    /// Whether the text part and the HTML part differ, or the HTML may hide text in a way that is not understood: then
    /// a person may see something else.
    pub divergent: bool,
}

/// Makes the agent's view of a message: from its text part, or from its HTML where that is empty.
pub fn body(text: Option<&str>, html: Option<&str>) -> Body {
    let plain = text.map(SafeText::from_plain).unwrap_or_default();
    let (rendered, unread) = match html.map(render::render) {
        Some(seen) => (SafeText::from_plain(&seen.text), seen.unread),
        None => (SafeText::default(), false),
    };
    let differ = || divergence::differ(plain.as_str(), rendered.as_str());
    let divergent = unread || (!plain.is_empty() && html.is_some() && differ());
    let (text, source) = match (plain.is_empty(), rendered.is_empty()) {
        (false, _) => (plain, Source::Text),
        (true, false) => (rendered, Source::Html),
        (true, true) => (SafeText::default(), Source::None),
    };
    Body { text, source, divergent }
}

/// The beginning of a message on one line, at most this many characters.
pub fn snippet(body: &SafeText, max_chars: usize) -> String {
    // Lines are at least one character long, so this much is always enough.
    let (beginning, _) = body.cut(max_chars.saturating_mul(2));
    let line = SafeText::line(beginning);
    line.cut(max_chars).0.trim_end().to_owned()
}

/// The links that a reader of HTML sees, with their cleaned texts.
pub(crate) fn visible_links(html: &str) -> Vec<VisibleLink> {
    let mut links = render::render(html).links;
    for link in &mut links {
        link.text = SafeText::line(&link.text).into_string();
    }
    links
}
