//! The differences between the engines, in one place: row locks, the clock that leases use, schema introspection.

use crate::{SystemTx, Tx, error::Result, sql::row};

impl Tx {
    /// Locks the rows of a SELECT until the transaction ends. SQLite has one writer, so nothing is needed there.
    ///
    /// `FOR NO KEY UPDATE`, not `FOR UPDATE`: rows that reference the locked one may still be inserted, as every
    /// transaction does before it takes this lock; with `FOR UPDATE` two of them would deadlock.
    pub(crate) fn for_update(&self) -> &'static str {
        if self.is_postgres() { " FOR NO KEY UPDATE" } else { "" }
    }

    /// Locks the rows of a SELECT exclusively, also against inserts that reference them.
    pub(crate) fn for_delete(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE" } else { "" }
    }

    /// Keeps the rows of a SELECT from being deleted until the transaction ends.
    pub(crate) fn for_key_share(&self) -> &'static str {
        if self.is_postgres() { " FOR KEY SHARE" } else { "" }
    }

    /// The current time in microseconds, by one clock for all nodes. SQLite has one node, whose leases never expire.
    pub(crate) fn shared_clock(&self) -> &'static str {
        if self.is_postgres() { POSTGRES_CLOCK } else { "0" }
    }
}

const POSTGRES_CLOCK: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";

impl SystemTx {
    /// Maximum rows of one upkeep statement, so that it never blocks writers for long.
    pub(crate) const SWEEP: i64 = 1000;

    /// Locks the rows of a SELECT until the transaction ends. SQLite has one writer.
    pub(crate) fn for_update(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE" } else { "" }
    }

    /// The same, and skips those that are locked already.
    pub(crate) fn skip_locked(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE SKIP LOCKED" } else { "" }
    }

    /// The store's own clock in microseconds, where it has one.
    pub(crate) fn own_clock(&self) -> Option<&'static str> {
        self.is_postgres().then_some(POSTGRES_CLOCK)
    }

    /// Keeps other transactions from adding accounts until this one ends. SQLite has one writer.
    pub(crate) async fn lock_accounts(&mut self) -> Result<()> {
        if self.is_postgres() {
            self.batch("LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE").await?;
        }
        Ok(())
    }

    /// The tables of the schema, in no order, without the search index, which is derived from the others.
    pub(crate) async fn tables(&mut self) -> Result<Vec<String>> {
        let sql = if self.is_postgres() {
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'email_text'"
        } else {
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
             AND name NOT LIKE 'email!_text%' ESCAPE '!'"
        };
        let names: Vec<(String,)> = self.all(sql, &[]).await?;
        Ok(names.into_iter().map(|(name,)| name).collect())
    }

    /// The columns of a table, in their order.
    pub(crate) async fn columns(&mut self, table: &str) -> Result<Vec<Column>> {
        let sql = if self.is_postgres() {
            "SELECT a.attname, CAST(coalesce(array_position(c.conkey, a.attnum), 0) AS BIGINT)
             FROM pg_attribute a LEFT JOIN pg_constraint c ON c.conrelid = a.attrelid AND c.contype = 'p'
             WHERE a.attrelid = CAST(CAST($1 AS TEXT) AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
             ORDER BY a.attnum"
        } else {
            "SELECT name, pk FROM pragma_table_info($1) ORDER BY cid"
        };
        self.all(sql, &[table.into()]).await
    }
}

/// A column of a table.
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its position in the primary key, counted from 1; 0 when it is not part of the key.
    pub(crate) key_position: i64,
}

row!(Column { name, key_position });
