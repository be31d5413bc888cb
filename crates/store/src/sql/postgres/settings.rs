//! The workspace that a connection's statements may touch: the variable that row-level security compares with.
//!
//! A transaction sets it for itself, together with BEGIN. A bare read sets it for its connection, unless the connection
//! has it from the read before.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use deadpool_postgres::{Object, ObjectId};

use crate::error::{Error, Result};

/// Connections whose setting is remembered; more are forgotten, and set it again.
const MAX_CONNECTIONS: usize = 256;

/// What the connections of the pool have set outside of transactions.
#[derive(Default)]
pub(super) struct ConnectionSettings(Mutex<HashMap<ObjectId, String>>);

impl ConnectionSettings {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection has the setting. If not, it counts as unknown from now on: whoever sets it may be cancelled
    /// before the server replies.
    pub(super) fn has(&self, connection: &Object, setting: &str) -> bool {
        let (mut known, id) = (self.lock(), Object::id(connection));
        let has = known.get(&id).is_some_and(|present| present == setting);
        if !has {
            known.remove(&id);
        }
        has
    }

    /// Records that the server has confirmed a setting.
    pub(super) fn confirm(&self, connection: &Object, setting: String) {
        let mut known = self.lock();
        if known.len() >= MAX_CONNECTIONS {
            known.clear();
        }
        known.insert(Object::id(connection), setting);
    }
}

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
