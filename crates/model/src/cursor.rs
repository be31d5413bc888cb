//! Cursors as text: bounded, and safe in a URL. What they say is sealed, and only who sealed it can read it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The longest cursor that is looked at.
pub const MAX_CURSOR_CHARS: usize = 2048;

/// Writes the sealed bytes of a cursor.
pub fn to_text(sealed: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(sealed)
}

/// Reads the sealed bytes of a cursor; nothing when it cannot be one.
pub fn from_text(cursor: &str) -> Option<Vec<u8>> {
    if cursor.len() > MAX_CURSOR_CHARS {
        return None;
    }
    URL_SAFE_NO_PAD.decode(cursor).ok()
}
