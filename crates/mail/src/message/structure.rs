//! The MIME structure of a message: one pass over its lines, strict where parsers differ.
//!
//! The walk keeps the open boundaries and checks every occurrence of two dashes once, so its cost does not grow with
//! the depth. Whatever two parsers could split differently is a fault; the walk then follows the standard, so that a
//! slightly broken message can be read.

use std::ops::Range;

use memchr::memmem;

use super::encoded_words;
use super::faults::{Fault, Faults};
use super::header::{self, Block, line_at};
use super::lint::{self, MAX_COMPARISONS};
use super::parameters::Parameters;
use super::transfer::Encoding;

/// The most levels of parts.
const MAX_LEVELS: usize = 100;

/// The most levels of messages in messages.
const MAX_MESSAGES: usize = 32;

/// The most parts.
const MAX_PARTS: usize = 1000;

/// The longest boundary (RFC 2046, section 5.1.1).
const MAX_BOUNDARY: usize = 70;

/// One part: a leaf, a multipart or an attached message.
#[derive(Debug)]
pub(super) struct Part {
    /// The multipart or message that contains it.
    pub(super) parent: Option<usize>,
    /// The declared or implied media type, in lower case.
    pub(super) media_type: String,
    /// The parameters of the Content-Type.
    pub(super) parameters: Parameters,
    /// The Content-Disposition.
    pub(super) disposition: Option<Parameters>,
    /// The Content-ID without its angle brackets.
    pub(super) content_id: Option<String>,
    /// How the content is encoded.
    pub(super) encoding: Encoding,
    /// The range of the content.
    pub(super) range: Range<usize>,
    /// What its content is made of.
    pub(super) kind: Kind,
    /// The subject of the message that this part's header block belongs to.
    pub(super) subject: Option<String>,
}

/// What the content of a part is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes.
    Leaf,
    /// Parts.
    Multipart,
    /// One message.
    Message,
}

/// Everything that the walk found.
pub(super) struct Structure<'a> {
    /// The header block of the message itself.
    pub(super) header: Block<'a>,
    /// The parts in the order in which they begin.
    pub(super) parts: Vec<Part>,
    /// Whether the limits stopped the walk, so that the parts are not all of them.
    pub(super) stopped: bool,
}

/// Walks through a message.
pub(super) fn walk<'a>(raw: &'a [u8], faults: &mut Faults) -> Structure<'a> {
    let mut walk = Walk {
        raw,
        faults,
        parts: Vec::new(),
        open: Vec::new(),
        boundaries: Vec::new(),
        prefixes: false,
        leading_dashes: 0,
        delimiters: Vec::new(),
        comparisons: 0,
    };
    let header = header::read(raw, 0, walk.faults, &|_| false);
    let mut position = header.body;
    let mut going_on = !header.too_large && walk.begin(&header, None);
    if going_on && walk.expects_message() {
        (position, going_on) = walk.begin_at(position);
    }
    let dashes = memmem::Finder::new(b"--");
    while going_on && !walk.boundaries.is_empty() {
        let Some(found) = raw.get(position..).and_then(|rest| dashes.find(rest)) else { break };
        (position, going_on) = walk.check_dashes(position + found);
    }
    if going_on {
        lint::note_stray_parts(raw, &walk.delimiters, walk.faults);
        walk.close_above(0, raw.len());
        walk.close_root(raw.len());
    }
    Structure { header, parts: walk.parts, stopped: !going_on }
}

/// A part that is not closed yet.
struct OpenPart {
    part: usize,
    /// Whether it is a multipart, and its last delimiter has not come.
    unfinished: bool,
}

/// A line that separates parts.
struct Delimiter {
    /// The index in the open parts of the multipart that it separates.
    level: usize,
    /// Whether it is the last one.
    last: bool,
}

