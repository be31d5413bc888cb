//! A circuit breaker: after some failures in a row no request is let through for a while, then one at a time, until
//! one succeeds.

use std::{sync::Mutex, time::Duration};

use operations::ports::AssistantFault;
use tokio::time::Instant;

/// Failures in a row that open the breaker.
const MAX_FAILURES: u32 = 5;
/// How long it stays open at first; each further failure doubles it.
const FIRST_OPEN_DURATION: Duration = Duration::from_secs(5);
/// The longest time it stays open.
const MAX_OPEN_DURATION: Duration = Duration::from_mins(1);

/// The circuit breaker of one endpoint.
#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// Until when it is open.
    closed_until: Option<Instant>,
    /// Whether a trial request is running.
    trying: bool,
}

/// A request that was let through. Without a success it counts as a failure, also when it is dropped.
pub(super) struct Trial<'a> {
    breaker: &'a Breaker,
    succeeded: bool,
}

impl Breaker {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets a request through, or not.
    pub(super) fn enter(&self) -> Result<Trial<'_>, AssistantFault> {
        let mut state = self.state();
        if let Some(until) = state.closed_until {
            if state.trying || Instant::now() < until {
                return Err(AssistantFault::Unavailable("it failed too often and is left alone".to_owned()));
            }
            state.trying = true;
        }
        drop(state);
        Ok(Trial { breaker: self, succeeded: false })
    }
}

impl Trial<'_> {
    /// The request succeeded.
    pub(super) fn succeeded(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.state();
        if self.succeeded {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        state.trying = false;
        if state.failures >= MAX_FAILURES {
            let doublings = (state.failures - MAX_FAILURES).min(10);
            let rest = (FIRST_OPEN_DURATION * 2_u32.pow(doublings)).min(MAX_OPEN_DURATION);
            state.closed_until = Some(Instant::now() + rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_closes_after_failures_and_opens_by_one_success() {
        let breaker = Breaker::default();
        for _ in 0..MAX_FAILURES - 1 {
            drop(breaker.enter().unwrap());
        }
        breaker.enter().unwrap().succeeded();
        for _ in 0..MAX_FAILURES {
            drop(breaker.enter().unwrap());
        }
        assert!(breaker.enter().is_err());
        tokio::time::advance(FIRST_OPEN_DURATION).await;
        let trial = breaker.enter().unwrap();
        assert!(breaker.enter().is_err(), "one at a time");
        drop(trial);
        tokio::time::advance(FIRST_OPEN_DURATION).await;
        assert!(breaker.enter().is_err(), "the second rest is longer");
        tokio::time::advance(FIRST_OPEN_DURATION).await;
        breaker.enter().unwrap().succeeded();
        let (_one, _other) = (breaker.enter().unwrap(), breaker.enter().unwrap());
    }
}
