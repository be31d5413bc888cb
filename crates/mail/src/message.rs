//! Reading a message: its headers, its text, its files, and whether its structure can be trusted.
//!
//! The raw bytes are looked at before any parser sees them, because what arrives is written by strangers: how many
//! headers, how deep the parts are nested, whether two parsers could read it differently. What fails that look is
//! still read as far as is safe, but says so, and is never called clean.

mod automatic;
mod body;
pub mod calendar;
mod charset;
mod contents;
mod date;
mod faults;
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

use faults::Faults;

pub use automatic::Automatic;
pub use contents::{File, Message};
pub use faults::Fault;
pub use people::Person;
pub use subject::base_subject;
pub use transfer::Encoding;

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
