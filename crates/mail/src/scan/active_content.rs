//! Active documents: HTML and SVG with scripts, PDFs with actions.

use std::io::Read;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use super::html::{Piece, Pieces};

/// Compressed objects of a PDF that are inflated, and how far.
const MAX_OBJECTS: usize = 200;
const MAX_OBJECT: u64 = 256 * 1024;

/// Names in a PDF that run something.
const ACTIONS: [&[u8]; 3] = [b"/JavaScript", b"/JS", b"/Launch"];

/// Whether a page or drawing runs scripts.
pub(super) fn page_runs_scripts(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    Pieces::new(&text).any(|piece| match piece {
        Piece::Open(tag) => {
            let runs = matches!(tag.name.as_str(), "script" | "svg:script" | "object" | "embed" | "applet");
            runs || tag.attributes.iter().any(|(name, value)| {
                let is_handler = name.len() > 4
                    && name.starts_with("on")
                    && name.bytes().all(|byte| byte.is_ascii_alphabetic());
                let compact: String = value
                    .chars()
                    .filter(|c| !c.is_whitespace() && !c.is_control())
                    .take(12)
                    .collect::<String>()
                    .to_lowercase();
                is_handler
                    || compact.starts_with("javascript:")
                    || (name == "srcdoc" && value.contains("script"))
            })
        }
        Piece::Close(_) | Piece::Text(_) => false,
    })
}

/// Whether a PDF runs scripts or programs, also where its objects are compressed.
pub(super) fn pdf_runs(bytes: &[u8]) -> bool {
    if has_action(bytes) {
        return true;
    }
    let mut objects = 0;
    for place in memmem::find_iter(bytes, b"/ObjStm") {
        objects += 1;
        if objects > MAX_OBJECTS {
            return true;
        }
        let rest = bytes.get(place..).unwrap_or_default();
        let head = rest.get(..rest.len().min(2000)).unwrap_or_default();
        let Some(start) = memmem::find(head, b"stream") else { continue };
        let data = rest.get(start + 6..).unwrap_or_default().trim_ascii_start();
        let mut inflated = Vec::new();
        // A damaged object is checked as far as it can be inflated.
        let _ended = ZlibDecoder::new(data).take(MAX_OBJECT).read_to_end(&mut inflated);
        if has_action(&inflated) {
            return true;
        }
    }
    false
}

/// Whether the bytes contain one of the names, also with characters written as `#41`.
fn has_action(bytes: &[u8]) -> bool {
    let plain = if memchr::memchr(b'#', bytes).is_some() { resolve(bytes) } else { bytes.to_vec() };
    ACTIONS.iter().any(|action| {
        memmem::find_iter(&plain, action)
            .any(|place| plain.get(place + action.len()).is_none_or(|next| !next.is_ascii_alphanumeric()))
    })
}

/// Resolves `#41` in names.
fn resolve(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        let digits = bytes.get(position + 1..position + 3).filter(|digits| byte == b'#' && digits.is_ascii());
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.unwrap_or(byte));
        position += if code.is_some() { 3 } else { 1 };
    }
    plain
}
