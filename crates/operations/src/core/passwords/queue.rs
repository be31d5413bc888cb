//! The queue for password hashing: two running, twenty waiting, scheduled fairly.
//!
//! Scheduling is round robin over the purposes, and within a purpose over the clients, so that a burst of one purpose
//! or client delays the others by its share only. When the queue is full, a newcomer below its share replaces the
//! newest waiter of the purpose (then of the client) that has the most.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use crate::core::{
    error::{Error, ErrorKind, Result},
    lock::lock,
};

/// Maximum concurrent hashes; each takes 19 MiB and tens of milliseconds.
const MAX_RUNNING: usize = 2;
/// Maximum waiting hashes.
const MAX_WAITING: usize = 20;

/// What a password is hashed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A log-in.
    LogIn,
    /// A sign-up.
    SignUp,
    /// New passwords, step-up, the command line.
    Other,
}

/// What the queue schedules by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The purpose.
    pub(crate) purpose: Purpose,
    /// The client's network; `None` for the command line.
    pub(crate) client: Option<IpAddr>,
}

/// Runs work in a fair order.
#[derive(Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    running: usize,
    /// All waiters, oldest first.
    waiting: Vec<Waiter>,
    /// Purposes and clients, those served last at the end.
    purposes: VecDeque<Purpose>,
    clients: VecDeque<Turn>,
}

struct Waiter {
    turn: Turn,
    call: oneshot::Sender<Permit>,
}

/// The right to run, released when it is dropped.
struct Permit(Queue);

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.0.0).running -= 1;
        self.0.call_next();
    }
}

impl Queue {
    /// Runs work on a blocking thread when it is its turn. Refuses it when the queue is full.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let called = lock(&self.0).enter(turn).ok_or_else(full)?;
        self.call_next();
        // A replaced waiter finds the channel closed.
        let permit = called.await.map_err(|_| full())?;
        let work = move || {
            // Owned by the work, not by the caller: a caller that hangs up does not free it.
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }

    /// Starts waiters while there is room.
    fn call_next(&self) {
        loop {
            let Some(waiter) = lock(&self.0).next() else { return };
            // A waiter that is gone drops the permit, which makes room for the next.
            drop(waiter.call.send(Permit(self.clone())));
        }
    }
}

impl State {
    /// A slot in the queue. `None` when it is full and no waiter has more than a fair share.
    fn enter(&mut self, turn: Turn) -> Option<oneshot::Receiver<Permit>> {
        self.waiting.retain(|waiter| !waiter.call.is_closed());
        if self.waiting.len() >= MAX_WAITING {
            let displaced = self.displaced(turn)?;
            self.waiting.remove(displaced);
        }
        let (call, called) = oneshot::channel();
        self.waiting.push(Waiter { turn, call });
        Some(called)
    }

    /// The waiter that a newcomer replaces: the newest of the purpose with the most waiters, or of the client with
    /// the most among its own purpose, if that leaves them at least as many as the newcomer.
    fn displaced(&self, newcomer: Turn) -> Option<usize> {
        let count = |of: &dyn Fn(&Waiter) -> bool| self.waiting.iter().filter(|waiter| of(waiter)).count();
        let of_purpose = |purpose: Purpose| count(&|waiter| waiter.turn.purpose == purpose);
        let of_client = |turn: Turn| count(&|waiter| waiter.turn == turn);
        let purposes = self.waiting.iter().map(|waiter| waiter.turn.purpose);
        let purpose = purposes.max_by_key(|purpose| of_purpose(*purpose))?;
        let other_purpose = of_purpose(newcomer.purpose) + 2 <= of_purpose(purpose);
        let purpose = if other_purpose { purpose } else { newcomer.purpose };
        let same = self.waiting.iter().filter(|waiter| waiter.turn.purpose == purpose);
        let heaviest = same.map(|waiter| waiter.turn).max_by_key(|turn| of_client(*turn))?;
        let displaces = other_purpose || of_client(newcomer) + 2 <= of_client(heaviest);
        displaces.then(|| self.waiting.iter().rposition(|waiter| waiter.turn == heaviest)).flatten()
    }

    /// The next to run, if there is room.
    fn next(&mut self) -> Option<Waiter> {
        self.waiting.retain(|waiter| !waiter.call.is_closed());
        if self.running >= MAX_RUNNING {
            return None;
        }
        let waiting = &self.waiting;
        let purpose = least_recent(&mut self.purposes, waiting.iter().map(|waiter| waiter.turn.purpose))?;
        let same = waiting.iter().map(|waiter| waiter.turn).filter(|turn| turn.purpose == purpose);
        let turn = least_recent(&mut self.clients, same)?;
        // Clients without waiters are treated like new ones.
        self.clients.retain(|known| waiting.iter().any(|waiter| waiter.turn == *known));
        let position = waiting.iter().position(|waiter| waiter.turn == turn)?;
        self.running += 1;
        Some(self.waiting.remove(position))
    }
}

/// The first candidate that was never served, or else the least recently served; it moves to the end.
fn least_recent<T: Copy + PartialEq>(
    served: &mut VecDeque<T>,
    candidates: impl Iterator<Item = T>,
) -> Option<T> {
    let position = |one: &T| served.iter().position(|known| known == one).map_or(0, |position| position + 1);
    let chosen = candidates.min_by_key(position)?;
    served.retain(|known| *known != chosen);
    served.push_back(chosen);
    Some(chosen)
}

fn full() -> Error {
    Error::new(ErrorKind::RateLimited).with_retry_after(1)
}

#[cfg(test)]
mod tests;
