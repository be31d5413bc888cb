//! Header blocks: splitting the lines of one entity into fields, and refusing names that parsers read differently.
//!
//! Senders are forged where a verifier and a mail client disagree about which line is `From`, so a name is either
//! exactly as the standard says or its line does not count.

use std::ops::Range;

use memchr::memchr;

use super::faults::{Fault, Faults};

/// The most bytes of one header block that are read.
pub(super) const MAX_BYTES: usize = 100 * 1024;

/// The most lines of one header block that are read.
pub(super) const MAX_LINES: usize = 1000;

/// One header field.
pub(super) struct Field<'a> {
    /// The name as written.
    pub(super) name: &'a [u8],
    /// Everything behind the colon, folds included.
    pub(super) value: &'a [u8],
}

/// The header block of one entity.
pub(super) struct Block<'a> {
    /// The fields in their order.
    pub(super) fields: Vec<Field<'a>>,
    /// The range of the block in the message, without the empty line.
    pub(super) range: Range<usize>,
    /// Where the body begins.
    pub(super) body: usize,
    /// Whether the block went on beyond what is read.
    pub(super) too_large: bool,
}

impl<'a> Block<'a> {
    /// The value of the first field of that name.
    pub(super) fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// The values of all fields of that name.
    pub(super) fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a [u8]> + 'b {
        let wanted = name.as_bytes();
        self.fields
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(wanted))
            .map(|field| field.value)
    }

    /// Whether a field of that name is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// The first value of that name, unfolded, trimmed and in lower case.
    pub(super) fn lower(&self, name: &str) -> Option<String> {
        self.first(name)
            .map(|value| super::encoded_words::one_line(&super::encoded_words::plain(value)).to_lowercase())
    }

    /// Adds a fault for every repeated name of the list.
    pub(super) fn note_repeated(&self, names: &[&str], faults: &mut Faults) {
        if names.iter().any(|name| self.all(name).nth(1).is_some()) {
            faults.add(Fault::RepeatedHeader);
        }
    }
}

/// The line that begins at `start`, without its end, and where the next one begins.
pub(super) fn line_at(raw: &[u8], start: usize) -> (&[u8], usize) {
    let rest = raw.get(start..).unwrap_or_default();
    let (line, next) = match memchr(b'\n', rest) {
        Some(end) => (rest.get(..end).unwrap_or_default(), start + end + 1),
        None => (rest, raw.len()),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), next)
}

/// Reads the header block that begins at `start`; a line for which `ends_part` holds ends the whole entity.
pub(super) fn read<'a>(
    raw: &'a [u8],
    start: usize,
    faults: &mut Faults,
    ends_part: &dyn Fn(&[u8]) -> bool,
) -> Block<'a> {
    let mut reader = Reader { raw, fields: Vec::new(), open: None };
    let mut position = start;
    let mut lines = 0;
    let mut too_large = false;
    let mut body = raw.len();
    let mut end = raw.len();
    while position < raw.len() {
        let (line, next) = line_at(raw, position);
        if line.is_empty() {
            (end, body) = (position, next);
            break;
        }
        lines += 1;
        too_large = lines > MAX_LINES || next - start > MAX_BYTES;
        if too_large {
            faults.add(Fault::HeadersTooLarge);
            (end, body) = (position, position);
            break;
        }
        if ends_part(line) {
            faults.add(Fault::Boundary);
            (end, body) = (position, position);
            break;
        }
        if !reader.take(line, position, faults) {
            (end, body) = (position, position);
            break;
        }
        position = next;
    }
    reader.finish();
    Block { fields: reader.fields, range: start..end, body, too_large }
}

/// The fields read so far, and the one that the next line may continue.
struct Reader<'a> {
    raw: &'a [u8],
    fields: Vec<Field<'a>>,
    open: Option<(Range<usize>, Range<usize>)>,
}

impl Reader<'_> {
    /// Adds one line; false when it is no header line and so begins the body.
    fn take(&mut self, line: &[u8], position: usize, faults: &mut Faults) -> bool {
        let end = position + line.len();
        if matches!(line.first(), Some(b' ' | b'\t')) {
            let hides_header =
                line.trim_ascii_start().get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"))
                    && line.contains(&b':');
            match &mut self.open {
                Some((_, value)) if !hides_header => value.end = end,
                _ => faults.add(Fault::HeaderName),
            }
            return true;
        }
        self.finish();
        if position == 0 && is_envelope_line(line) {
            return true;
        }
        let Some(colon) = memchr(b':', line) else {
            faults.add(Fault::HeaderName);
            return false;
        };
        let name = line.get(..colon).unwrap_or_default();
        if !name.is_empty() && name.iter().all(|byte| matches!(byte, b'!'..=b'9' | b';'..=b'~')) {
            self.open = Some((position..position + colon, position + colon + 1..end));
        } else {
            faults.add(Fault::HeaderName);
        }
        true
    }

    /// Keeps the field that was open.
    fn finish(&mut self) {
        if let Some((name, value)) = self.open.take() {
            let name = self.raw.get(name).unwrap_or_default();
            let value = self.raw.get(value).unwrap_or_default();
            self.fields.push(Field { name, value });
        }
    }
}

/// Whether a line is the separator of an mbox file, `From name@host Sat Jan  3 01:05:34 1996`, which is no header.
fn is_envelope_line(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    line.starts_with(b"From ")
        && words.nth(1).is_some_and(|sender| !sender.ends_with(b":"))
        && words.count() >= 4
}

/// How many Received lines the header block of a message has.
pub(super) fn count_received(raw: &[u8]) -> usize {
    const NAME: &[u8] = b"received";
    let mut count = 0;
    let mut position = 0;
    while position < raw.len() {
        let (line, next) = line_at(raw, position);
        if line.is_empty() {
            break;
        }
        let is_name = line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
        let rest = line.get(NAME.len()..).unwrap_or_default().trim_ascii_start();
        if is_name && rest.first() == Some(&b':') {
            count += 1;
        }
        position = next;
    }
    count
}
