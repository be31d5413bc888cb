//! What really differs between the engines, in one place: row locks, the time that leases are measured in, wake-ups.

use crate::{SystemTx, Tx};

impl Tx {
    /// Locks the rows of a SELECT until the transaction ends. SQLite has one writer, so nothing is needed there.
    pub(crate) fn for_update(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE" } else { "" }
    }

    /// Keeps the rows of a SELECT from being deleted until the transaction ends.
    pub(crate) fn for_key_share(&self) -> &'static str {
        if self.is_postgres() { " FOR KEY SHARE" } else { "" }
    }

    /// The time now in microseconds, by one clock for all nodes. SQLite has one node, whose leases never lapse.
    pub(crate) fn shared_clock(&self) -> &'static str {
        if self.is_postgres() {
            "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
        } else {
            "0"
        }
    }
}

impl SystemTx {
    /// Upper bound for one sweep of an upkeep statement, so that it never holds up the writers for long.
    pub(crate) const SWEEP: i64 = 1000;
}
