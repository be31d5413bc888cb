//! The first pass: reads tokens in linear time, keeps allowed elements, closes what it opens and bounds their depth.
//!
//! It also decides about images and estimates the height of the result.

use super::allow_lists::{
    ATTRIBUTES, BLOCK_ELEMENTS, ELEMENTS, VOID_ELEMENTS, has_prefix, is_data, is_link, is_remote,
};
use crate::safe_text::tokens::{Name, Tag, Token, Tokens};

/// Maximum nesting; the text of deeper elements is kept without them.
const MAX_DEPTH: usize = 100;

/// Where the images of a message come from.
pub struct ImageSources<'a> {
    /// Whether remote images are allowed.
    pub remote: bool,
    /// The `data:` URL of a part of the message by its Content-ID.
    pub inline: &'a dyn Fn(&str) -> Option<String>,
}

/// The first pass over the HTML of a message.
pub(super) struct TagFilter<'a> {
    /// The filtered markup.
    pub(super) out: String,
    open: Vec<Name>,
    images: &'a ImageSources<'a>,
    /// Whether remote images were left out.
    pub(super) blocked: bool,
    /// Estimated number of lines on a screen.
    pub(super) lines: usize,
    run: usize,
}

impl<'a> TagFilter<'a> {
    /// A filter with these image sources.
    pub(super) fn new(images: &'a ImageSources<'a>) -> Self {
        Self { out: String::new(), open: Vec::new(), images, blocked: false, lines: 1, run: 0 }
    }

    /// Reads a document.
    pub(super) fn read(&mut self, html: &str) {
        let mut tokens = Tokens::new(html);
        // SVG and MathML have other parsing rules; their content is dropped.
        let mut foreign: Option<(Name, usize)> = None;
        while let Some(token) = tokens.next() {
            if let Some((name, depth)) = foreign.take() {
                let depth = match &token {
                    Token::Start(tag) if tag.name.as_str() == name.as_str() && !tag.self_closing => depth + 1,
                    Token::End(ended) if ended.as_str() == name.as_str() => depth - 1,
                    _ => depth,
                };
                tokens.foreign = depth > 0;
                foreign = (depth > 0).then_some((name, depth));
                continue;
            }
            match token {
                Token::Text(text) => self.text(text),
                Token::Raw(name, text) if name.as_str() == "textarea" => self.text(text),
                Token::Raw(..) => {}
                Token::Start(tag) if matches!(tag.name.as_str(), "svg" | "math") => {
                    if !tag.self_closing {
                        tokens.foreign = true;
                        foreign = Some((tag.name, 1));
                    }
                }
                Token::Start(tag) => self.start(&tag),
                Token::End(name) => self.end(name.as_str()),
            }
        }
        while let Some(name) = self.open.pop() {
            self.close(name.as_str());
        }
        self.lines += self.run / 90;
    }

    /// Text with its character references; `<` and `>` are escaped.
    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\0' => {}
                other => self.out.push(other),
            }
        }
        self.run += text.trim().len();
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let name = tag.name.as_str();
        if !ELEMENTS.contains(&name) {
            return;
        }
        if BLOCK_ELEMENTS.contains(&name) {
            self.lines += 1 + self.run / 90;
            self.run = 0;
        }
        let empty = VOID_ELEMENTS.contains(&name);
        if !empty {
            if self.open.len() >= MAX_DEPTH {
                return;
            }
            self.open.push(tag.name);
        }
        self.out.push('<');
        self.out.push_str(name);
        for attribute in ATTRIBUTES {
            if let Some(value) = tag.attribute(attribute) {
                self.attribute(name, attribute, &value);
            }
        }
        self.out.push('>');
    }

    fn attribute(&mut self, element: &str, name: &str, value: &str) {
        let value = value.trim();
        let shown = match (element, name) {
            ("img", "src") => self.image_url(value),
            (_, "src") => None,
            (_, "href") => is_link(value).then(|| value.to_owned()),
            _ => (value.len() <= 2000).then(|| value.to_owned()),
        };
        let Some(shown) = shown else { return };
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        for character in shown.chars() {
            match character {
                '"' => self.out.push_str("&quot;"),
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\0' => {}
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    /// The URL of an image, if it may be shown.
    fn image_url(&mut self, address: &str) -> Option<String> {
        self.lines += 6;
        if let Some(id) = address.get(4..).filter(|_| has_prefix(address, "cid:")) {
            return (self.images.inline)(id).filter(|data| is_data(data));
        }
        let address = if address.starts_with("//") { format!("https:{address}") } else { address.to_owned() };
        if is_data(&address) {
            return Some(address);
        }
        if is_remote(&address) && !self.images.remote {
            self.blocked = true;
            return None;
        }
        is_remote(&address).then_some(address)
    }

    fn end(&mut self, name: &str) {
        let Some(at) = self.open.iter().rposition(|open| open.as_str() == name) else { return };
        for closed in self.open.split_off(at).iter().rev() {
            self.close(closed.as_str());
        }
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }
}
