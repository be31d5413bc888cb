//! An address with a display name: one mailbox of RFC 5322, section 3.4.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Address, AddressError};

/// The longest display name in characters.
pub const MAX_NAME_CHARS: usize = 255;

/// An address and, where there is one, its display name.
///
/// The name is plain text; it is encoded (RFC 2047) when the message is composed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mailbox {
    name: Option<String>,
    address: Address,
}

impl Mailbox {
    /// Joins an address with a display name; a blank name counts as none.
    pub fn new(name: Option<&str>, address: Address) -> Result<Self, AddressError> {
        let given_name = name.filter(|text| !text.trim().is_empty());
        if let Some(text) = given_name {
            if let Some(control) = text.chars().find(|c| c.is_control()) {
                return Err(AddressError::NameControl(control));
            }
            if text.chars().count() > MAX_NAME_CHARS {
                return Err(AddressError::NameTooLong);
            }
        }
        Ok(Self { name: given_name.map(str::to_owned), address })
    }

    /// Reads `Name <a@b>`, `"Quoted, Name" <a@b>`, `<a@b>` or `a@b`; comments and groups are refused.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let trimmed = text.trim_matches(' ');
        let Some(opened) = trimmed.strip_suffix('>') else {
            let unclosed = trimmed.contains('<');
            return if unclosed { Err(AddressError::Brackets) } else { Ok(Address::parse(trimmed)?.into()) };
        };
        let (phrase, bare) = opened.rsplit_once('<').ok_or(AddressError::Brackets)?;
        let address = Address::parse(bare)?;
        let name = read_phrase(phrase.trim_matches(' '))?;
        Self::new(Some(&name), address)
    }

    /// The display name, never blank.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The bare address.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Reads the words before the angle bracket: one quoted string, or plain words.
fn read_phrase(phrase: &str) -> Result<String, AddressError> {
    if let Some(quoted) = phrase.strip_prefix('"') {
        return unquote(quoted);
    }
    if let Some(special) = phrase.chars().find(|&c| is_special(c)) {
        return Err(AddressError::NameUnquoted(special));
    }
    let words: Vec<&str> = phrase.split(' ').filter(|word| !word.is_empty()).collect();
    Ok(words.join(" "))
}

/// Reads the rest of a quoted string, which must end with its closing quotation mark.
fn unquote(quoted: &str) -> Result<String, AddressError> {
    let mut name = String::with_capacity(quoted.len());
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' if rest.as_str().is_empty() => return Ok(name),
            '"' => break,
            '\\' => name.push(rest.next().ok_or(AddressError::Brackets)?),
            other => name.push(other),
        }
    }
    Err(AddressError::Brackets)
}

/// Whether RFC 5322 gives the character a meaning outside quotation marks; the dot is tolerated, as in `J.
/// Doe`.
fn is_special(c: char) -> bool {
    "()<>[]:;@\\,\"".contains(c)
}

/// Whether the name would come back changed if it were written without quotation marks.
fn needs_quotes(name: &str) -> bool {
    name.starts_with(' ') || name.ends_with(' ') || name.contains("  ") || name.chars().any(is_special)
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            None => write!(f, "{}", self.address),
            Some(name) if needs_quotes(name) => {
                let escaped = name.replace('\\', r"\\").replace('"', "\\\"");
                write!(f, "\"{escaped}\" <{}>", self.address)
            }
            Some(name) => write!(f, "{name} <{}>", self.address),
        }
    }
}

impl From<Address> for Mailbox {
    fn from(address: Address) -> Self {
        Self { name: None, address }
    }
}

impl FromStr for Mailbox {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Mailbox {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<Mailbox> for String {
    fn from(mailbox: Mailbox) -> Self {
        mailbox.to_string()
    }
}

impl JsonSchema for Mailbox {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Mailbox".into()
    }

    // No "format": a validator would refuse the display name.
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "An address, or a name and an address as in `Name <name@example.com>`."
        })
    }
}
