//! How many statements, round trips and commits the transactions of a node take: for benchmarks and tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was sent since the store was opened.
#[derive(Default)]
pub(in crate::sql) struct StatementCounters {
    statements: AtomicU64,
    round_trips: AtomicU64,
    commits: AtomicU64,
    asynchronous_commits: AtomicU64,
}

/// What the transactions of this process sent to PostgreSQL since the store was opened. BEGIN with its settings counts
/// as one statement, and so does COMMIT.
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
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, asynchronously: bool) {
        let counter = if asynchronously { &self.asynchronous_commits } else { &self.commits };
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
