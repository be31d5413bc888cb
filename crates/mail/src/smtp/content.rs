//! Message content in transfer: finding the end of DATA, removing dot-stuffing, and buffering within limits.

use bytes::Bytes;
use memchr::memchr2;

use super::{
    Settings,
    budget::Lease,
    reply::{self, Reply},
};

/// The initial buffer of a message.
const FIRST_PIECE: usize = 8 * 1024;

/// Finds the end of DATA and removes dot-stuffing.
#[derive(Debug)]
pub(super) struct DataDecoder(LinePosition);

/// The position of the next byte in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePosition {
    /// At the beginning.
    Start,
    /// After a dot at the beginning.
    Dot,
    /// After such a dot and a CR.
    DotCr,
    /// In the text.
    Text,
    /// After a CR.
    Cr,
}

/// The result of scanning a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataProgress {
    /// The message is not complete.
    More,
    /// The message is complete.
    End,
    /// A CR without its LF, or an LF without its CR.
    BareLineEnd,
}

impl DataDecoder {
    pub(super) fn new() -> Self {
        Self(LinePosition::Start)
    }

    /// Scans bytes, passes those that belong to the message to `keep`, and returns how many were consumed.
    pub(super) fn scan(&mut self, input: &[u8], mut keep: impl FnMut(&[u8])) -> (usize, DataProgress) {
        // Everything from here to `at` belongs to the message and is kept at once.
        let mut run = 0;
        let mut at = 0;
        let mut found = DataProgress::More;
        while let Some(&byte) = input.get(at) {
            self.0 = match (self.0, byte) {
                (LinePosition::Start, b'.') => {
                    keep(input.get(run..at).unwrap_or_default());
                    run = at + 1;
                    LinePosition::Dot
                }
                (LinePosition::Dot, b'\r') => {
                    run = at + 1;
                    LinePosition::DotCr
                }
                (LinePosition::DotCr, b'\n') => {
                    run = at + 1;
                    found = DataProgress::End;
                    LinePosition::Start
                }
                (LinePosition::Cr, b'\n') => LinePosition::Start,
                (LinePosition::DotCr | LinePosition::Cr, _) => {
                    found = DataProgress::BareLineEnd;
                    break;
                }
                (LinePosition::Start | LinePosition::Dot | LinePosition::Text, _) => {
                    let rest = input.get(at..).unwrap_or_default();
                    let Some(text) = memchr2(b'\r', b'\n', rest) else {
                        at = input.len();
                        self.0 = LinePosition::Text;
                        break;
                    };
                    at += text;
                    if rest.get(text) == Some(&b'\n') {
                        found = DataProgress::BareLineEnd;
                        break;
                    }
                    LinePosition::Cr
                }
            };
            at += 1;
            if found == DataProgress::End {
                break;
            }
        }
        keep(input.get(run..at).unwrap_or_default());
        (at, found)
    }
}

/// Checks text content from BDAT for bare CR and LF.
#[derive(Debug, Default)]
pub(super) struct Lines {
    after_cr: bool,
}

impl Lines {
    /// Whether all lines so far end with CRLF.
    pub(super) fn sound(&mut self, mut input: &[u8]) -> bool {
        while let Some(&first) = input.first() {
            if std::mem::take(&mut self.after_cr) {
                if first != b'\n' {
                    return false;
                }
                input = input.get(1..).unwrap_or_default();
                continue;
            }
            let Some(at) = memchr2(b'\r', b'\n', input) else { return true };
            if input.get(at) == Some(&b'\n') {
                return false;
            }
            self.after_cr = true;
            input = input.get(at + 1..).unwrap_or_default();
        }
        true
    }

    /// Whether the content may end here.
    pub(super) fn ended(&self) -> bool {
        !self.after_cr
    }
}

/// A message in transfer, or why it is not kept.
#[derive(Debug)]
pub(super) struct Transfer {
    bytes: Vec<u8>,
    lease: Lease,
    limit: usize,
    refusal: Option<Reply>,
    /// Bytes that have come, kept or not.
    total: usize,
    pub(super) lines: Lines,
}

impl Transfer {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            bytes: Vec::new(),
            lease: settings.budget.lease(),
            limit: settings.max_message_bytes,
            refusal: None,
            total: 0,
            lines: Lines::default(),
        }
    }

    /// Adds bytes, or drops everything when they do not fit.
    pub(super) fn keep(&mut self, piece: &[u8]) {
        self.total = self.total.saturating_add(piece.len());
        if self.refusal.is_none()
            && let Some(refusal) = self.make_room(piece.len())
        {
            self.refuse(refusal);
        }
        if self.refusal.is_none() {
            self.bytes.extend_from_slice(piece);
        }
    }

    /// Grows by doubling, so that a small message takes little and a large one is not copied often.
    fn make_room(&mut self, more: usize) -> Option<Reply> {
        let needed = self.bytes.len().saturating_add(more);
        if needed > self.limit {
            return Some(reply::TOO_LARGE);
        }
        let capacity = self.bytes.capacity();
        if needed <= capacity {
            return None;
        }
        let wanted = capacity.saturating_mul(2).max(FIRST_PIECE).min(self.limit).max(needed);
        let fits = self.lease.grow(wanted - capacity)
            && self.bytes.try_reserve_exact(wanted - self.bytes.len()).is_ok();
        (!fits).then_some(reply::NO_MEMORY)
    }

    /// Drops the content, and keeps nothing more.
    pub(super) fn refuse(&mut self, refusal: Reply) {
        self.bytes = Vec::new();
        self.lease.release();
        self.refusal.get_or_insert(refusal);
    }

    /// Why nothing is kept, if so.
    pub(super) fn refusal(&self) -> Option<&Reply> {
        self.refusal.as_ref()
    }

    /// Bytes that would be stored.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that have come, kept or not.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Whether the client has sent so much unwanted content that the connection should be closed.
    pub(super) fn is_hopeless(&self) -> bool {
        self.total / 2 > self.limit
    }

    /// The whole message with its memory lease, or why it was not kept.
    pub(super) fn finish(self) -> Result<(Bytes, Lease), Reply> {
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => Ok((self.bytes.into(), self.lease)),
        }
    }
}
