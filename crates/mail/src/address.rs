//! Email addresses: one bare [`Address`], a [`Mailbox`] with a display name, and the names that we host.
//!
//! An address is checked once, when it is parsed. Code that holds an [`Address`] can rely on it: it contains no line
//! break that could inject an SMTP command, no routing syntax in the local part, and its domain can be looked up in
//! DNS.

mod hosted;
mod mailbox;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use hosted::{HostedLocalPartError, hosted_local_part};
pub use mailbox::{MAX_NAME_CHARS, Mailbox};

/// The longest address in bytes (RFC 5321 allows a path of 256 with its two angle brackets).
pub const MAX_ADDRESS_BYTES: usize = 254;

/// The longest local part in bytes (RFC 5321, section 4.5.3.1.1).
pub const MAX_LOCAL_BYTES: usize = 64;

/// The longest input that is parsed; a domain can get shorter when it is converted to A-labels.
const MAX_INPUT_BYTES: usize = 1024;

/// Why a text is no mail address; each message is one sentence for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Nothing was given.
    #[error("The address is empty.")]
    Empty,
    /// No `@`, or more than one.
    #[error("The address must have exactly one @, as in name@example.com.")]
    At,
    /// Nothing before the `@`.
    #[error("The address needs a name before the @, as in name@example.com.")]
    LocalEmpty,
    /// The local part is over [`MAX_LOCAL_BYTES`].
    #[error("The part before the @ must be at most 64 bytes long.")]
    LocalTooLong,
    /// The address is over [`MAX_ADDRESS_BYTES`].
    #[error("The address must be at most 254 bytes long.")]
    TooLong,
    /// The local part is a quoted string.
    #[error("An address with quotation marks before the @ is not supported.")]
    Quoted,
    /// The local part contains a character that is not allowed.
    #[error("The part before the @ must not contain {0:?}.")]
    LocalCharacter(char),
    /// A dot at either end of the local part, or two in a row.
    #[error("The part before the @ must not begin or end with a dot or have two dots in a row.")]
    LocalDots,
    /// The domain is an IP address, bracketed or bare.
    #[error("The part after the @ must be a domain name, not an IP address.")]
    Literal,
    /// The domain is not a host name.
    #[error("The part after the @ must be a domain name such as example.com.")]
    Domain,
    /// Angle brackets or quotation marks of a mailbox do not match.
    #[error("A name and an address must be written as Name <name@example.com>.")]
    Brackets,
    /// The display name is over [`MAX_NAME_CHARS`].
    #[error("The display name must be at most 255 characters long.")]
    NameTooLong,
    /// A control character in the display name.
    #[error("The display name must not contain {0:?}.")]
    NameControl(char),
    /// A character that is only allowed in a quoted display name.
    #[error("A display name with {0:?} must be put in quotation marks.")]
    NameUnquoted(char),
}

/// One bare mail address.
///
/// The local part is kept as typed, since only the receiving host may say that its case means nothing (RFC
/// 5321, section 2.4): [`fmt::Display`] and the serialised form carry it. Equality, order and hash use the
/// normalised [`Address::as_str`], which is therefore also the form to store where addresses are looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    typed_local: String,
    normalised: String,
    /// The offset of the `@` in `normalised`.
    at: usize,
}

