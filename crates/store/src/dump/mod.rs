//! All rows of the store as lines of JSON, and back: the same on both engines, so that one can restore the other's
//! dump.
//!
//! Rows are read on one snapshot and written in one transaction, in pieces of bounded size that go through a channel:
//! its receiver compresses, seals and stores them. Columns are read from the schema, never listed here, so that a new
//! one cannot be forgotten.

mod value;

use std::fmt::Write as _;

use tokio::sync::mpsc;

use self::value::{Record, Value};
use crate::{
    Db, Param, SystemTx,
    dialect::Column,
    error::{Error, Result},
};

/// Every table whose rows are dumped, parents before children.
pub const TABLES: &[&str] = &[
    "account",
    "session",
    "password_reset",
    "password_guess",
    "sign_up",
    "workspace",
    "member",
    "invite",
    "api_key",
    "mailbox",
    "address",
    "folder",
    "label",
    "triager",
    "triage_job",
    "triager_run",
    "task",
    "calendar_event",
    "mailbox_counter",
    "counter_addition",
    "allowance",
    "credit_ledger",
    "usage_day",
    "idempotency",
    "confirmation",
    "audit",
    "affiliate",
    "affiliate_day",
    "commission",
    "payout",
    "content",
    "thread",
    "thread_reference",
    "thread_folder",
    "email",
    "attachment",
    "email_label",
    "draft",
    "outbound",
    "delivery",
    "send_use",
    "auto_reply",
    "send_policy",
    "correspondent",
    "cap_use",
    "review",
    "review_link",
    "suppression",
    "event_counter",
    "event",
    "domain_claim",
    "email_domain",
    "domain_key",
    "hosted_key",
    "webhook",
    "webhook_delivery",
    "telegram_link",
    "telegram_code",
    "telegram_notice",
    "wallet",
    "payment",
    "free_proof_mark",
    "ledger_account",
    "ledger_transfer",
    "conversation",
    "conversation_message",
    "integration_connection",
    "memory_counter",
    "memory",
    "document",
    "passage",
    "passage_index",
    "memory_cursor",
];

/// The tables whose rows are not: the migration history, which a restore writes itself, and what running nodes have
/// reserved or learned about other servers, which means nothing without them.
pub const EXCLUDED_TABLES: &[&str] = &[
    "schema_migration",
    "migration",
    "allowance_advance",
    "destination",
    "telegram_poll",
    "node",
    "lease",
    "storage_round",
    "storage_range",
];

/// Rows in one piece.
const PIECE_ROWS: i64 = 1000;
/// Values in one INSERT; more would be accepted and gain nothing.
const INSERT_VALUES: usize = 800;

/// A part of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The rows that follow belong to this table.
    Table {
        /// Its name.
        name: String,
        /// Its columns, in the order of the values in a row.
        columns: Vec<String>,
    },
    /// Some rows of the table.
    Rows {
        /// How many.
        count: u64,
        /// Each a JSON array with a newline after it.
        lines: Vec<u8>,
    },
    /// End of the dump. A restore without it is rolled back.
    End,
}

/// Sends all rows of one snapshot, and gives their schema version.
pub async fn dump(db: &Db, pieces: mpsc::Sender<Piece>) -> Result<i64> {
    db.snapshot(async move |tx| {
        let outlet = PieceSender { pieces, may_block: !tx.is_postgres() };
        let version = tx.schema_version().await?;
        if version > Db::newest_schema() {
            return Err(Error::Unavailable(format!(
                "the store has schema version {version}, this program knows up to {}: run a newer program",
                Db::newest_schema()
            ).into()));
        }
        // A store of an older version has fewer tables.
        let present = tx.tables().await?;
        for table in TABLES.iter().filter(|table| present.iter().any(|name| name == *table)) {
            dump_table(tx, table, &outlet).await?;
        }
        outlet.send(Piece::End).await?;
        Ok(version)
    })
    .await
}

async fn dump_table(tx: &mut SystemTx, table: &str, outlet: &PieceSender) -> Result<()> {
    let columns = tx.columns(table).await?;
    let names = columns.iter().map(|column| column.name.clone()).collect();
    outlet.send(Piece::Table { name: table.to_owned(), columns: names }).await?;
    let keys = key_columns(&columns);
    let mut last: Option<Record> = None;
    loop {
        let sql = page_query(table, &columns, &keys, last.is_some());
        let mut params: Vec<Param<'_>> = vec![PIECE_ROWS.into()];
        if let Some(record) = &last {
            params.extend(keys.iter().filter_map(|key| record.0.get(*key)).map(Value::as_param));
        }
        let records: Vec<Record> = tx.all(&sql, &params).await?;
        let count = records.len();
        if count > 0 {
            let lines = value::to_lines(&records)?;
            outlet.send(Piece::Rows { count: count as u64, lines }).await?;
        }
        if i64::try_from(count).is_ok_and(|count| count < PIECE_ROWS) {
            return Ok(());
        }
        last = records.into_iter().next_back();
    }
}

/// The positions of the primary key's columns, in the key's order.
fn key_columns(columns: &[Column]) -> Vec<usize> {
    let mut keys: Vec<usize> = (0..columns.len()).filter(|index| columns[*index].key_position > 0).collect();
    keys.sort_by_key(|index| columns[*index].key_position);
    keys
}

