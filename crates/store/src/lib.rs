//! SQL and migrations for both engines, blobs, the vault. One file per resource. No HTTP.
//!
//! Store functions take a [`Tx`], which belongs to one workspace; the few statements that cross workspaces take a
//! [`SystemTx`].

pub mod accounts;
pub mod addresses;
pub mod affiliate;
pub mod api_keys;
pub mod arrivals;
pub mod attachments;
pub mod audit;
pub mod backlog;
pub mod blob_names;
pub mod blobs;
pub mod concurrent_indexes;
pub mod confirmations;
pub mod contents;
pub mod conversations;
pub mod correspondents;
pub mod counters;
mod dialect;
pub mod domains;
pub mod drafts;
pub mod dump;
pub mod emails;
mod error;
pub mod events;
pub mod folders;
pub mod hosted_keys;
pub mod idempotency;
pub mod integrations;
pub mod knowledge;
pub mod labels;
pub mod mailboxes;
pub mod members;
pub mod memory;
pub mod metering;
mod migrations;
pub mod nodes;
pub mod outbound;
pub mod password_guesses;
pub mod payments;
pub mod queue;
pub mod replication;
pub mod reviews;
pub mod search;
pub mod send_limits;
pub mod send_policies;
pub mod sign_ups;
pub mod spend_log;
mod sql;
pub mod storage_rounds;
pub mod submissions;
pub mod suppressions;
pub mod system;
pub mod tasks;
pub mod telegram;
pub mod threads;
pub mod trace;
pub mod triage_jobs;
pub mod triager_runs;
pub mod triagers;
mod turns;
pub mod usage;
pub mod vault;
pub mod webhooks;
pub mod workspaces;

pub use error::{Cause, Error, Result};
#[cfg(feature = "faults")]
pub use sql::faults;
pub use sql::{
    AnySelect, Body, Cell, DatabaseLocation, Db, FromCell, FromRow, Param, PoolFigures, PostgresLocation,
    Row, Select, StatementCounts, SystemTx, ToJson, Topic, Traffic, Tx, Wake, is_postgres_url, wait_for_wake,
};
