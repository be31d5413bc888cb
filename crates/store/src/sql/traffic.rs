//! How many statements and round trips PostgreSQL is sent: as metrics, and for a piece of work that counts its own.

use std::{cell::Cell, sync::LazyLock};

use metrics::{Counter, counter};

/// Statements, and how often their sender waits for responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Statements, without those that begin and end a transaction by themselves.
    pub statements: usize,
    /// Round trips.
    pub round_trips: usize,
}

tokio::task_local! {
    /// What the current work has sent, if it counts that.
    static COUNTED: Cell<Traffic>;
}

struct Totals {
    statements: Counter,
    round_trips: Counter,
}

/// Cached, because looking up a counter costs more than adding to it. The recorder is installed before a store opens.
static TOTALS: LazyLock<Totals> = LazyLock::new(|| Totals {
    statements: counter!("store_statements_total"),
    round_trips: counter!("store_round_trips_total"),
});

impl Traffic {
    /// What this work sends to PostgreSQL. Other tasks, also those that it starts, are not counted.
    pub async fn of<F: Future>(work: F) -> (F::Output, Self) {
        COUNTED
            .scope(Cell::default(), async {
                let output = work.await;
                (output, COUNTED.with(Cell::get))
            })
            .await
    }

    pub(super) fn record(self) {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        TOTALS.statements.increment(count(self.statements));
        TOTALS.round_trips.increment(count(self.round_trips));
        // Most work does not count.
        let _ = COUNTED.try_with(|counted| {
            let before = counted.get();
            counted.set(Self {
                statements: before.statements + self.statements,
                round_trips: before.round_trips + self.round_trips,
            });
        });
    }
}
