//! The queue in front of password hashing: two at a time, twenty waiting, in turn.
//!
//! Turns go round the kinds of work, and within a kind round the clients, so that a burst of one kind or of one client delays
//! the others by its share and no more. When all places are taken, somebody who has fewer than their share gets the newest
//! place of the kind (then of the client) that has the most.

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

/// Hashes that run at once; each takes 19 MiB and tens of milliseconds.
const MAX_RUNNING: usize = 2;
/// Hashes that may wait for their turn.
const MAX_WAITING: usize = 20;

/// What a password is hashed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Somebody logs in.
    LogIn,
    /// Somebody makes an account.
    SignUp,
    /// New passwords, step-up, the command line.
    Other,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// What for.
    pub(crate) purpose: Purpose,
    /// The client's network; nothing for the command line.
    pub(crate) client: Option<IpAddr>,
}

/// Runs work in turn.
#[derive(Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    running: usize,
    /// Everybody who waits, by age.
    waiting: Vec<Waiter>,
    /// Kinds and clients, those that were served last at the end.
    purposes: VecDeque<Purpose>,
    clients: VecDeque<Turn>,
}

struct Waiter {
    turn: Turn,
    call: oneshot::Sender<Permit>,
}

/// The right to run, given back when it is dropped.
struct Permit(Queue);

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.0.0).running -= 1;
        self.0.call_next();
    }
}

impl Queue {
    /// Runs work on a thread that may block, when it is its turn. Refuses it when there is no place to wait.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let called = lock(&self.0).enter(turn).ok_or_else(full)?;
        self.call_next();
        // A displaced caller finds the channel closed.
        let permit = called.await.map_err(|_| full())?;
        let work = move || {
            // Held by the work, not by the caller: a caller who hangs up does not end it.
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }

    /// Calls those whose turn it is, as long as there is room for them.
    fn call_next(&self) {
        loop {
            let Some(waiter) = lock(&self.0).next() else { return };
            // A caller that went away drops the permit, which makes room for the next.
            drop(waiter.call.send(Permit(self.clone())));
        }
    }
}

impl State {
    /// A place to wait. Nothing when all are taken and none has more than a fair share.
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

    /// Whose place a newcomer gets: the newest of the kind with the most places, or of the client with the most among its
    /// own kind, if that leaves them at least as many as the newcomer.
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
        // Clients who wait for nothing any more are as good as new ones.
        self.clients.retain(|known| waiting.iter().any(|waiter| waiter.turn == *known));
        let place = waiting.iter().position(|waiter| waiter.turn == turn)?;
        self.running += 1;
        Some(self.waiting.remove(place))
    }
}

/// The first candidate that was never served, or else the one that was served least recently; it goes to the end.
fn least_recent<T: Copy + PartialEq>(
    served: &mut VecDeque<T>,
    candidates: impl Iterator<Item = T>,
) -> Option<T> {
    let place = |one: &T| served.iter().position(|known| known == one).map_or(0, |place| place + 1);
    let chosen = candidates.min_by_key(place)?;
    served.retain(|known| *known != chosen);
    served.push_back(chosen);
    Some(chosen)
}

fn full() -> Error {
    Error::new(ErrorKind::RateLimited).with_retry_after(1)
}

#[cfg(test)]
mod tests;
