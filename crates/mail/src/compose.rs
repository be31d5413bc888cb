//! A mail of ours as bytes: what is to be said goes in as values, RFC 5322 and MIME come out.
//!
//! Whatever the values hold, the bytes have exactly the headers that were asked for: control characters are refused, and
//! everything that has a meaning in a header is encoded. Every line ends with CRLF and has at most 998 bytes; headers
//! and bodies are seven-bit, except for addresses whose local part is not ASCII. Who gets a blind copy is no part of a
//! mail. The same value always gives the same bytes.

pub(crate) mod body;
mod header;
pub mod quote;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use mail_builder::MessageBuilder;
use mail_builder::headers::raw::Raw;
use mail_builder::mime::MimePart;

use crate::address::{Address, AddressError};

/// The longest subject in bytes after encoding.
pub const MAX_SUBJECT_BYTES: usize = 998;

/// The longest id of a message or a part, without its angle brackets.
pub const MAX_ID_BYTES: usize = 500;

/// The most headers of the caller's own.
pub const MAX_HEADERS: usize = 20;

/// A mail that is to be sent.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// The Message-ID without its angle brackets.
    pub message_id: String,
    /// The time of the Date header in microseconds since 1970, UTC.
    pub date: i64,
    /// Who writes.
    pub from: Person,
    /// Where answers should go, if not to the author.
    pub reply_to: Vec<Person>,
    /// To whom it is written.
    pub to: Vec<Person>,
    /// Who gets a copy.
    pub cc: Vec<Person>,
    /// The subject.
    pub subject: String,
    /// The Message-ID of the mail that this one answers, without its angle brackets.
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the conversation, oldest first, without angle brackets.
    pub references: Vec<String>,
    /// The body as plain text.
    pub text: Option<String>,
    /// The body as HTML.
    pub html: Option<String>,
    /// Attachments and pictures within the HTML.
    pub files: Vec<File>,
    /// Headers of the sender's own, whose names begin with `X-` or `List-`.
    pub headers: Vec<(String, String)>,
    /// Whether a program wrote it.
    pub auto_submitted: Option<AutoSubmitted>,
}

/// A person in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The display name.
    pub name: Option<String>,
    /// The bare address.
    pub address: String,
}

/// A file that goes with a mail.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub filename: String,
    /// Its media type, such as `image/png`; parameters are left out.
    pub media_type: String,
    /// Its content.
    pub bytes: Bytes,
    /// Set for what the HTML shows with `cid:`; without angle brackets.
    pub content_id: Option<String>,
}

/// Why nobody wrote a mail (RFC 3834).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoSubmitted {
    /// A program sent it of its own accord.
    Generated,
    /// A program answered another mail with it.
    Replied,
}

impl AutoSubmitted {
    /// The value of the header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generated => "auto-generated",
            Self::Replied => "auto-replied",
        }
    }
}

/// Why a mail cannot be written; each message is one sentence for its sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A control character where none may be.
    #[error("The {field} must not contain {character:?}.")]
    Control {
        /// Which value.
        field: String,
        /// The first such character.
        character: char,
    },
    /// A text that is no address.
    #[error("The {field} is not a mail address: {source}")]
    Address {
        /// Which value.
        field: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// A text that cannot be an id.
    #[error(
        "The {field} must be one word of visible ASCII without angle brackets, of at most 500 characters."
    )]
    Id {
        /// Which value.
        field: String,
    },
    /// Two files with one Content-ID.
    #[error("Two files have the content id {0:?}.")]
    RepeatedContentId(String),
    /// A subject over [`MAX_SUBJECT_BYTES`].
    #[error("The subject must be at most 998 bytes long once it is encoded.")]
    SubjectTooLong,
    /// A header that the sender may not set, or whose name is none.
    #[error("The header {0:?} cannot be set: only names that begin with X- or List- are allowed.")]
    HeaderName(String),
    /// A header value that cannot be written without changing it.
    #[error("The header {0:?} has a value that is too long or not plain ASCII.")]
    HeaderValue(String),
    /// More than [`MAX_HEADERS`].
    #[error("At most 20 headers can be set.")]
    TooManyHeaders,
    /// A text that is no media type.
    #[error("{0:?} is not a media type such as image/png.")]
    MediaType(String),
    /// A time that no Date header can say.
    #[error("The date must lie between the years 1970 and 9999.")]
    Date,
}

/// Refuses control characters, which could end a header and begin another. `field` names the value to its sender.
pub fn check_text(field: &str, value: &str) -> Result<(), ComposeError> {
    match value.chars().find(|character| character.is_control()) {
        Some(character) => Err(ComposeError::Control { field: field.to_owned(), character }),
        None => Ok(()),
    }
}

/// Refuses a subject that cannot be written: one with control characters, or that is too long once encoded.
pub fn check_subject(text: &str) -> Result<(), ComposeError> {
    header::subject(text).map(|_| ())
}

/// Refuses a header that a sender may not set, or whose value cannot be written.
pub fn check_header(name: &str, value: &str) -> Result<(), ComposeError> {
    header::own_name(name)?;
    header::own_value(name, value).map(|_| ())
}

/// Refuses what is no media type; its parameters are not looked at.
pub fn check_media_type(text: &str) -> Result<(), ComposeError> {
    body::media_type(text).map(|_| ())
}

/// Whether a text can stand between the angle brackets of a Message-ID, References or Content-ID header.
pub fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'))
}

/// Whether an address can only be sent where servers know SMTPUTF8: its local part is not ASCII. Domains never need it.
pub fn address_needs_smtputf8(address: &str) -> bool {
    address.rsplit_once('@').map_or(address, |(local, _)| local).bytes().any(|byte| !byte.is_ascii())
}

/// Whether the headers of a mail need SMTPUTF8. Its envelope may need it too: see [`address_needs_smtputf8`].
pub fn needs_smtputf8(mail: &Outgoing) -> bool {
    let people = [std::slice::from_ref(&mail.from), &mail.reply_to, &mail.to, &mail.cc];
    people.into_iter().flatten().any(|person| address_needs_smtputf8(&person.address))
}

/// Writes a mail.
pub fn compose(mail: &Outgoing) -> Result<Vec<u8>, ComposeError> {
    compose_with(mail, body::build)
}

/// Writes a mail with a body of another kind.
pub(crate) fn compose_with(
    mail: &Outgoing,
    build: impl FnOnce(&Outgoing) -> Result<MimePart<'static>, ComposeError>,
) -> Result<Vec<u8>, ComposeError> {
    let mut builder = MessageBuilder::new();
    for (name, value) in header_lines(mail)? {
        builder = builder.header(name, Raw::new(value));
    }
    let mut output = Vec::new();
    builder.body(build(mail)?).serialize(&mut output);
    Ok(output)
}

/// The headers of a mail, other than those of its body, encoded but not folded.
fn header_lines(mail: &Outgoing) -> Result<Vec<(String, String)>, ComposeError> {
    let mut lines = vec![
        ("Date".to_owned(), header::date(mail.date)?),
        ("From".to_owned(), header::people("from", std::slice::from_ref(&mail.from))?),
    ];
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    if !mail.reply_to.is_empty() {
        add("Reply-To", header::people("reply_to", &mail.reply_to)?);
    }
    if mail.to.is_empty() && mail.cc.is_empty() {
        // Filters distrust a mail that is for nobody.
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

/// Reads the bare address of a person, with its domain in A-labels.
fn address(field: &str, person: &Person) -> Result<Address, ComposeError> {
    Address::parse(&person.address)
        .map_err(|source| ComposeError::Address { field: field.to_owned(), source })
}
