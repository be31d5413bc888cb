//! Reverse-paths and forward-paths: the arguments of MAIL and RCPT.

use std::fmt;

use super::reply::{self, Reply};
use crate::address::{Address, AddressError};

/// The sender of a message, who gets its bounces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReversePath {
    /// `<>`, the null sender: a report, which is never answered.
    Null,
    /// An address; not verified.
    Address(Address),
    /// A valid mailbox of RFC 5321 that [`Address`] does not allow: quoted, source-routed, on a host with an underscore
    /// or an address literal. Kept as given, because refusing it would lose legitimate mail.
    Unusual(String),
}

/// The longest path without its brackets (RFC 5321, section 4.5.3.1.3).
const MAX_PATH_BYTES: usize = 254;
/// The longest local part (RFC 5321, section 4.5.3.1.1).
const MAX_LOCAL_BYTES: usize = 64;

impl ReversePath {
    /// The address, if there is one of the usual kind.
    pub fn address(&self) -> Option<&Address> {
        match self {
            Self::Null | Self::Unusual(_) => None,
            Self::Address(address) => Some(address),
        }
    }

    /// The sender as a text: an address in its normalised form, anything else as it was given.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Null => None,
            Self::Address(address) => Some(address.as_str()),
            Self::Unusual(text) => Some(text),
        }
    }

    pub(super) fn parse(text: &str, utf8: bool) -> Result<Self, Reply> {
        if text.is_empty() {
            return Ok(Self::Null);
        }
        if !utf8 && !text.is_ascii() {
            return Err(reply::NEEDS_UTF8);
        }
        match Address::parse(text) {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if is_mailbox(text) => Ok(Self::Unusual(text.to_owned())),
            Err(_) => Err(reply::BAD_SENDER),
        }
    }
}

impl fmt::Display for ReversePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Address(address) => address.fmt(f),
            Self::Unusual(text) => f.write_str(text),
        }
    }
}

/// Whether a text is a mailbox of RFC 5321, section 4.1.2, also in forms that we do not host.
fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let sound_domain = match literal {
        Some(inside) => {
            !inside.is_empty()
                && inside.bytes().all(|byte| byte.is_ascii_graphic() && !b"[\\]".contains(&byte))
        }
        None => domain.split('.').all(is_label),
    };
    text.len() <= MAX_PATH_BYTES
        && local.len() <= MAX_LOCAL_BYTES
        && sound_domain
        && (is_dot_string(local) || is_quoted(local))
}

/// A label of a domain; underscores are not allowed in host names, but occur.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn is_dot_string(local: &str) -> bool {
    let atom = |character: char| {
        !character.is_ascii()
            || character.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(character)
    };
    local.split('.').all(|part| !part.is_empty() && part.chars().all(atom))
}

/// A quoted string: anything visible and spaces, with a backslash before quotation marks and backslashes.
fn is_quoted(local: &str) -> bool {
    let inside = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inside) = inside else { return false };
    let mut escaped = false;
    let sound = inside.chars().all(|character| match character {
        _ if character.is_control() => false,
        _ if std::mem::take(&mut escaped) => character.is_ascii(),
        '\\' => {
            escaped = true;
            true
        }
        _ => character != '"',
    });
    sound && !escaped
}

/// The recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardPath {
    /// `<postmaster>` without a domain: the operator of this server (RFC 5321, section 4.5.1).
    Postmaster,
    /// An address.
    Address(Address),
}

impl ForwardPath {
    /// Source routes, percent hacks and address literals are refused like relaying.
    pub(super) fn parse(text: &str, utf8: bool) -> Result<Self, Reply> {
        if text.eq_ignore_ascii_case("postmaster") {
            return Ok(Self::Postmaster);
        }
        if !utf8 && !text.is_ascii() {
            return Err(reply::NEEDS_UTF8);
        }
        Address::parse(text).map(Self::Address).map_err(|error| match error {
            AddressError::Quoted | AddressError::Literal | AddressError::LocalCharacter('%' | '!') => {
                reply::NO_RELAY
            }
            AddressError::At if text.contains('@') => reply::NO_RELAY,
            _ => reply::BAD_RECIPIENT,
        })
    }
}

impl fmt::Display for ForwardPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postmaster => f.write_str("postmaster"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Splits `<path> parameters`, without the brackets; nothing when there is no such pair of brackets.
///
/// A bracket within quotation marks does not count, so that one path cannot hide another.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('<')?;
    let (mut quoted, mut escaped) = (false, false);
    let end = inside.bytes().position(|byte| {
        let plain = !std::mem::take(&mut escaped);
        match byte {
            b'"' if plain => quoted = !quoted,
            b'\\' if plain && quoted => escaped = true,
            b'>' => return !quoted,
            _ => {}
        }
        false
    })?;
    let (path, rest) = (inside.get(..end)?, inside.get(end + 1..)?);
    (rest.is_empty() || rest.starts_with(' ')).then_some((path, rest))
}