fn page_query(table: &str, columns: &[Column], keys: &[usize], continued: bool) -> String {
    let names = list(columns.iter().map(|column| column.name.as_str()));
    let key = list(keys.iter().map(|index| columns[*index].name.as_str()));
    let mut sql = format!("SELECT {names} FROM {table}");
    if continued {
        let places = list((0..keys.len()).map(|index| format!("${}", index + 2)));
        let _ = write!(sql, " WHERE ({key}) > ({places})");
    }
    let _ = write!(sql, " ORDER BY {key} LIMIT $1");
    sql
}

fn list(items: impl Iterator<Item = impl AsRef<str>>) -> String {
    items.map(|item| item.as_ref().to_owned()).collect::<Vec<_>>().join(", ")
}

/// Where pieces are sent.
struct PieceSender {
    pieces: mpsc::Sender<Piece>,
    /// SQLite's statements run on their own thread, which may block and must not be suspended.
    may_block: bool,
}

impl PieceSender {
    async fn send(&self, piece: Piece) -> Result<()> {
        let sent =
            if self.may_block { self.pieces.blocking_send(piece) } else { self.pieces.send(piece).await };
        sent.map_err(|_| Error::Internal("nobody takes the rows".into()))
    }
}

/// The first table that has rows, if there is one; a store without tables has none.
pub async fn first_filled_table(db: &Db) -> Result<Option<&'static str>> {
    db.system_read(async |tx| filled(tx).await).await
}

async fn filled(tx: &mut SystemTx) -> Result<Option<&'static str>> {
    let present = tx.tables().await?;
    for &table in TABLES.iter().filter(|table| present.iter().any(|name| name == *table)) {
        let sql = format!("SELECT CAST(1 AS BIGINT) FROM {table} LIMIT 1");
        if tx.one::<(i64,)>(&sql, &[]).await?.is_some() {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// Fills an empty store, whose schema has the version of the dump. All rows are inserted, or none.
pub async fn restore(db: &Db, mut pieces: mpsc::Receiver<Piece>) -> Result<()> {
    db.system_write(async move |tx| {
        if let Some(table) = filled(tx).await? {
            return Err(Error::Conflict(format!("table {table} has rows").into()));
        }
        let may_block = !tx.is_postgres();
        let mut target: Option<Target> = None;
        loop {
            let piece = if may_block { pieces.blocking_recv() } else { pieces.recv().await };
            match (piece, &target) {
                (Some(Piece::Table { name, columns }), _) => {
                    target = Some(Target::new(tx, &name, columns).await?);
                }
                (Some(Piece::Rows { count, lines }), Some(target)) => {
                    target.insert(tx, count, &lines).await?;
                }
                (Some(Piece::End), _) => return Ok(()),
                (Some(Piece::Rows { .. }), None) => {
                    return Err(Error::Corrupt("rows that belong to no table".into()));
                }
                (None, _) => return Err(Error::Unavailable("the rows ended too early".into())),
            }
        }
    })
    .await
}

/// The table that rows are inserted into.
struct Target {
    name: &'static str,
    columns: Vec<String>,
}

impl Target {
    /// Checks that the table is known and has exactly these columns.
    async fn new(tx: &mut SystemTx, name: &str, columns: Vec<String>) -> Result<Self> {
        let unknown =
            || Error::Corrupt(format!("rows of a table {name:?}, which this program does not know").into());
        let name = TABLES.iter().find(|table| **table == name).copied().ok_or_else(unknown)?;
        let mut present: Vec<String> =
            tx.columns(name).await?.into_iter().map(|column| column.name).collect();
        let mut given = columns.clone();
        present.sort_unstable();
        given.sort_unstable();
        if present != given {
            return Err(Error::Corrupt(
                format!("the rows of table {name} have other columns than the store").into(),
            ));
        }
        Ok(Self { name, columns })
    }

    async fn insert(&self, tx: &mut SystemTx, count: u64, lines: &[u8]) -> Result<()> {
        let records = value::from_lines(lines, self.columns.len())?;
        if records.len() as u64 != count {
            return Err(Error::Corrupt(
                format!("a piece of table {} has not the rows it names", self.name).into(),
            ));
        }
        let most = (INSERT_VALUES / self.columns.len().max(1)).max(1);
        // Two lengths only, so that the engines prepare two statements: a full one, and one for single rows.
        let mut groups = records.chunks_exact(most);
        for group in &mut groups {
            self.insert_group(tx, group).await?;
        }
        for record in groups.remainder().chunks(1) {
            self.insert_group(tx, record).await?;
        }
        Ok(())
    }

    async fn insert_group(&self, tx: &mut SystemTx, group: &[Record]) -> Result<()> {
        let width = self.columns.len();
        let row = |index: usize| {
            let places = (1..=width).map(|column| format!("${}", index * width + column));
            format!("({})", list(places))
        };
        let columns = list(self.columns.iter());
        let rows = list((0..group.len()).map(row));
        let sql = format!("INSERT INTO {} ({columns}) VALUES {rows}", self.name);
        let params: Vec<Param<'_>> =
            group.iter().flat_map(|record| record.0.iter().map(Value::as_param)).collect();
        tx.run(&sql, &params).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
