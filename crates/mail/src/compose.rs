//! Composing outgoing messages: values go in, RFC 5322 and MIME bytes come out.
//!
//! Whatever the values contain, the bytes have exactly the headers that were asked for: control characters are refused,
//! and characters with a meaning in headers are encoded. Every line ends with CRLF and has at most 998 bytes; headers
//! and bodies are seven-bit, except for addresses whose local part is not ASCII. Bcc recipients are not part of a
//! message. The same value always gives the same bytes.

pub(crate) mod body;
mod checks;
mod error;
mod header;
pub mod quote;
pub mod reply_text;
#[cfg(test)]
mod tests;
mod unencoded;

use mail_builder::MessageBuilder;
use mail_builder::headers::raw::Raw;
use mail_builder::mime::MimePart;

pub use checks::{MAX_ID_BYTES, check_text, is_id};
pub use error::ComposeError;
pub use header::MAX_SUBJECT_BYTES;
pub use unencoded::{AutoSubmitted, File, Person, UnencodedMessage};

/// Maximum number of custom headers.
pub const MAX_HEADERS: usize = 20;

/// Refuses a subject that cannot be written: one with control characters, or that is too long once encoded.
pub fn check_subject(text: &str) -> Result<(), ComposeError> {
    header::subject(text).map(|_| ())
}

/// Refuses a header that a sender may not set, or whose value cannot be written.
pub fn check_header(name: &str, value: &str) -> Result<(), ComposeError> {
    header::own_name(name)?;
    header::own_value(name, value).map(|_| ())
}

/// Refuses an invalid media type; its parameters are not checked.
pub fn check_media_type(text: &str) -> Result<(), ComposeError> {
    body::media_type(text).map(|_| ())
}

/// Whether an address needs SMTPUTF8: its local part is not ASCII. Domains never need it.
pub fn address_needs_smtputf8(address: &str) -> bool {
    address.rsplit_once('@').map_or(address, |(local, _)| local).bytes().any(|byte| !byte.is_ascii())
}

/// Whether the headers of a message need SMTPUTF8. Its envelope may need it too: see [`address_needs_smtputf8`].
pub fn needs_smtputf8(mail: &UnencodedMessage) -> bool {
    let people = [std::slice::from_ref(&mail.from), &mail.reply_to, &mail.to, &mail.cc];
    people.into_iter().flatten().any(|person| address_needs_smtputf8(&person.address))
}

/// Composes a message.
pub fn compose(mail: &UnencodedMessage) -> Result<Vec<u8>, ComposeError> {
    compose_with(mail, body::build)
}

/// Composes a message with another kind of body.
pub(crate) fn compose_with(
    mail: &UnencodedMessage,
    build: impl FnOnce(&UnencodedMessage) -> Result<MimePart<'static>, ComposeError>,
) -> Result<Vec<u8>, ComposeError> {
    let mut builder = MessageBuilder::new();
    for (name, value) in header_lines(mail)? {
        builder = builder.header(name, Raw::new(value));
    }
    let mut output = Vec::new();
    builder.body(build(mail)?).serialize(&mut output);
    Ok(output)
}

/// The headers of a message, other than those of its body, encoded but not folded.
fn header_lines(mail: &UnencodedMessage) -> Result<Vec<(String, String)>, ComposeError> {
    let mut lines = vec![
        ("Date".to_owned(), header::date(mail.date)?),
        ("From".to_owned(), header::people("from", std::slice::from_ref(&mail.from))?),
    ];
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    if !mail.reply_to.is_empty() {
        add("Reply-To", header::people("reply_to", &mail.reply_to)?);
    }
    if mail.to.is_empty() && mail.cc.is_empty() {
        // Filters distrust a message without recipients.
        add("To", "undisclosed-recipients:;".to_owned());
    }
    if !mail.to.is_empty() {
        add("To", header::people("to", &mail.to)?);
    }
    if !mail.cc.is_empty() {
        add("Cc", header::people("cc", &mail.cc)?);
    }
    add("Subject", header::subject(&mail.subject)?);
    add("Message-ID", header::ids("message id", std::slice::from_ref(&mail.message_id))?);
    if let Some(parent) = &mail.in_reply_to {
        add("In-Reply-To", header::ids("in_reply_to", std::slice::from_ref(parent))?);
    }
    if !mail.references.is_empty() {
        add("References", header::ids("references", &mail.references)?);
    }
    if let Some(kind) = mail.auto_submitted {
        add("Auto-Submitted", kind.as_str().to_owned());
    }
    if mail.headers.len() > MAX_HEADERS {
        return Err(ComposeError::TooManyHeaders);
    }
    for (name, value) in &mail.headers {
        add(header::own_name(name)?, header::own_value(name, value)?);
    }
    Ok(lines)
}
