//! Timeouts for slow clients.
//!
//! A slow request head, a response that is not read and an idle connection each have their own timeout. hyper has
//! only one, which would close idle connections as quickly as suspicious ones, and break proxies' keep-alive.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::Instant;

/// Timeout for a request head, from its first byte.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a client that reads nothing of its response.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// Timeout for an idle connection: longer than the keep-alive of proxies in front.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Shortest and longest interval between checks of a connection.
const BUSY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const QUIET_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// What a connection is waiting for. Times are milliseconds since its start, and 0 means "not waiting".
///
/// Each is read on its own, so relaxed ordering is enough.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    head_since: AtomicU64,
    stuck_since: AtomicU64,
    active_at: AtomicU64,
    in_flight: AtomicUsize,
    multiplexed: AtomicBool,
    unread: AtomicBool,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            head_since: AtomicU64::new(0),
            stuck_since: AtomicU64::new(0),
            active_at: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            multiplexed: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        }
    }

    /// Bytes were received.
    pub(super) fn has_read(&self) {
        let now = self.now();
        self.active_at.store(now, Relaxed);
        let between_calls = self.in_flight.load(Relaxed) == 0 && !self.multiplexed.load(Relaxed);
        if between_calls && self.head_since.load(Relaxed) == 0 {
            self.head_since.store(now, Relaxed);
        }
    }

    /// Bytes were written, or writing is blocked because the client reads nothing.
    pub(super) fn has_written(&self, waiting: bool) {
        let stuck = self.stuck_since.load(Relaxed);
        if !waiting {
            self.stuck_since.store(0, Relaxed);
        } else if stuck == 0 {
            self.stuck_since.store(self.now(), Relaxed);
        }
    }

    /// A whole head was received, and a call starts. HTTP/2 has many at once and detects dead clients itself.
    pub(super) fn begin_call(&self, multiplexed: bool) {
        self.head_since.store(0, Relaxed);
        self.multiplexed.fetch_or(multiplexed, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// A call has ended, including its response.
    pub(super) fn end_call(&self) {
        self.active_at.store(self.now(), Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// A call was answered without reading the rest of its body, and is the last one.
    pub(super) fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Whether the client sent, or may be about to send, bytes that will not be read: the rest of a body, or an
    /// invalid head.
    pub(super) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed) || self.head_since.load(Relaxed) > 0
    }

    /// Returns when a timeout has passed.
    pub(super) async fn expired(&self) {
        while let Some(wait) = self.time_left() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Time until the next check; `None` when a timeout has passed.
    fn time_left(&self) -> Option<Duration> {
        let now = Duration::from_millis(self.now());
        let active = Duration::from_millis(self.active_at.load(Relaxed));
        let since = |moment: &AtomicU64| Some(moment.load(Relaxed)).filter(|moment| *moment > 0);
        let head = since(&self.head_since).map(|since| Duration::from_millis(since) + HEAD_TIMEOUT);
        let stuck = since(&self.stuck_since).map(|since| Duration::from_millis(since) + WRITE_TIMEOUT);
        let quiet = self.in_flight.load(Relaxed) == 0 && !self.multiplexed.load(Relaxed);
        let idle = quiet.then_some(active + IDLE_TIMEOUT);
        let next_check =
            now + if now < active + HEAD_TIMEOUT { BUSY_CHECK_INTERVAL } else { QUIET_CHECK_INTERVAL };
        let next = [head, stuck, idle].into_iter().flatten().fold(next_check, Duration::min);
        next.checked_sub(now).filter(|wait| !wait.is_zero())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pace {
        /// Advances the clock, by moving the start back.
        fn advance(&mut self, seconds: u64) {
            self.began -= Duration::from_secs(seconds);
        }

        fn is_expired(&self) -> bool {
            self.time_left().is_none()
        }
    }

    #[test]
    fn a_silent_connection_ends_after_a_while() {
        let mut pace = Pace::new();
        pace.advance(74);
        assert!(!pace.is_expired());
        pace.advance(1);
        assert!(pace.is_expired());
    }

    #[test]
    fn a_head_that_does_not_end_ends_the_connection() {
        let mut pace = Pace::new();
        pace.has_read();
        for _ in 0..9 {
            pace.advance(1);
            pace.has_read();
            assert!(!pace.is_expired());
            assert!(pace.time_left().unwrap() <= BUSY_CHECK_INTERVAL, "it is looked at often enough");
        }
        pace.advance(2);
        assert!(pace.is_expired(), "dripping bytes buys no time");
    }

    #[test]
    fn a_call_may_take_long_and_the_next_may_wait() {
        let mut pace = Pace::new();
        for _ in 0..2 {
            pace.has_read();
            pace.begin_call(false);
            pace.has_read();
            pace.advance(600);
            assert!(!pace.is_expired(), "nothing bounds a call here");
            pace.end_call();
            pace.advance(70);
            assert!(!pace.is_expired(), "a client may think for a while");
        }
        pace.has_read();
        pace.advance(10);
        assert!(pace.is_expired());
    }

    #[test]
    fn a_response_that_is_not_read_ends_the_connection() {
        let mut pace = Pace::new();
        pace.has_read();
        pace.begin_call(true);
        pace.has_written(true);
        pace.advance(50);
        pace.has_written(false);
        pace.has_written(true);
        pace.advance(50);
        pace.has_written(true);
        assert!(!pace.is_expired());
        pace.advance(10);
        assert!(pace.is_expired());
    }

    #[test]
    fn http2_looks_after_itself_between_calls() {
        let mut pace = Pace::new();
        pace.has_read();
        pace.begin_call(true);
        pace.end_call();
        pace.has_read();
        pace.advance(600);
        assert!(!pace.is_expired());
    }
}
