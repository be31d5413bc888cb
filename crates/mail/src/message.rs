//! Reading a message: its headers, its text, its files, and whether its structure can be trusted.
//!
//! The raw bytes are looked at before any parser sees them, because what arrives is written by strangers: how many
//! headers, how deep the parts are nested, whether two parsers could read it differently. What fails that look is
//! still read as far as is safe, but says so, and is never called clean.

mod automatic;
mod body;
pub mod calendar;
mod charset;
mod date;
mod flowed;
mod header;
mod ids;
mod lint;
mod names;
mod params;
mod people;
mod structure;
mod subject;
#[cfg(test)]
mod tests;
mod transfer;
mod words;

use std::ops::Range;

pub use subject::base_subject;

pub(crate) use names::{is_hidden, shorten};
pub(crate) use subject::leading_mark;
pub(crate) use words::{cut, one_line};

/// The longest subject in characters.
const MAX_SUBJECT: usize = 998;

/// The headers that a message may have once.
const ONCE: [&str; 8] = ["From", "Sender", "To", "Cc", "Reply-To", "Subject", "Date", "MIME-Version"];

/// Reads a message.
///
/// Never fails: what cannot be read is left out, and [`Message::faults`] says why. Linear in the size of `raw`.
pub fn read(raw: &[u8]) -> Message {
    let mut faults = Faults::default();
    lint::note_bytes(raw, &mut faults);
    let structure = structure::walk(raw, &mut faults);
    let mut message = Message { received_lines: count_received(raw), ..Message::default() };
    structure.header.note_repeated(&ONCE, &mut faults);
    fill_headers(raw, &structure.header, &mut faults, &mut message);
    if !structure.stopped {
        message.automatic = automatic::detect(&structure);
        body::fill(raw, &structure, &mut faults, &mut message);
    }
    message.faults = faults.0;
    message
}

/// The bytes of one file of the message `raw`.
pub fn decode(raw: &[u8], file: &File) -> Vec<u8> {
    let content = raw.get(file.place.clone()).unwrap_or_default();
    match file.encoding {
        Encoding::Identity => content.to_vec(),
        Encoding::Base64 => transfer::base64(content),
        Encoding::QuotedPrintable => transfer::quoted_printable(content),
    }
}

/// The address in the From line, if there is one such line with one address to begin with.
pub fn author(raw: &[u8]) -> Option<String> {
    let header = header::read(raw, 0, &mut Faults::default(), &|_| false);
    let mut message = Message::default();
    read_authors(&header, &mut Faults::default(), &mut message);
    message.from.map(|author| author.address)
}

/// A header block without what others claim to have found out about the sender.
pub fn without_verdicts(headers: &str) -> String {
    const VERDICTS: [&str; 3] = ["authentication-results", "arc-authentication-results", "received-spf"];
    let mut kept = String::with_capacity(headers.len());
    let mut dropped = false;
    for line in headers.split_inclusive('\n') {
        if !line.starts_with([' ', '\t']) {
            let name = line.split(':').next().unwrap_or_default().trim();
            dropped = VERDICTS.iter().any(|verdict| name.eq_ignore_ascii_case(verdict));
        }
        if !dropped {
            kept.push_str(line);
        }
    }
    kept
}

/// How many Received lines a message has; looks at its header block only.
pub fn count_received(raw: &[u8]) -> usize {
    header::count_received(raw)
}

/// Fills in what the header block says.
fn fill_headers(raw: &[u8], header: &header::Block<'_>, faults: &mut Faults, message: &mut Message) {
    message.headers = charset::guess(raw.get(header.place.clone()).unwrap_or_default());
    message.message_id = header.first("Message-ID").and_then(ids::first);
    message.in_reply_to = header.first("In-Reply-To").and_then(ids::first);
    message.references = header.first("References").map(ids::references).unwrap_or_default();
    message.subject =
        header.first("Subject").map(|value| words::one_line(&words::decode(value))).unwrap_or_default();
    message.subject = words::cut(std::mem::take(&mut message.subject), MAX_SUBJECT);
    message.date = header.first("Date").and_then(date::read);
    let people = |name: &str| header.first(name).map(people::read).unwrap_or_default();
    message.to = people("To").list;
    message.cc = people("Cc").list;
    message.reply_to = people("Reply-To").list;
    read_authors(header, faults, message);
}

fn read_authors(header: &header::Block<'_>, faults: &mut Faults, message: &mut Message) {
    let authors = header.first("From").map(people::read).unwrap_or_default();
    message.authors = authors.list.len();
    if authors.ambiguous {
        faults.add(Fault::RepeatedHeader);
    } else if header.all("From").nth(1).is_none() {
        message.from = authors.list.into_iter().next();
    }
}

/// Faults as they are found, each once.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, fault: Fault) {
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }
}

/// What was read from the bytes of a message.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// What is wrong with the structure; empty when every parser reads it the same way.
    pub faults: Vec<Fault>,
    /// The header block as text, with a replacement character for bytes that are none.
    pub headers: String,
    /// The Message-ID without its angle brackets.
    pub message_id: Option<String>,
    /// The first id of In-Reply-To.
    pub in_reply_to: Option<String>,
    /// The ids of References, oldest first, at most 50.
    pub references: Vec<String>,
    /// Who wrote it; nothing when there is no readable author, or more than one From line.
    pub from: Option<Person>,
    /// How many readable addresses the first From line has: more than one cannot be vouched for.
    pub authors: usize,
    /// To whom it is written.
    pub to: Vec<Person>,
    /// Who gets a copy.
    pub cc: Vec<Person>,
    /// Where answers should go.
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
    /// Parts that are neither shown nor listed: those of attached messages, and alternatives that nobody sees. They
    /// are only there to be scanned.
    pub inner: Vec<File>,
    /// What kind of automatic mail it is, if it is one.
    pub automatic: Option<Automatic>,
    /// How many Received lines it has.
    pub received_lines: usize,
}

/// Why a message cannot be read in one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// More header bytes or lines than are read.
    HeadersTooLarge,
    /// Parts or attached messages nested deeper than is read, or more of them.
    NestedTooDeep,
    /// A header name with characters that no name has.
    HeaderName,
    /// A header that may stand once stands twice.
    RepeatedHeader,
    /// A boundary that is missing, empty, repeated, or found where none should be.
    Boundary,
    /// A transfer encoding that is unknown, forbidden where it stands, or broken.
    Encoding,
    /// NUL bytes, or line ends of more than one kind.
    Bytes,
    /// Decoding would give more than the message may hold.
    TooMuchContent,
    /// Two ways of reading found different parts.
    Disagreement,
}

/// A person in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The display name, decoded.
    pub name: Option<String>,
    /// The address as it stands there, an international domain in its ASCII form.
    pub address: String,
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
    /// Where the encoded bytes stand in the message.
    pub place: Range<usize>,
    /// How they are encoded.
    pub encoding: Encoding,
    /// The names as the message declares them, decoded but not cleaned; for the scanner, never to be shown.
    pub declared_names: Vec<String>,
}

/// A transfer encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is: 7bit, 8bit or binary.
    Identity,
    /// Base64.
    Base64,
    /// Quoted-printable.
    QuotedPrintable,
}

/// Kinds of mail that no person wrote, and that nothing may answer by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automatic {
    /// A report about the delivery of another mail (RFC 3464).
    DeliveryReport,
    /// A complaint about another mail (RFC 5965).
    Complaint,
    /// An answer that a program gave (RFC 3834).
    Reply,
    /// Sent by a program: notices, receipts, codes.
    Generated,
    /// From a mailing list, or bulk mail.
    List,
}
