//! Counts what this process sends to PostgreSQL, so that a test can bound it and a benchmark can show it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of an open store.
#[derive(Default)]
pub(super) struct TrafficCounter {
    statements: AtomicU64,
    round_trips: AtomicU64,
}

impl TrafficCounter {
    /// Counts statements that were sent together.
    pub(super) fn add(&self, statements: usize) {
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Traffic {
        Traffic {
            statements: self.statements.load(Ordering::Relaxed),
            round_trips: self.round_trips.load(Ordering::Relaxed),
        }
    }
}

/// What was sent so far, without the preparation of statements, which each connection does once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Statements.
    pub statements: u64,
    /// Round trips: statements that are sent together share one.
    pub round_trips: u64,
}
