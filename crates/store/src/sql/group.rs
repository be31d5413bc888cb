//! Transactions that share a commit on PostgreSQL.
//!
//! Deliveries to one mailbox wait for the same locks, and a lock is held until its commit is on disk: one after the other
//! they would share no flush. So the open transaction is handed from one to the next, each in a savepoint of its own,
//! and the last one, behind whom nobody waits, commits for all. What they add to figures is kept until then.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::transaction::SystemTx;
use crate::error::{Error, Result};

/// Transactions in one commit, so that the first of a group does not wait long for the last.
const GROUP: usize = 64;
/// Transactions of one key that may wait; more is refused as overload.
const WAITING: usize = 4096;

type Waiting = HashMap<String, VecDeque<oneshot::Sender<Turn>>>;

/// The groups that are at work, by their keys, and who waits for a turn in each.
#[derive(Clone, Default)]
pub(super) struct Groups(Arc<Mutex<Waiting>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of one transaction.
    pub(super) async fn join(&self, key: &str) -> Result<Turn> {
        let turn = {
            let mut waiting = self.lock();
            if let Some(queue) = waiting.get_mut(key) {
                if queue.len() >= WAITING {
                    return Err(Error::Overloaded);
                }
                let (sender, turn) = oneshot::channel();
                queue.push_back(sender);
                turn
            } else {
                waiting.insert(key.to_owned(), VecDeque::new());
                return Ok(Turn { groups: self.clone(), key: key.to_owned(), open: None, over: false });
            }
        };
        turn.await.map_err(|_| lost())
    }
}

fn lost() -> Error {
    Error::Unavailable("the transaction was given up".into())
}

/// The right to use the connection of a group. Dropping it lets the next one begin anew.
pub(super) struct Turn {
    groups: Groups,
    key: String,
    open: Option<Open>,
    /// Whether the turn is somebody else's by now.
    over: bool,
}

impl Turn {
    /// The transaction that the one before left open.
    pub(super) fn take(&mut self) -> Option<Open> {
        self.open.take()
    }

    /// Hands the open transaction to the next who waits. Gives it back when nobody does or the group is full.
    pub(super) fn pass(mut self, open: Open) -> Option<(Open, Self)> {
        if open.members.len() >= GROUP {
            return Some((open, self));
        }
        self.open = Some(open);
        loop {
            let next = self.groups.lock().get_mut(&self.key).and_then(VecDeque::pop_front);
            let Some(next) = next else {
                let open = self.open.take();
                return open.map(|open| (open, self));
            };
            match next.send(self) {
                Ok(()) => return None,
                // It went away while it waited.
                Err(back) => self = back,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        loop {
            let next = {
                let mut waiting = self.groups.lock();
                let next = waiting.get_mut(&self.key).and_then(VecDeque::pop_front);
                if next.is_none() {
                    waiting.remove(&self.key);
                }
                next
            };
            let Some(next) = next else { return };
            let turn = Self { groups: self.groups.clone(), key: self.key.clone(), open: None, over: false };
            match next.send(turn) {
                Ok(()) => return,
                Err(mut back) => back.over = true,
            }
        }
    }
}

/// A transaction that is open, and who waits for its commit.
pub(super) struct Open {
    pub(super) tx: SystemTx,
    members: Vec<oneshot::Sender<Result<()>>>,
}

impl Open {
    pub(super) fn new(tx: SystemTx) -> Self {
        Self { tx, members: Vec::new() }
    }

    /// Waits for the commit, once it is awaited.
    pub(super) fn join(&mut self) -> impl Future<Output = Result<()>> + use<> {
        let (sender, committed) = oneshot::channel();
        self.members.push(sender);
        async move { committed.await.map_err(|_| lost())? }
    }

    /// Tells everybody how the commit went.
    pub(super) fn tell(&mut self, outcome: &Result<()>) {
        for member in self.members.drain(..) {
            let outcome = outcome.as_ref().copied().map_err(Error::of_group);
            let _ = member.send(outcome);
        }
    }
}
