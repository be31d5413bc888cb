//! A fake next hop: it records the messages it gets, and replies as configured.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use operations::ports::{Handover, HandoverOutcome, HandoverResult, NextHop};
use tokio::sync::Semaphore;

/// A server that accepts messages, or refuses them.
#[derive(Clone, Default)]
pub struct Hop(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    handovers: Vec<Handover>,
    answers: HashMap<String, VecDeque<HandoverOutcome>>,
    slow: HashMap<String, Duration>,
    gate: Option<Arc<Semaphore>>,
    /// Messages that wait for a permit.
    waiting: usize,
    panics: HashMap<String, u32>,
}

impl Hop {
    /// Sets the next outcome for a recipient; after that everything is accepted again.
    pub fn answer(&self, recipient: &str, outcome: HandoverOutcome) {
        let mut state = self.0.lock().unwrap();
        state.answers.entry(recipient.to_owned()).or_default().push_back(outcome);
    }

    /// Panics on a recipient, this many times.
    pub fn panic_over(&self, recipient: &str, times: u32) {
        self.0.lock().unwrap().panics.insert(recipient.to_owned(), times);
    }

    /// Delays a domain, or messages to an address.
    pub fn slow_down(&self, whom: &str, by: Duration) {
        self.0.lock().unwrap().slow.insert(whom.to_owned(), by);
    }

    /// Accepts each message only with a permit of a semaphore.
    pub fn gated_by(&self, gate: Arc<Semaphore>) {
        self.0.lock().unwrap().gate = Some(gate);
    }

    /// Messages that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.0.lock().unwrap().waiting
    }

    /// All messages so far, whatever the outcome.
    pub fn handovers(&self) -> Vec<Handover> {
        self.0.lock().unwrap().handovers.clone()
    }
}

impl Hop {
    fn should_panic(&self, recipient: &str) -> bool {
        let mut state = self.0.lock().unwrap();
        let Some(left) = state.panics.get_mut(recipient).filter(|left| **left > 0) else { return false };
        *left -= 1;
        true
    }
}

impl NextHop for Hop {
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = HandoverResult> + Send + '_>> {
        Box::pin(async move {
            let whom = [&handover.domain].into_iter().chain(&handover.recipients);
            let slow = self.0.lock().unwrap().slow.clone();
            let pause = whom.filter_map(|whom| slow.get(whom)).max().copied();
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            let gate = self.0.lock().unwrap().gate.clone();
            if let Some(gate) = gate {
                self.0.lock().unwrap().waiting += 1;
                gate.acquire().await.unwrap().forget();
                self.0.lock().unwrap().waiting -= 1;
            }
            let wanted = handover.recipients.iter().any(|recipient| self.should_panic(recipient));
            assert!(!wanted, "a test made this handover panic");
            let mut state = self.0.lock().unwrap();
            let outcomes = handover
                .recipients
                .iter()
                .map(|recipient| {
                    let answer = state.answers.get_mut(recipient).and_then(VecDeque::pop_front);
                    answer.unwrap_or_else(|| HandoverOutcome::Accepted("250 2.0.0 Taken".to_owned()))
                })
                .collect();
            state.handovers.push(handover);
            HandoverResult { outcomes, peer: None }
        })
    }
}
