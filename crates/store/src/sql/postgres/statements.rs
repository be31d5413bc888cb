//! How many statements, round trips and commits the transactions of a node take: for benchmarks and tests.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sql::traffic::Traffic;

/// What depends on the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionEnd {
    /// Nothing: it only reads.
    Read,
    /// Its writes, which are on disk when it is acknowledged.
    Durable,
    /// Its writes, which are on disk a moment later.
    Asynchronous,
}

/// What was sent since the store was opened.
#[derive(Default)]
pub(in crate::sql) struct StatementCounters {
    statements: AtomicU64,
    round_trips: AtomicU64,
    commits: AtomicU64,
    asynchronous_commits: AtomicU64,
}

/// What the transactions of this process sent to PostgreSQL since the store was opened. BEGIN with its settings is
/// no statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Statements, however many were sent together.
    pub statements: u64,
    /// How often a reply was awaited.
    pub round_trips: u64,
    /// Transactions whose commit was on disk before they were acknowledged.
    pub commits: u64,
    /// Transactions that were acknowledged before that.
    pub asynchronous_commits: u64,
}

impl StatementCounts {
    /// What was sent after earlier counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            statements: self.statements - earlier.statements,
            round_trips: self.round_trips - earlier.round_trips,
            commits: self.commits - earlier.commits,
            asynchronous_commits: self.asynchronous_commits - earlier.asynchronous_commits,
        }
    }
}

impl StatementCounters {
    /// Counts statements that are sent together.
    pub(super) fn sent(&self, statements: usize) {
        Traffic { statements, round_trips: 1 }.record();
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, end: TransactionEnd) {
        let counter = match end {
            TransactionEnd::Read => return,
            TransactionEnd::Durable => &self.commits,
            TransactionEnd::Asynchronous => &self.asynchronous_commits,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::sql) fn counts(&self) -> StatementCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatementCounts {
            statements: read(&self.statements),
            round_trips: read(&self.round_trips),
            commits: read(&self.commits),
            asynchronous_commits: read(&self.asynchronous_commits),
        }
    }
}
