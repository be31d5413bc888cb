//! The layer between our statements and the two engines.
//!
//! A transaction is an async closure. PostgreSQL awaits it; SQLite runs it on the writer thread (or a reader thread)
//! and polls it once, since nothing in it can be pending there. So one text of every query serves both, and a body
//! that awaits anything but the database fails in its first test. Apart from `dialect.rs`, only this folder names an
//! engine.

mod batches;
mod checkpoints;
mod columns;
mod db;
mod deferred;
mod deferred_statement;
#[cfg(feature = "faults")]
pub mod faults;
mod jobs;
mod listener;
mod lists;
mod location;
mod mode;
mod named;
mod outgoing_wakes;
mod postgres;
mod readers;
mod scope;
mod select;
mod session;
mod sqlite;
mod traffic;
mod transaction;
mod value;
mod wake;
mod work;

pub(crate) use self::columns::{Columns, Insert, columns, row, update_row};
pub(crate) use self::lists::{
    LIST_LENGTH, list_params, list_placeholders, long_list_params, long_list_placeholders,
};
pub(crate) use self::value::ToParam;
pub use self::{
    db::Db,
    location::{DatabaseLocation, PostgresLocation, is_postgres_url},
    postgres::{PoolFigures, statements::StatementCounts},
    select::{AnySelect, Select},
    traffic::Traffic,
    transaction::{SystemTx, Tx},
    value::{Cell, FromCell, FromRow, Param, Row, ToJson},
    wake::{Topic, Wake, wait_for_wake},
    work::Body,
};
