//! Leaves an endpoint alone that keeps failing: after some failures in a row nobody is let through for a while, then one
//! question at a time, until one is answered.

use std::{sync::Mutex, time::Duration};

use operations::ports::AssistantFault;
use tokio::time::Instant;

/// Failures in a row after which an endpoint is left alone.
const MAX_FAILURES: u32 = 5;
/// How long, at first; each further failure doubles it.
const FIRST_REST: Duration = Duration::from_secs(5);
/// How long at most.
const MAX_REST: Duration = Duration::from_mins(1);

/// What is known about an endpoint.
#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// Until when nobody is let through.
    closed_until: Option<Instant>,
    /// Whether somebody is trying whether it works again.
    trying: bool,
}

/// Somebody who was let through. Without a success it counts as a failure, also when it is dropped half-way.
pub(super) struct Trial<'a> {
    breaker: &'a Breaker,
    succeeded: bool,
}

impl Breaker {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets a question through, or not.
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
    /// There was an answer.
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
            let rest = (FIRST_REST * 2_u32.pow(doublings)).min(MAX_REST);
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
        tokio::time::advance(FIRST_REST).await;
        let trial = breaker.enter().unwrap();
        assert!(breaker.enter().is_err(), "one at a time");
        drop(trial);
        tokio::time::advance(FIRST_REST).await;
        assert!(breaker.enter().is_err(), "the second rest is longer");
        tokio::time::advance(FIRST_REST).await;
        breaker.enter().unwrap().succeeded();
        let (_one, _other) = (breaker.enter().unwrap(), breaker.enter().unwrap());
    }
}
