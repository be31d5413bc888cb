//! Parsing a message: its headers, its text, its files, and whether its structure can be trusted.
//!
//! The raw bytes are checked before any parser sees them, because they come from untrusted senders: the number of
//! headers, the nesting of parts, whether two parsers could read it differently. A message that fails these checks is
//! still parsed as far as is safe, but has faults, and is never called clean.

mod address_list;
mod automatic;
mod body;
pub mod calendar;
mod charset;
mod contents;
mod date;
mod encoded_words;
mod faults;
mod file_names;
mod flowed;
mod header;
mod ids;
mod lint;
mod parameters;
mod structure;
mod subject;
#[cfg(test)]
mod tests;
mod transfer;

use faults::Faults;

pub use address_list::Person;
pub use automatic::Automatic;
pub use contents::{File, Message};
pub use faults::Fault;
pub use subject::base_subject;
pub use transfer::Encoding;

pub(crate) use encoded_words::{cut, one_line};
pub(crate) use file_names::{is_hidden, shorten};
pub(crate) use subject::leading_prefix;

/// The longest subject in characters.
const MAX_SUBJECT: usize = 998;

/// The headers that may occur once.
const SINGLE_HEADERS: [&str; 8] =
    ["From", "Sender", "To", "Cc", "Reply-To", "Subject", "Date", "MIME-Version"];

/// Reads a message.
///
/// Never fails: what cannot be read is left out, and [`Message::faults`] says why. Linear in the size of `raw`.
pub fn read(raw: &[u8]) -> Message {
    let mut faults = Faults::default();
    lint::note_bytes(raw, &mut faults);
    let structure = structure::walk(raw, &mut faults);
    let mut message = Message { received_lines: count_received(raw), ..Message::default() };
    structure.header.note_repeated(&SINGLE_HEADERS, &mut faults);
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
    let content = raw.get(file.range.clone()).unwrap_or_default();
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

/// A header block without other servers' authentication results.
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

/// The number of Received lines; reads the header block only.
pub fn count_received(raw: &[u8]) -> usize {
    header::count_received(raw)
}

/// Fills in what the header block says.
fn fill_headers(raw: &[u8], header: &header::Block<'_>, faults: &mut Faults, message: &mut Message) {
    message.headers = charset::guess(raw.get(header.range.clone()).unwrap_or_default());
    message.message_id = header.first("Message-ID").and_then(ids::first);
    message.in_reply_to = header.first("In-Reply-To").and_then(ids::first);
    message.references = header.first("References").map(ids::references).unwrap_or_default();
    message.subject = header
        .first("Subject")
        .map(|value| encoded_words::one_line(&encoded_words::decode(value)))
        .unwrap_or_default();
    message.subject = encoded_words::cut(std::mem::take(&mut message.subject), MAX_SUBJECT);
    message.date = header.first("Date").and_then(date::read);
    let people = |name: &str| header.first(name).map(address_list::read).unwrap_or_default();
    message.to = people("To").list;
    message.cc = people("Cc").list;
    message.reply_to = people("Reply-To").list;
    read_authors(header, faults, message);
}

fn read_authors(header: &header::Block<'_>, faults: &mut Faults, message: &mut Message) {
    let authors = header.first("From").map(address_list::read).unwrap_or_default();
    message.authors = authors.list.len();
    if authors.ambiguous {
        faults.add(Fault::RepeatedHeader);
    } else if header.all("From").nth(1).is_none() {
        message.from = authors.list.into_iter().next();
    }
}
