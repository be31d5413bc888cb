//! Splits HTML into tags and text the way browsers do, in one pass over the bytes.
//!
//! Comments, declarations and unfinished tags are not emitted. No tree is built.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::entities::{self, ReferenceContext};

/// The most attributes of one tag that are kept.
const MAX_ATTRIBUTES: usize = 256;

/// The name of an element in lower case; longer names than any real one are cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Name {
    bytes: [u8; 16],
    length: u8,
    sum: u8,
}

impl Name {
    /// Reads a name.
    pub(crate) fn new(text: &str) -> Self {
        let mut bytes = [0; 16];
        let (mut length, mut sum) = (0, 0_u8);
        for (slot, byte) in bytes.iter_mut().zip(text.bytes()) {
            *slot = if byte.is_ascii() { byte.to_ascii_lowercase() } else { b'?' };
            sum = sum.wrapping_mul(31).wrapping_add(*slot);
            length += 1;
        }
        Self { bytes, length, sum }
    }

    /// A number by which most names differ.
    pub(crate) fn sum(&self) -> usize {
        usize::from(self.sum)
    }

    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        self.bytes
            .get(..usize::from(self.length))
            .and_then(|name| std::str::from_utf8(name).ok())
            .unwrap_or_default()
    }
}

/// An attribute as written in the tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'a> {
    /// Its name, in any case.
    pub(crate) name: &'a str,
    /// Its value with references still in it.
    pub(crate) value: &'a str,
}

/// A start tag.
#[derive(Debug)]
pub(crate) struct Tag<'a> {
    /// The name of the element.
    pub(crate) name: Name,
    /// Its attributes; of two with one name the first counts.
    pub(crate) attributes: Vec<Attribute<'a>>,
    /// Whether it ends in `/>`, which only matters in SVG and `MathML`.
    pub(crate) self_closing: bool,
}

impl<'a> Tag<'a> {
    /// The value of an attribute, decoded.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let found = self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))?;
        Some(entities::decode(found.value, ReferenceContext::Attribute))
    }

    /// Whether an attribute is there, whatever its value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}

/// A token of HTML.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    /// Text with references still in it.
    Text(&'a str),
    /// The content of an element without tags, such as a script.
    Raw(Name, &'a str),
    /// A start tag.
    Start(Tag<'a>),
    /// An end tag.
    End(Name),
}

/// The tokens of a document.
pub(crate) struct Tokens<'a> {
    html: &'a str,
    at: usize,
    raw: Option<Name>,
    /// Whether SVG or `MathML` is open: there no element has raw text, and CDATA is text.
    pub(crate) foreign: bool,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a document.
    pub(crate) fn new(html: &'a str) -> Self {
        Self { html, at: 0, raw: None, foreign: false }
    }

    fn rest(&self) -> &'a str {
        self.html.get(self.at..).unwrap_or_default()
    }

    /// Takes this many bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let start = self.at;
        self.at = (start + length).min(self.html.len());
        self.html.get(start..self.at).unwrap_or_default()
    }

    fn raw_text(&mut self, name: Name) -> Token<'a> {
        let rest = self.rest();
        let length = match name.as_str() {
            "plaintext" => rest.len(),
            "script" => script_length(rest),
            other => raw_length(rest, other),
        };
        Token::Raw(name, self.take(length))
    }

    /// Reads a tag whose name begins at an offset; `None` when the document ends within it.
    fn tag(&mut self, offset: usize) -> Option<Tag<'a>> {
        let rest = self.rest();
        let mut reader = TagReader { text: rest, bytes: rest.as_bytes(), at: offset };
        let tag = reader.read();
        self.at += if tag.is_some() { reader.at } else { rest.len() };
        tag
    }

    fn start_tag(&mut self) -> Option<Token<'a>> {
        let tag = self.tag(1)?;
        if !self.foreign && holds_raw_text(tag.name.as_str()) {
            self.raw = Some(tag.name);
        }
        Some(Token::Start(tag))
    }

    fn text(&mut self) -> Token<'a> {
        let bytes = self.rest().as_bytes();
        let begins_tag = |place: &usize| {
            let next = bytes.get(*place + 1).copied().unwrap_or_default();
            *place > 0 && (next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'))
        };
        let end = memchr_iter(b'<', bytes).find(begins_tag).unwrap_or(bytes.len());
        Token::Text(self.take(end))
    }

    fn skip_declaration(&mut self) {
        let length = declaration_length(self.rest(), self.foreign);
        self.take(length);
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            if let Some(name) = self.raw.take() {
                return Some(self.raw_text(name));
            }
            let bytes = self.rest().as_bytes();
            let (first, second, third) = (bytes.first()?, bytes.get(1), bytes.get(2));
            match (first, second, third) {
                (b'<', Some(byte), _) if byte.is_ascii_alphabetic() => return self.start_tag(),
                (b'<', Some(b'/'), Some(byte)) if byte.is_ascii_alphabetic() => {
                    return self.tag(2).map(|tag| Token::End(tag.name));
                }
                (b'<', Some(b'/'), Some(_)) | (b'<', Some(b'!' | b'?'), _) => self.skip_declaration(),
                _ => return Some(self.text()),
            }
        }
    }
}

