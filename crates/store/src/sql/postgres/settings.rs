//! The settings of sessions and transactions, above all the workspace that a transaction's statements may touch, which
//! row-level security compares with.
//!
//! Each transaction sets its workspace for itself, together with BEGIN. A pooled connection, ours or one behind a pooler,
//! keeps nothing of it for the next user.

use crate::error::{Error, Result};

/// What a session starts with: a statement that runs this long is of no use, and an idle open transaction would block
/// others. A node that cannot be reached any more may leave several behind that wait for each other: those that wait are
/// given up after the first time, and the last one that got its lock after the second.
pub(super) const SESSION_SETTINGS: &str =
    "-c statement_timeout=15s -c idle_in_transaction_session_timeout=10s";
/// The same for a transaction behind a pooler, where a session has no settings of its own.
const TRANSACTION_SETTINGS: &str =
    "; SET LOCAL statement_timeout = '15s'; SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// The statements that begin a transaction of a workspace, or of all, with settings of its own.
pub(super) fn begin(begin: &str, own: &str, setting: &str, has_pooler: bool) -> Result<String> {
    // A literal, because SET takes no parameters; and SET LOCAL, because proxies and distributed databases forward it.
    let is_literal =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'*' | b':' | b'@');
    if !setting.bytes().all(is_literal) {
        return Err(Error::Internal("not the id of a workspace".into()));
    }
    let limits = if has_pooler { TRANSACTION_SETTINGS } else { "" };
    Ok(format!("{begin}{limits}{own}; SET LOCAL mailbox.workspace = '{setting}'"))
}

#[cfg(test)]
mod tests {
    use super::begin;

    #[test]
    fn only_an_id_is_written_into_a_statement() {
        let plain = "BEGIN; SET LOCAL mailbox.workspace = 'ws_1'";
        assert_eq!(begin("BEGIN", "", "ws_1", false).unwrap(), plain);
        assert!(begin("BEGIN", "", "*", true).is_ok() && begin("BEGIN", "", "", true).is_ok());
        for wrong in ["'", "ws'; DROP TABLE email; --", "a b", "\\", "ä", "\0", "$1"] {
            assert!(begin("BEGIN", "", wrong, false).is_err(), "{wrong}");
        }
    }
}
