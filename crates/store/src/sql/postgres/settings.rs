//! The workspace that a transaction's statements may touch: the setting that row-level security compares with.
//!
//! Each transaction sets it for itself, together with BEGIN. A pooled connection, ours or one behind a pooler, keeps
//! nothing of it for the next user.

use crate::error::{Error, Result};

/// The statements that begin a transaction of a workspace, or of all.
pub(super) fn begin(begin: &str, setting: &str) -> Result<String> {
    // A literal, because SET takes no parameters; and SET LOCAL, because proxies and distributed databases forward it.
    let is_literal =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'*' | b':' | b'@');
    if !setting.bytes().all(is_literal) {
        return Err(Error::Internal("not the id of a workspace".into()));
    }
    Ok(format!("{begin}; SET LOCAL mailbox.workspace = '{setting}'"))
}

#[cfg(test)]
mod tests {
    use super::begin;

    #[test]
    fn only_an_id_is_written_into_a_statement() {
        assert_eq!(begin("BEGIN", "ws_1").unwrap(), "BEGIN; SET LOCAL mailbox.workspace = 'ws_1'");
        assert!(begin("BEGIN", "*").is_ok() && begin("BEGIN", "").is_ok());
        for wrong in ["'", "ws'; DROP TABLE email; --", "a b", "\\", "ä", "\0", "$1"] {
            assert!(begin("BEGIN", wrong).is_err(), "{wrong}");
        }
    }
}
