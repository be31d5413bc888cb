//! What is to be said: a mail as values, before anything of it is encoded.
//!
//! Nothing in it has been checked; that is done while it is written.

use bytes::Bytes;

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
