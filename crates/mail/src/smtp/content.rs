//! The content of a message on its way in: where it ends, what was added to carry it, and how much of it is kept.

use bytes::Bytes;
use memchr::memchr2;

use super::{
    Settings,
    budget::Lease,
    reply::{self, Reply},
};

/// The first piece of memory for a message; most fit into a few of these.
const FIRST_PIECE: usize = 8 * 1024;

/// Finds the end of DATA and takes away the dots that protect lines beginning with one.
#[derive(Debug)]
pub(super) struct Scanner(Place);

/// Where in a line the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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

/// What a scan came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is more to come.
    More,
    /// The message is complete.
    End,
    /// A CR without its LF, or an LF without its CR.
    BareLineEnd,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self(Place::Start)
    }

    /// Goes through bytes, gives those that belong to the message to `keep`, and tells how many were used up.
    pub(super) fn scan(&mut self, input: &[u8], mut keep: impl FnMut(&[u8])) -> (usize, Found) {
        // Everything from here to `at` belongs to the message and is kept in one go.
        let mut run = 0;
        let mut at = 0;
        let mut found = Found::More;
        while let Some(&byte) = input.get(at) {
            self.0 = match (self.0, byte) {
                (Place::Start, b'.') => {
                    keep(input.get(run..at).unwrap_or_default());
                    run = at + 1;
                    Place::Dot
                }
                (Place::Dot, b'\r') => {
                    run = at + 1;
                    Place::DotCr
                }
                (Place::DotCr, b'\n') => {
                    run = at + 1;
                    found = Found::End;
                    Place::Start
                }
                (Place::Cr, b'\n') => Place::Start,
                (Place::DotCr | Place::Cr, _) => {
                    found = Found::BareLineEnd;
                    break;
                }
                (Place::Start | Place::Dot | Place::Text, _) => {
                    let rest = input.get(at..).unwrap_or_default();
                    let Some(text) = memchr2(b'\r', b'\n', rest) else {
                        at = input.len();
                        self.0 = Place::Text;
                        break;
                    };
                    at += text;
                    if rest.get(text) == Some(&b'\n') {
                        found = Found::BareLineEnd;
                        break;
                    }
                    Place::Cr
                }
            };
            at += 1;
            if found == Found::End {
                break;
            }
        }
        keep(input.get(run..at).unwrap_or_default());
        (at, found)
    }
}

/// Looks for bare CR and LF in content that comes by BDAT and says it is text.
#[derive(Debug, Default)]
pub(super) struct Lines {
    after_cr: bool,
}

impl Lines {
    /// Whether all lines of the next bytes end with CRLF, as far as can be seen.
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

/// A message as far as it has come, or why it is not kept.
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

    /// Adds bytes, or lets go of everything when they do not fit.
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

    /// Lets go of what has come, and keeps nothing more.
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

    /// Whether the client has sent so much in vain that it is better to hang up.
    pub(super) fn is_hopeless(&self) -> bool {
        self.total / 2 > self.limit
    }

    /// The whole message with the memory that is counted for it, or why it was not kept.
    pub(super) fn finish(self) -> Result<(Bytes, Lease), Reply> {
        match self.refusal {
            Some(refusal) => Err(refusal),
            None => Ok((self.bytes.into(), self.lease)),
        }
    }
}
