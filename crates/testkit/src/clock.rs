//! A clock that only the test moves.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use model::Timestamp;
use operations::ports;

/// A clock that only the test moves.
#[derive(Clone)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// A clock at the time where every test starts.
    pub(crate) fn start() -> Self {
        let clock = Self(Arc::new(AtomicI64::new(0)));
        clock.set("2026-07-14T09:00:00Z");
        clock
    }
    /// Advances the clock.
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
    /// Sets the clock.
    pub fn set(&self, to: &str) {
        self.0.store(to.parse::<Timestamp>().unwrap().as_micros(), Ordering::SeqCst);
    }
    /// Its time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

impl ports::Clock for Clock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }
}
