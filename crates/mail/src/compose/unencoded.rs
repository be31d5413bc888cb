//! A message as values, before it is encoded.
//!
//! The values are not checked yet; composing checks them.

use bytes::Bytes;

/// A message to be composed.
#[derive(Clone, Debug, Default)]
pub struct UnencodedMessage {
    /// The Message-ID without its angle brackets.
    pub message_id: String,
    /// The time of the Date header in microseconds since 1970, UTC.
    pub date: i64,
    /// The author.
    pub from: Person,
    /// Where replies should go, if not to the author.
    pub reply_to: Vec<Person>,
    /// The To recipients.
    pub to: Vec<Person>,
    /// The Cc recipients.
    pub cc: Vec<Person>,
    /// The subject.
    pub subject: String,
    /// The Message-ID of the message that this one replies to, without its angle brackets.
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the conversation, oldest first, without angle brackets.
    pub references: Vec<String>,
    /// The body as plain text.
    pub text: Option<String>,
    /// The body as HTML.
    pub html: Option<String>,
    /// Attachments and inline images.
    pub files: Vec<File>,
    /// Custom headers, whose names begin with `X-` or `List-`.
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

/// An attachment or inline image.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub filename: String,
    /// Its media type, such as `image/png`; parameters are left out.
    pub media_type: String,
    /// Its content.
    pub bytes: Bytes,
    /// Set for inline images that the HTML refers to with `cid:`; without angle brackets.
    pub content_id: Option<String>,
}

/// How a message was generated automatically (RFC 3834).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoSubmitted {
    /// Sent by a program on its own.
    Generated,
    /// Sent by a program in reply to a message.
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
