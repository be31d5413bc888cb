//! Content of an outgoing message: what may be sent at all, and dot-stuffing.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

/// Why a message cannot be sent to any server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// A CR without its LF or an LF without its CR: servers disagree about where such lines, and the message, end.
    #[error("The message has a line end that is not CRLF.")]
    BareLineEnd,
    /// A NUL byte.
    #[error("The message has a NUL byte.")]
    Nul,
    /// An invalid address.
    #[error("{0:?} is not a mail address that can be sent to or from.")]
    Address(String),
    /// No recipients.
    #[error("The message has no recipients.")]
    NoRecipients,
}

/// Refuses content that servers could read as two messages.
pub fn check_content(content: &[u8]) -> Result<(), InvalidMessage> {
    if memchr::memchr(0, content).is_some() {
        return Err(InvalidMessage::Nul);
    }
    let mut rest = content;
    while let Some(at) = memchr2(b'\r', b'\n', rest) {
        if rest.get(at..at + 2) != Some(b"\r\n") {
            return Err(InvalidMessage::BareLineEnd);
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    Ok(())
}

/// Content whose last line is ended.
pub(super) fn ended(content: &[u8]) -> Cow<'_, [u8]> {
    if content.is_empty() || content.ends_with(b"\r\n") {
        return Cow::Borrowed(content);
    }
    Cow::Owned([content, b"\r\n"].concat())
}

/// Content with a second dot before each line that begins with one (RFC 5321, section 4.5.2).
pub(super) fn stuffed(content: &[u8]) -> Cow<'_, [u8]> {
    let finder = memmem::Finder::new(b"\r\n.");
    if !content.starts_with(b".") && finder.find(content).is_none() {
        return Cow::Borrowed(content);
    }
    let mut output = Vec::with_capacity(content.len() + content.len() / 64 + 16);
    if content.starts_with(b".") {
        output.push(b'.');
    }
    let mut from = 0;
    for at in finder.find_iter(content) {
        output.extend_from_slice(content.get(from..at + 2).unwrap_or_default());
        output.push(b'.');
        from = at + 2;
    }
    output.extend_from_slice(content.get(from..).unwrap_or_default());
    Cow::Owned(output)
}

/// Whether the header block of a message is not ASCII, so that only SMTPUTF8 may carry it (RFC 6531).
pub(super) fn has_utf8_headers(content: &[u8]) -> bool {
    let end = memmem::find(content, b"\r\n\r\n").unwrap_or(content.len());
    !content.get(..end).unwrap_or_default().is_ascii()
}
