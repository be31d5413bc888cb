//! Message ids: the values in angle brackets in Message-ID, In-Reply-To, References and Content-ID.

/// The longest id.
const MAX_ID: usize = 500;

/// The most ids of References that are kept.
const MAX_REFERENCES: usize = 50;

/// The first id of a header; without angle brackets, the whole value if it is one word.
pub(super) fn first(value: &[u8]) -> Option<String> {
    bracketed(value).next().or_else(|| {
        if value.contains(&b'<') {
            return None;
        }
        check(value)
    })
}

/// The ids of References: the first, which names the thread, and the last ones.
pub(super) fn references(value: &[u8]) -> Vec<String> {
    let mut ids: Vec<String> = bracketed(value).collect();
    if ids.is_empty() {
        ids = value.split(u8::is_ascii_whitespace).filter_map(check).filter(|id| id.contains('@')).collect();
    }
    if ids.len() > MAX_REFERENCES {
        ids.drain(1..=ids.len() - MAX_REFERENCES);
    }
    ids
}

/// Every readable id in angle brackets.
fn bracketed(value: &[u8]) -> impl Iterator<Item = String> + '_ {
    value.split(|&byte| byte == b'>').filter_map(|piece| {
        let start = memchr::memrchr(b'<', piece)?;
        check(piece.get(start + 1..)?)
    })
}

/// An id as text, if it is short, of one word and readable.
fn check(id: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(id.trim_ascii()).ok()?;
    let is_sound =
        !id.is_empty() && id.len() <= MAX_ID && !id.contains(|c: char| c.is_whitespace() || c.is_control());
    is_sound.then(|| id.to_owned())
}
