//! What a value must be like wherever in a mail it stands: in the headers of the mail or in those of its parts.
//!
//! These are the checks that keep one value from becoming two headers.

use super::error::ComposeError;

/// The longest id of a message or a part, without its angle brackets.
pub const MAX_ID_BYTES: usize = 500;

/// Refuses control characters, which could end a header and begin another. `field` names the value to its sender.
pub fn check_text(field: &str, value: &str) -> Result<(), ComposeError> {
    match value.chars().find(|character| character.is_control()) {
        Some(character) => Err(ComposeError::Control { field: field.to_owned(), character }),
        None => Ok(()),
    }
}

/// Whether a text can stand between the angle brackets of a Message-ID, References or Content-ID header.
pub fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>'))
}
