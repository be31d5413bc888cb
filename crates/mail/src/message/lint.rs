//! Signs in the raw bytes that parsers could read a message differently, whatever its parts are.

use memchr::{memchr, memmem};

use super::faults::{Fault, Faults};
use super::header::line_at;

/// Occurrences of two dashes that are compared with the boundaries; beyond that the walk stops.
pub(super) const MAX_COMPARISONS: usize = 1_000_000;

/// Adds a fault for NUL bytes and for mixed line ends.
pub(super) fn note_bytes(raw: &[u8], faults: &mut Faults) {
    let returns = memchr::memchr_iter(b'\r', raw).count();
    let (mut line_feeds, mut both) = (0, 0);
    for offset in memchr::memchr_iter(b'\n', raw) {
        line_feeds += 1;
        both += usize::from(offset.checked_sub(1).and_then(|before| raw.get(before)) == Some(&b'\r'));
    }
    if memchr(0, raw).is_some() || returns != both || (both != 0 && both != line_feeds) {
        faults.add(Fault::Bytes);
    }
}

/// Adds a fault for what looks like the beginning of a part where the walk found none.
///
/// A parser that repairs a broken or missing boundary would see a part there.
pub(super) fn note_stray_parts(raw: &[u8], delimiters: &[usize], faults: &mut Faults) {
    for (number, found) in memmem::find_iter(raw, b"\n--").enumerate() {
        let offset = found + 1;
        let is_stray = delimiters.binary_search(&offset).is_err() && {
            let (_, next) = line_at(raw, offset);
            looks_like_content_header(raw, next)
        };
        if is_stray || number > MAX_COMPARISONS {
            faults.add(Fault::Boundary);
            return;
        }
    }
}

/// Whether a line is a header that describes a part.
pub(super) fn looks_like_content_header(raw: &[u8], start: usize) -> bool {
    const NAMES: [&[u8]; 3] = [b"content-type", b"content-transfer-encoding", b"content-disposition"];
    let rest = raw.get(start..).unwrap_or_default();
    NAMES.iter().any(|name| {
        let has_name = rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        has_name && rest.get(name.len()..).unwrap_or_default().trim_ascii_start().starts_with(b":")
    })
}
