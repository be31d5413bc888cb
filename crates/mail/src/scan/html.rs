//! A linear scan of HTML: its tags with their attributes, and the text between them.
//!
//! No full parser: it only has to find every link and script that some mail client could see.

use std::borrow::Cow;

/// The most attributes of one tag that are read.
const MAX_ATTRIBUTES: usize = 100;

/// A piece of a page.
pub(super) enum Piece<'a> {
    /// A tag that opens.
    Open(Tag<'a>),
    /// A tag that closes, by its name in lower case.
    Close(String),
    /// The text between tags; of a style sheet, its rules.
    Text(&'a str),
}

/// A tag that opens.
pub(super) struct Tag<'a> {
    /// Its name in lower case.
    pub(super) name: String,
    /// Its attributes: the name in lower case and the value.
    pub(super) attributes: Vec<(String, Cow<'a, str>)>,
}

impl Tag<'_> {
    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_ref())
    }
}

/// Reads a page piece by piece.
pub(super) struct Pieces<'a> {
    html: &'a str,
    position: usize,
}

impl<'a> Pieces<'a> {
    /// Begins to read a page.
    pub(super) fn new(html: &'a str) -> Self {
        Self { html, position: 0 }
    }

    fn rest(&self) -> &'a str {
        self.html.get(self.position..).unwrap_or_default()
    }

    /// Takes text up to a byte offset of the rest.
    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or(self.rest());
        self.position += taken.len();
        taken
    }

    /// Reads the tag at the current position. The content of a comment is read as part of the page: some mail clients
    /// show it (conditional comments).
    fn tag(&mut self) -> Option<Piece<'a>> {
        let rest = self.rest();
        let inside = rest.strip_prefix('<')?;
        if let Some(closing) = inside.strip_prefix('/') {
            let end = closing.find(['>', '<']).unwrap_or(closing.len());
            let name =
                closing.get(..end)?.split(|c: char| c.is_ascii_whitespace()).next()?.to_ascii_lowercase();
            self.position += 2 + end + usize::from(closing.as_bytes().get(end) == Some(&b'>'));
            return Some(Piece::Close(name));
        }
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let end =
            inside.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).unwrap_or(inside.len());
        let name = inside.get(..end)?.to_ascii_lowercase();
        self.position += 1 + end;
        Some(Piece::Open(Tag { name, attributes: self.attributes() }))
    }

    /// Reads the attributes of a tag and its end.
    fn attributes(&mut self) -> Vec<(String, Cow<'a, str>)> {
        let mut attributes = Vec::new();
        loop {
            let rest = self.rest();
            let skipped = rest.find(|c: char| !c.is_ascii_whitespace() && c != '/').unwrap_or(rest.len());
            self.position += skipped;
            let rest = self.rest();
            if rest.is_empty() || attributes.len() >= MAX_ATTRIBUTES {
                return attributes;
            }
            if rest.starts_with('>') {
                self.position += 1;
                return attributes;
            }
            let end = rest
                .find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'))
                .unwrap_or(rest.len());
            let name = self.take(end.max(1).min(rest.len())).to_ascii_lowercase();
            let value = self.value();
            attributes.push((name, value));
        }
    }

    /// Reads the value of an attribute, if it has one.
    fn value(&mut self) -> Cow<'a, str> {
        let rest = self.rest();
        let trimmed = rest.trim_ascii_start();
        let Some(after) = trimmed.strip_prefix('=') else { return Cow::Borrowed("") };
        self.position += rest.len() - after.trim_ascii_start().len();
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = if let Some(quote) = quote {
            self.position += 1;
            let inside = self.rest();
            let value = self.take(inside.find(quote).unwrap_or(inside.len()));
            self.position = (self.position + 1).min(self.html.len());
            value
        } else {
            self.take(rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len()))
        };
        unescape(value)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        if let Some(piece) = self.tag() {
            return Some(piece);
        }
        let after_first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest
            .get(after_first..)
            .and_then(|more| more.find('<'))
            .map_or(rest.len(), |found| found + after_first);
        Some(Piece::Text(self.take(end)))
    }
}

/// Resolves character references: numbers, and the names that matter in links.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        plain.push_str(rest.get(..start).unwrap_or_default());
        rest = rest.get(start..).unwrap_or_default();
        let (character, length) = reference(rest);
        plain.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The character that a reference at the beginning of a text stands for, and the length of the reference.
fn reference(text: &str) -> (char, usize) {
    let name_end = text
        .bytes()
        .skip(1)
        .take(12)
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
        .count()
        + 1;
    let name = text.get(1..name_end).unwrap_or_default();
    let length = name_end + usize::from(text.as_bytes().get(name_end) == Some(&b';'));
    let character = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok().and_then(char::from_u32),
            None => number.parse().ok().and_then(char::from_u32),
        },
        None => named(name),
    };
    character.map_or(('&', 1), |character| (character, length))
}

fn named(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "colon" => ':',
        "sol" => '/',
        "bsol" => '\\',
        "period" => '.',
        "commat" => '@',
        "quest" => '?',
        "equals" => '=',
        "num" => '#',
        "percnt" => '%',
        "lpar" => '(',
        "rpar" => ')',
        "Tab" => '\t',
        "NewLine" => '\n',
        "shy" => '\u{ad}',
        _ => return None,
    })
}
