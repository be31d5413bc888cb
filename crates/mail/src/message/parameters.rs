//! Values with parameters: Content-Type and Content-Disposition, with the continuations and charsets of RFC 2231.

use super::{charset, encoded_words, transfer};

/// The most parameters that are read of one header.
const MAX_PARAMETERS: usize = 200;

/// The most bytes of one name or text that are decoded.
const MAX_TEXT: usize = 1024;

/// A header value with parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    /// The text before the first semicolon, in lower case and without comments.
    pub(super) value: String,
    /// Whether it was not written as the standard says.
    pub(super) malformed: bool,
    /// The whole value, where it was not; some parsers read another name from it.
    pub(super) raw: Option<String>,
    list: Vec<Parameter>,
}

#[derive(Clone, Debug)]
struct Parameter {
    /// The name in lower case, with any `*0*` behind it.
    name: String,
    value: Vec<u8>,
}

impl Parameters {
    /// Reads a header value.
    pub(super) fn read(value: &[u8]) -> Self {
        let mut reader = Reader { bytes: value, position: 0 };
        let main = reader.until_semicolon();
        let mut parameters =
            Self { value: clean_value(main), malformed: main.contains(&b'('), raw: None, list: Vec::new() };
        while reader.position < value.len() && parameters.list.len() < MAX_PARAMETERS {
            let (name, separator) = reader.name();
            parameters.malformed |= name.ends_with(b" ") || name.ends_with(b"\t");
            let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
            if separator == Some(b'=') {
                let (value, sound) = reader.value();
                parameters.malformed |= !sound || name.is_empty();
                parameters.list.push(Parameter { name, value });
            } else {
                parameters.malformed |= !name.is_empty();
            }
        }
        parameters.malformed |= reader.position < value.len();
        if parameters.malformed {
            parameters.raw = Some(encoded_words::decode(value.get(..MAX_TEXT).unwrap_or(value)));
        }
        parameters
    }

    /// How often a parameter occurs in its plain form.
    pub(super) fn count(&self, name: &str) -> usize {
        self.list.iter().filter(|parameter| parameter.name == name).count()
    }

    /// Whether a parameter occurs in one of the forms of RFC 2231.
    pub(super) fn is_extended(&self, name: &str) -> bool {
        self.list.iter().any(|parameter| section(&parameter.name, name).is_some())
    }

    /// The bytes of a parameter in its plain form.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.list.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.value.as_slice())
    }

    /// A parameter that is a word of the protocol, in lower case.
    pub(super) fn keyword(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|value| String::from_utf8_lossy(value).trim().to_ascii_lowercase())
    }

    /// Everything that some parser could read as the value of a parameter.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let plain = self.list.iter().filter(|parameter| parameter.name == name).take(4);
        let plain = plain.map(|parameter| {
            encoded_words::decode(parameter.value.get(..MAX_TEXT).unwrap_or(&parameter.value))
        });
        self.extended(name).into_iter().chain(plain).collect()
    }

    /// A parameter as text, in whichever form it is given.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.extended(name).or_else(|| {
            let value = self.bytes(name)?;
            Some(encoded_words::decode(value.get(..MAX_TEXT).unwrap_or(value)))
        })
    }

    /// A parameter in one of the forms of RFC 2231.
    fn extended(&self, name: &str) -> Option<String> {
        let mut sections: Vec<(Section, &[u8])> = self
            .list
            .iter()
            .filter_map(|parameter| Some((section(&parameter.name, name)?, parameter.value.as_slice())))
            .collect();
        sections.sort_by_key(|(section, _)| section.number);
        let (first, _) = sections.first()?;
        let mut label = None;
        let mut bytes = Vec::new();
        for (index, (section, value)) in sections.iter().enumerate() {
            let mut value = *value;
            if index == 0 && first.encoded {
                (label, value) = split_charset(value);
            }
            if section.encoded {
                unescape(value, &mut bytes);
            } else {
                bytes.extend_from_slice(value);
            }
            if bytes.len() > MAX_TEXT {
                bytes.truncate(MAX_TEXT);
                break;
            }
        }
        Some(charset::decode(&bytes, label.as_deref()))
    }
}

