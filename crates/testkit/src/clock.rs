//! A clock that only the test moves, or that runs like a machine's and is off.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use model::Timestamp;
use operations::ports::{self, SystemClock};

/// A clock that only the test moves, unless it is a machine's.
#[derive(Clone)]
pub struct Clock {
    /// Its time; of a machine's clock, how far it is ahead.
    micros: Arc<AtomicI64>,
    runs: bool,
}

impl Clock {
    /// A clock at the time where every test starts.
    pub(crate) fn start() -> Self {
        let clock = Self { micros: Arc::default(), runs: false };
        clock.set("2026-07-14T09:00:00Z");
        clock
    }
    /// A machine's clock, which runs, and is so many seconds ahead of the right time.
    pub(crate) fn of_machine(ahead: i64) -> Self {
        let clock = Self { micros: Arc::default(), runs: true };
        clock.advance(ahead);
        clock
    }
    /// Whether it is a machine's, so that a node with it follows the database's.
    pub(crate) fn is_of_machine(&self) -> bool {
        self.runs
    }
    /// Advances the clock.
    pub fn advance(&self, seconds: i64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
    /// Sets the clock.
    pub fn set(&self, to: &str) {
        assert!(!self.runs, "a machine's clock can only be advanced");
        self.micros.store(to.parse::<Timestamp>().unwrap().as_micros(), Ordering::SeqCst);
    }
    /// Its time.
    pub fn now(&self) -> Timestamp {
        let right = if self.runs { ports::Clock::now(&SystemClock).as_micros() } else { 0 };
        Timestamp::from_micros(right + self.micros.load(Ordering::SeqCst))
    }
}

impl ports::Clock for Clock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }
}
