//! A parsed message: header values, texts and files.
//!
//! All of it comes from untrusted senders. It is decoded and bounded, but not made safe to be shown.

use std::ops::Range;

use super::address_list::Person;
use super::automatic::Automatic;
use super::faults::Fault;
use super::transfer::Encoding;

/// A parsed message.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// What is wrong with the structure; empty when every parser reads it the same way.
    pub faults: Vec<Fault>,
    /// The header block as text, with a replacement character for undecodable bytes.
    pub headers: String,
    /// The Message-ID without its angle brackets.
    pub message_id: Option<String>,
    /// The first id of In-Reply-To.
    pub in_reply_to: Option<String>,
    /// The ids of References, oldest first, at most 50.
    pub references: Vec<String>,
    /// The author; nothing without a readable one, or with more than one From line.
    pub from: Option<Person>,
    /// The number of readable addresses in the first From line: more than one cannot be authenticated.
    pub authors: usize,
    /// The To recipients.
    pub to: Vec<Person>,
    /// The Cc recipients.
    pub cc: Vec<Person>,
    /// The Reply-To addresses.
    pub reply_to: Vec<Person>,
    /// The subject, decoded, on one line.
    pub subject: String,
    /// The time of the Date header in microseconds since 1970, UTC.
    pub date: Option<i64>,
    /// The plain text that a reader sees.
    pub text: Option<String>,
    /// The HTML that a reader sees.
    pub html: Option<String>,
    /// Everything that is a file: attachments, inline images, calendar parts, attached messages.
    pub files: Vec<File>,
    /// Parts that are neither shown nor listed, for the scanner only: those of attached messages, and alternatives that
    /// are not shown.
    pub inner: Vec<File>,
    /// The kind of automatic message, if it is one.
    pub automatic: Option<Automatic>,
    /// How many Received lines it has.
    pub received_lines: usize,
}

/// A file in a message.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, cleaned: no folders, no control or direction characters, at most 255 bytes, never empty.
    pub name: String,
    /// The media type as declared, in lower case, such as `image/png`.
    pub media_type: String,
    /// The Content-ID without its angle brackets.
    pub content_id: Option<String>,
    /// `inline` or `attachment`, where the message says.
    pub disposition: Option<String>,
    /// Bytes after decoding.
    pub size: u64,
    /// The range of the encoded bytes in the message.
    pub range: Range<usize>,
    /// How they are encoded.
    pub encoding: Encoding,
    /// The names as the message declares them, decoded but not cleaned; for the scanner, never to be shown.
    pub declared_names: Vec<String>,
}