/// One piece of a parameter.
struct Section {
    number: u32,
    encoded: bool,
}

/// Reads `name*`, `name*0` and `name*0*`.
fn section(full: &str, name: &str) -> Option<Section> {
    let rest = full.strip_prefix(name)?.strip_prefix('*')?;
    let (digits, encoded) = match rest.strip_suffix('*') {
        Some(digits) => (digits, true),
        None => (rest, rest.is_empty()),
    };
    let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(Section { number, encoded })
}

/// Splits `charset'language'text`.
fn split_charset(value: &[u8]) -> (Option<String>, &[u8]) {
    let mut pieces = value.splitn(3, |&byte| byte == b'\'');
    match (pieces.next(), pieces.next(), pieces.next()) {
        (Some(charset), Some(_), Some(text)) => (Some(String::from_utf8_lossy(charset).into_owned()), text),
        _ => (None, value),
    }
}

/// Decodes `%41`.
fn unescape(value: &[u8], bytes: &mut Vec<u8>) {
    let mut position = 0;
    while let Some(&byte) = value.get(position) {
        match value.get(position + 1..position + 3) {
            Some(&[high, low]) if byte == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(transfer::hex(high) << 4 | transfer::hex(low));
                position += 3;
            }
            _ => {
                bytes.push(byte);
                position += 1;
            }
        }
    }
}

/// The main value without comments and white space around it.
fn clean_value(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for &byte in bytes {
        match byte {
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(char::from(byte.to_ascii_lowercase())),
            _ => {}
        }
    }
    encoded_words::one_line(&text)
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Takes `length` bytes and the separator behind them.
    fn take(&mut self, length: usize) -> &'a [u8] {
        let taken = self.rest().get(..length).unwrap_or_default();
        self.position = (self.position + length + 1).min(self.bytes.len());
        taken
    }

    fn until_semicolon(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.take(memchr::memchr(b';', rest).unwrap_or(rest.len()))
    }

    /// The name of a parameter and what ended it.
    fn name(&mut self) -> (&'a [u8], Option<u8>) {
        let rest = self.rest();
        let end = memchr::memchr2(b'=', b';', rest).unwrap_or(rest.len());
        (self.take(end), rest.get(end).copied())
    }

    /// The value of a parameter, and whether it is written as the standard says.
    fn value(&mut self) -> (Vec<u8>, bool) {
        let is_tight = !self.rest().starts_with(b" ") && !self.rest().starts_with(b"\t");
        self.position = self.bytes.len() - self.rest().trim_ascii_start().len();
        if self.rest().first() == Some(&b'"') {
            self.position += 1;
            let (value, sound) = self.quoted();
            return (value, sound && is_tight);
        }
        let token = self.until_semicolon().trim_ascii();
        let sound =
            is_tight && !token.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b'(' | b'"'));
        (token.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect(), sound)
    }

    /// A quoted value. A backslash counts only before a quote or another one: Windows puts paths in here.
    fn quoted(&mut self) -> (Vec<u8>, bool) {
        let mut value = Vec::new();
        let mut is_folded = false;
        let rest = self.rest();
        let mut index = 0;
        while let Some(&byte) = rest.get(index) {
            match byte {
                b'"' => {
                    self.position += index + 1;
                    let behind = self.until_semicolon().trim_ascii();
                    return (value, !is_folded && (behind.is_empty() || behind.starts_with(b"(")));
                }
                b'\\' if matches!(rest.get(index + 1), Some(b'"' | b'\\')) => {
                    index += 1;
                    value.extend(rest.get(index));
                }
                b'\r' | b'\n' => is_folded = true,
                _ => value.push(byte),
            }
            index += 1;
        }
        self.position = self.bytes.len();
        (value, false)
    }
}
