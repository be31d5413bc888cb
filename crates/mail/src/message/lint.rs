//! Signs in the raw bytes that programs could read a message differently, whatever its parts are.

use memchr::{memchr, memmem};

use super::faults::{Fault, Faults};
use super::header::line_at;

/// How many places with two dashes are compared with the boundaries; a mail with more of them is not read on.
pub(super) const MAX_COMPARISONS: usize = 1_000_000;

/// Notes NUL bytes and line ends of more than one kind.
pub(super) fn note_bytes(raw: &[u8], faults: &mut Faults) {
    let returns = memchr::memchr_iter(b'\r', raw).count();
    let (mut line_feeds, mut both) = (0, 0);
    for place in memchr::memchr_iter(b'\n', raw) {
        line_feeds += 1;
        both += usize::from(place.checked_sub(1).and_then(|before| raw.get(before)) == Some(&b'\r'));
    }
    if memchr(0, raw).is_some() || returns != both || (both != 0 && both != line_feeds) {
        faults.add(Fault::Bytes);
    }
}

/// Notes what looks like the beginning of a part, but stands where the walk found none.
///
/// A reader that repairs a broken boundary, or guesses one that is missing, would see a part there.
pub(super) fn note_stray_parts(raw: &[u8], delimiters: &[usize], faults: &mut Faults) {
    for (number, found) in memmem::find_iter(raw, b"\n--").enumerate() {
        let place = found + 1;
        let is_stray = delimiters.binary_search(&place).is_err() && {
            let (_, next) = line_at(raw, place);
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