/// Whether a document may contain an element, judged by its bytes.
pub(crate) fn may_hold(html: &str, name: &str) -> bool {
    let bytes = html.as_bytes();
    memchr_iter(b'<', bytes).any(|place| is_tag(bytes, place, b"<", name))
}

/// Elements whose content is text up to their end tag.
fn holds_raw_text(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "title" | "textarea" | "iframe" | "xmp" | "noembed" | "noframes" | "plaintext"
    )
}

/// The length of a comment or declaration; to the end of the document when it is not closed.
fn declaration_length(text: &str, foreign: bool) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("<!-->") {
        return 5;
    }
    if text.starts_with("<!--->") {
        return 6;
    }
    let ends = |place: usize| {
        let before = bytes.get(..place).unwrap_or_default();
        if text.starts_with("<!--") {
            place >= 6 && (before.ends_with(b"--") || before.ends_with(b"--!"))
        } else if foreign && text.starts_with("<![CDATA[") {
            before.ends_with(b"]]")
        } else {
            true
        }
    };
    memchr_iter(b'>', bytes).find(|place| ends(*place)).map_or(bytes.len(), |place| place + 1)
}

/// The number of bytes before the end tag of an element with raw text.
fn raw_length(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    memchr_iter(b'<', bytes).find(|place| is_tag(bytes, *place, b"</", name)).unwrap_or(bytes.len())
}

/// As [`raw_length`] for scripts, where `<!--<script>` makes the next end tag part of the script.
fn script_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut commented, mut nested) = (false, false);
    for place in memchr::memchr2_iter(b'<', b'>', bytes) {
        let here = bytes.get(place..).unwrap_or_default();
        if here.starts_with(b">") {
            if bytes.get(..place).unwrap_or_default().ends_with(b"--") {
                (commented, nested) = (false, false);
            }
        } else if here.starts_with(b"<!--") {
            commented = true;
        } else if is_tag(bytes, place, b"</", "script") {
            if !nested {
                return place;
            }
            nested = false;
        } else if commented && is_tag(bytes, place, b"<", "script") {
            nested = true;
        }
    }
    bytes.len()
}

/// Whether a tag of this name begins here.
fn is_tag(bytes: &[u8], place: usize, opening: &[u8], name: &str) -> bool {
    let Some(after) = bytes.get(place..).and_then(|here| here.strip_prefix(opening)) else { return false };
    let named = after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
    named
        && after.get(name.len()).is_some_and(|next| next.is_ascii_whitespace() || matches!(next, b'/' | b'>'))
}

/// Reads the inside of a tag.
struct TagReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> TagReader<'a> {
    fn read(&mut self) -> Option<Tag<'a>> {
        let name =
            Name::new(self.take_until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')));
        let mut attributes = Vec::new();
        let mut self_closing = false;
        loop {
            match self.bytes.get(self.at)? {
                b'>' => {
                    self.at += 1;
                    return Some(Tag { name, attributes, self_closing });
                }
                b'/' => {
                    self_closing = true;
                    self.at += 1;
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => {
                    self_closing = false;
                    let attribute = self.attribute()?;
                    if attributes.len() < MAX_ATTRIBUTES {
                        attributes.push(attribute);
                    }
                }
            }
        }
    }

    fn attribute(&mut self) -> Option<Attribute<'a>> {
        let start = self.at;
        self.at += 1;
        self.take_until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'='));
        let name = self.text.get(start..self.at).unwrap_or_default();
        self.skip_spaces();
        if self.bytes.get(self.at)? != &b'=' {
            return Some(Attribute { name, value: "" });
        }
        self.at += 1;
        self.skip_spaces();
        let value = match self.bytes.get(self.at)? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let start = self.at;
                let length = memchr(*quote, self.bytes.get(start..)?)?;
                self.at = start + length + 1;
                self.text.get(start..start + length).unwrap_or_default()
            }
            _ => self.take_until(|byte| byte.is_ascii_whitespace() || byte == b'>'),
        };
        Some(Attribute { name, value })
    }

    fn skip_spaces(&mut self) {
        self.take_until(|byte| !byte.is_ascii_whitespace());
    }

    /// Takes bytes up to a delimiter. Delimiters are ASCII, so the text is cut between characters.
    fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        let later = self.bytes.get(start..).unwrap_or_default();
        self.at += later.iter().position(|byte| ends(*byte)).unwrap_or(later.len());
        self.text.get(start..self.at).unwrap_or_default()
    }
}