struct Walk<'a, 'f> {
    raw: &'a [u8],
    faults: &'f mut Faults,
    parts: Vec<Part>,
    open: Vec<OpenPart>,
    /// The open boundaries in order, each with its level.
    boundaries: Vec<(Vec<u8>, usize)>,
    /// Whether one of them was a prefix of another; an old mail program does that.
    prefixes: bool,
    /// Offsets of the delimiters so far.
    delimiters: Vec<usize>,
    /// The most dashes with which a boundary began so far.
    leading_dashes: usize,
    comparisons: usize,
}

impl<'a> Walk<'a, '_> {
    /// Begins the part whose header block was read; false when the limits are reached.
    fn begin(&mut self, block: &Block<'a>, parent: Option<usize>) -> bool {
        let part = self.describe(block, parent);
        let messages = self.open.iter().filter(|open| self.kind(open.part) == Some(Kind::Message)).count();
        let is_message = part.kind == Kind::Message;
        if self.parts.len() >= MAX_PARTS
            || self.open.len() >= MAX_LEVELS
            || (is_message && messages >= MAX_MESSAGES)
        {
            self.faults.add(Fault::NestedTooDeep);
            return false;
        }
        // The content of these types may begin with headers of its own.
        let may_begin_so =
            part.media_type.starts_with("message/") || part.media_type == "text/rfc822-headers";
        if !may_begin_so && lint::looks_like_content_header(self.raw, block.body) {
            // A stray empty line: some parsers read what follows as headers.
            self.faults.add(Fault::HeaderName);
        }
        let unfinished = part.kind == Kind::Multipart;
        self.parts.push(part);
        self.open.push(OpenPart { part: self.parts.len() - 1, unfinished });
        true
    }

    /// Reads the header block at `position` and begins its part, and the messages directly in it.
    fn begin_at(&mut self, mut position: usize) -> (usize, bool) {
        loop {
            let parent = self.open.last().map(|open| open.part);
            let (boundaries, prefixes) = (&self.boundaries, self.prefixes);
            let block =
                header::read(self.raw, position, self.faults, &|line| ends_part(boundaries, prefixes, line));
            position = block.body;
            if block.too_large || !self.begin(&block, parent) {
                return (position, false);
            }
            if !self.expects_message() {
                return (position, true);
            }
        }
    }

    /// Whether the part begun last is a message, whose own header block follows.
    fn expects_message(&self) -> bool {
        self.open.last().is_some_and(|open| self.kind(open.part) == Some(Kind::Message))
    }

    fn kind(&self, part: usize) -> Option<Kind> {
        self.parts.get(part).map(|part| part.kind)
    }

    /// Ends the part before a delimiter and begins the next one.
    fn split(&mut self, delimiter: &Delimiter, start: usize, next: usize) -> (usize, bool) {
        let before = self.raw.get(..start).unwrap_or_default();
        let before = before.strip_suffix(b"\n").unwrap_or(before);
        let end = before.strip_suffix(b"\r").unwrap_or(before).len();
        self.close_above(delimiter.level, end);
        let Some(multipart) = self.open.get_mut(delimiter.level) else { return (next, true) };
        if !multipart.unfinished {
            // Parts after the last delimiter: some clients show them, others do not.
            self.faults.add(Fault::Boundary);
            return (next, true);
        }
        if delimiter.last {
            multipart.unfinished = false;
            return (next, true);
        }
        self.begin_at(next)
    }

    /// Ends every part that is open above a level.
    fn close_above(&mut self, level: usize, end: usize) {
        for open in self.open.drain((level + 1).min(self.open.len())..) {
            if open.unfinished {
                self.faults.add(Fault::Boundary);
            }
            if let Some(part) = self.parts.get_mut(open.part) {
                part.range.end = end.max(part.range.start);
            }
        }
        self.boundaries.retain(|(_, of)| *of <= level);
    }

    /// Ends the message itself.
    fn close_root(&mut self, end: usize) {
        if let (Some(open), Some(root)) = (self.open.pop(), self.parts.first_mut()) {
            root.range.end = end.max(root.range.start);
            if open.unfinished {
                self.faults.add(Fault::Boundary);
            }
        }
    }

    /// Checks the next two dashes; returns where to continue, and false when there were too many of them.
    fn check_dashes(&mut self, offset: usize) -> (usize, bool) {
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            self.faults.add(Fault::Boundary);
            return (offset, false);
        }
        let is_line_start = offset == 0 || self.raw.get(offset - 1) == Some(&b'\n');
        if !is_line_start {
            let rest = self.raw.get(offset + 2..).unwrap_or_default();
            if find_boundary(&self.boundaries, self.prefixes, rest).is_some() {
                // Some parsers accept a boundary in the middle of a line as a delimiter.
                self.faults.add(Fault::Boundary);
            }
            return (self.behind_dashes(offset), true);
        }
        let (line, next) = line_at(self.raw, offset);
        match self.delimiter(line) {
            Some(delimiter) => {
                self.delimiters.push(offset);
                self.split(&delimiter, offset, next)
            }
            None => (self.behind_dashes(offset), true),
        }
    }

    /// Where to compare next: of a long row of dashes, only the end can belong to a boundary.
    fn behind_dashes(&self, offset: usize) -> usize {
        let rest = self.raw.get(offset..).unwrap_or_default();
        let row = rest.iter().take_while(|byte| **byte == b'-').count();
        offset + row.saturating_sub(self.leading_dashes + 2).max(1)
    }

    /// Which delimiter a line that begins with two dashes is, if it is one.
    fn delimiter(&mut self, line: &[u8]) -> Option<Delimiter> {
        let rest = line.get(2..)?;
        let (boundary, level) = find_boundary(&self.boundaries, self.prefixes, rest)?;
        let behind = rest.get(boundary.len()..).unwrap_or_default();
        let level = *level;
        if is_blank(behind) {
            return Some(Delimiter { level, last: false });
        }
        let padding = behind.strip_prefix(b"--");
        if !padding.is_some_and(is_blank) {
            self.faults.add(Fault::Boundary);
        }
        padding.map(|_| Delimiter { level, last: true })
    }

    /// Makes a part of a header block, and opens its boundary if it is a multipart.
    fn describe(&mut self, block: &Block<'a>, parent: Option<usize>) -> Part {
        block.note_repeated(
            &["Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Content-ID"],
            self.faults,
        );
        let parameters = block.first("Content-Type").map(Parameters::read).unwrap_or_default();
        let in_digest = parent
            .and_then(|parent| self.parts.get(parent))
            .is_some_and(|parent| parent.media_type == "multipart/digest");
        let media_type = media_type(&parameters, block.has("Content-Type"), in_digest, self.faults);
        let encoding = transfer_encoding(block, self.faults);
        let kind = self.kind_of(&media_type, encoding, &parameters, block);
        Part {
            parent,
            media_type,
            parameters,
            disposition: block.first("Content-Disposition").map(Parameters::read),
            content_id: block.first("Content-ID").and_then(super::ids::first),
            encoding,
            range: block.body..block.body,
            kind,
            subject: block.first("Subject").map(|value| {
                encoded_words::one_line(&encoded_words::decode(value.get(..2048).unwrap_or(value)))
            }),
        }
    }

    /// What the content of a part is made of, by its type.
    fn kind_of(
        &mut self,
        media_type: &str,
        encoding: Encoding,
        parameters: &Parameters,
        block: &Block<'a>,
    ) -> Kind {
        let is_multipart = media_type.starts_with("multipart/");
        let is_message = matches!(media_type, "message/rfc822" | "message/global");
        if media_type == "message/partial" || ((is_multipart || is_message) && encoding != Encoding::Identity)
        {
            // Only some clients reassemble partial messages, or decode here, and so see what others do not.
            self.faults.add(Fault::Encoding);
        }
        if is_multipart {
            let is_open = self.open_boundary(parameters);
            return if is_open { Kind::Multipart } else { Kind::Leaf };
        }
        let has_block = block.body < self.raw.len();
        if is_message && encoding == Encoding::Identity && has_block { Kind::Message } else { Kind::Leaf }
    }

    /// Opens the boundary of a multipart; false when there is none that could be used.
    fn open_boundary(&mut self, parameters: &Parameters) -> bool {
        let boundary = parameters.bytes("boundary").unwrap_or_default();
        let is_odd = boundary.len() > MAX_BOUNDARY
            || boundary.last() == Some(&b' ')
            || !boundary.iter().all(|byte| matches!(byte, b' '..=b'~'))
            || parameters.count("boundary") != 1
            || parameters.is_extended("boundary")
            || parameters.malformed;
        let boundary = boundary.trim_ascii_end();
        let is_open = self.boundaries.iter().any(|(open, _)| open == boundary);
        let extends =
            self.boundaries.iter().any(|(open, _)| open.starts_with(boundary) || boundary.starts_with(open));
        if is_odd || extends || boundary.is_empty() {
            self.faults.add(Fault::Boundary);
        }
        if is_open || boundary.is_empty() {
            return false;
        }
        self.prefixes |= extends;
        let leading_dashes = boundary.iter().take_while(|byte| **byte == b'-').count();
        self.leading_dashes = self.leading_dashes.max(leading_dashes);
        let index = self.boundaries.partition_point(|(open, _)| open.as_slice() < boundary);
        self.boundaries.insert(index, (boundary.to_vec(), self.open.len()));
        true
    }
}