impl Address {
    /// Reads one bare address, such as `Name+tag@Bücher.example`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.len() > MAX_INPUT_BYTES {
            return Err(AddressError::TooLong);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::At)?;
        check_local(local)?;
        let ascii_domain = normalise_domain(domain)?;
        Self::from_parts(local, &ascii_domain)
    }

    /// Joins checked parts and enforces the length limits on both forms: lower case can take more bytes.
    fn from_parts(local: &str, domain: &str) -> Result<Self, AddressError> {
        let lower_local = lower_case(local);
        let at = lower_local.len();
        let longest_local = at.max(local.len());
        if longest_local > MAX_LOCAL_BYTES {
            return Err(AddressError::LocalTooLong);
        }
        if longest_local + 1 + domain.len() > MAX_ADDRESS_BYTES {
            return Err(AddressError::TooLong);
        }
        Ok(Self { typed_local: local.to_owned(), normalised: format!("{lower_local}@{domain}"), at })
    }

    /// The local part as it was typed.
    pub fn local(&self) -> &str {
        &self.typed_local
    }

    /// The domain: lower case, A-labels, no trailing dot.
    pub fn domain(&self) -> &str {
        &self.normalised[self.at + 1..]
    }

    /// The normalised address, the form in which two addresses are compared.
    pub fn as_str(&self) -> &str {
        &self.normalised
    }

    /// The tag of a plus-address as typed: `news` of `name+news@example.com`.
    pub fn tag(&self) -> Option<&str> {
        split_tag(&self.typed_local).map(|(_, tag)| tag)
    }

    /// The address that plus-addressing leads to: `name@example.com` for `name+news@example.com`.
    pub fn without_tag(&self) -> Self {
        let Some((name, _)) = split_tag(&self.typed_local) else {
            return self.clone();
        };
        let lower_name = lower_case(name);
        Self {
            typed_local: name.to_owned(),
            at: lower_name.len(),
            normalised: format!("{lower_name}@{}", self.domain()),
        }
    }
}

/// Splits at the first plus, if the text before it is a valid local part.
fn split_tag(local: &str) -> Option<(&str, &str)> {
    local.split_once('+').filter(|(name, _)| !name.is_empty() && !name.ends_with('.'))
}

/// Checks a local part: dot-atom of RFC 5321, widened to UTF-8 by RFC 6531.
fn check_local(local: &str) -> Result<(), AddressError> {
    if local.is_empty() {
        return Err(AddressError::LocalEmpty);
    }
    if local.starts_with('"') {
        return Err(AddressError::Quoted);
    }
    if local.contains('@') {
        return Err(AddressError::At);
    }
    if let Some(refused) = local.chars().find(|&c| c != '.' && !is_atom_char(c)) {
        return Err(AddressError::LocalCharacter(refused));
    }
    if local.split('.').any(str::is_empty) {
        return Err(AddressError::LocalDots);
    }
    Ok(())
}

/// Whether an atom of a local part may contain the character.
///
/// RFC 5321 would allow `%` and `!` too, but old relays treat them as source routes.
fn is_atom_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || "#$&'*+-/=?^_`{|}~".contains(c);
    }
    !is_invisible(c)
}

/// Whether a non-ASCII character is invisible or changes the text direction, so that one address could look like
/// another.
fn is_invisible(c: char) -> bool {
    let formats = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    formats || c.is_control() || c.is_whitespace()
}

/// Lower-cases a local part character by character, so that any substring of it is lowered the same way.
///
/// A non-ASCII character that would become an ASCII one (the Kelvin sign becomes `k`) stays: otherwise an attacker's
/// address could equal one that a sender policy trusts.
fn lower_case(local: &str) -> String {
    let mut lower = String::with_capacity(local.len());
    for c in local.chars() {
        let turns_ascii = !c.is_ascii() && c.to_lowercase().any(|part| part.is_ascii());
        if turns_ascii {
            lower.push(c);
        } else {
            lower.extend(c.to_lowercase());
        }
    }
    lower
}

/// Turns a domain into lower-case A-labels (UTS 46, transitional forms off) and checks that it is a host
/// name.
fn normalise_domain(domain: &str) -> Result<String, AddressError> {
    if domain.starts_with('[') {
        return Err(AddressError::Literal);
    }
    let ascii: Cow<'_, str> = Uts46::new()
        .to_ascii(
            domain.as_bytes(),
            AsciiDenyList::STD3,
            Hyphens::CheckFirstLast,
            DnsLength::VerifyAllowRootDot,
        )
        .map_err(|_| AddressError::Domain)?;
    let host = ascii.strip_suffix('.').unwrap_or(&ascii);
    let top_label = host.rsplit('.').next().unwrap_or_default();
    if top_label.is_empty() {
        return Err(AddressError::Domain);
    }
    // No top-level domain is a number, but resolvers read `127.1` and its like as IPv4 addresses.
    if top_label.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::Literal);
    }
    Ok(host.to_owned())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.typed_local, self.domain())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.normalised == other.normalised
    }
}

impl Eq for Address {}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        self.normalised.cmp(&other.normalised)
    }
}

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.normalised.hash(state);
    }
}

impl JsonSchema for Address {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "email" })
    }
}
