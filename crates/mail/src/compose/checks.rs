//! Checks for every value of a composed message, in its headers or in those of its parts.
//!
//! They keep one value from becoming two headers.

use super::error::ComposeError;

/// The longest id of a message or a part, without its angle brackets.
pub const MAX_ID_BYTES: usize = 500;

/// Refuses control characters, which could inject a header. `field` names the value in the error.
pub fn check_text(field: &str, value: &str) -> Result<(), ComposeError> {
    match value.chars().find(|character| character.is_control()) {
        Some(character) => Err(ComposeError::Control { field: field.to_owned(), character }),
        None => Ok(()),
    }
}

/// Whether a text is valid between the angle brackets of a Message-ID, References or Content-ID header.
pub fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'))
}