/// The longest open boundary with which a text begins.
///
/// Unless one is a prefix of another, only the greatest boundary that sorts before the text can match.
fn find_boundary<'b>(
    boundaries: &'b [(Vec<u8>, usize)],
    prefixes: bool,
    text: &[u8],
) -> Option<&'b (Vec<u8>, usize)> {
    let index = boundaries.partition_point(|(boundary, _)| boundary.as_slice() <= text);
    let before = boundaries.get(..index)?;
    let most = if prefixes { before.len() } else { 1 };
    before.iter().rev().take(most).find(|(boundary, _)| text.starts_with(boundary))
}

/// Whether a line within a header block is a delimiter.
fn ends_part(boundaries: &[(Vec<u8>, usize)], prefixes: bool, line: &[u8]) -> bool {
    line.strip_prefix(b"--").and_then(|rest| find_boundary(boundaries, prefixes, rest)).is_some()
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The media type that a part counts as.
fn media_type(parameters: &Parameters, is_declared: bool, in_digest: bool, faults: &mut Faults) -> String {
    let default = if in_digest { "message/rfc822" } else { "text/plain" };
    if !is_declared {
        return default.to_owned();
    }
    let declared = parameters.value.as_str();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte))
    };
    if declared.len() <= 127
        && declared.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
    {
        return declared.to_owned();
    }
    if !declared.is_empty() && declared != "text" {
        faults.add(Fault::Disagreement);
    }
    let first = declared.split([' ', ',']).next().unwrap_or_default();
    match first.split_once('/') {
        Some((kind, sub)) if is_token(kind) && is_token(sub) && first.len() <= 127 => first.to_owned(),
        _ if declared.is_empty() || first == "text" => "text/plain".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

/// The transfer encoding of a part.
fn transfer_encoding(block: &Block<'_>, faults: &mut Faults) -> Encoding {
    let Some(value) = block.lower("Content-Transfer-Encoding") else { return Encoding::Identity };
    match value.as_str() {
        "7bit" | "8bit" | "binary" | "7-bit" | "8-bit" | "" => Encoding::Identity,
        "base64" => Encoding::Base64,
        "quoted-printable" => Encoding::QuotedPrintable,
        other => {
            faults.add(Fault::Encoding);
            // Most parsers look for a keyword they know.
            if other.contains("base64") {
                Encoding::Base64
            } else if other.contains("quoted-printable") {
                Encoding::QuotedPrintable
            } else {
                Encoding::Identity
            }
        }
    }
}
