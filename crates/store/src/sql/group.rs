//! Transactions that share a commit on PostgreSQL.
//!
//! Deliveries to one mailbox wait for the same locks, and a lock is held until its commit is on disk: one after the
//! other they would share no flush. So the open transaction is passed from one to the next, each in its own
//! savepoint, and the last one in the queue commits for all. Increments are deferred until then.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::transaction::SystemTx;
use crate::error::{Error, Result};

/// Maximum transactions in one commit, so that the first of a group does not wait long for the last.
const MAX_GROUP_SIZE: usize = 64;
/// Maximum queued transactions per key; more are rejected as overload.
const MAX_QUEUED: usize = 4096;

type TurnQueues = HashMap<String, VecDeque<oneshot::Sender<Turn>>>;

/// The active groups by key, with the queue for a turn in each.
#[derive(Clone, Default)]
pub(super) struct Groups(Arc<Mutex<TurnQueues>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, TurnQueues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of one transaction.
    pub(super) async fn join(&self, key: &str) -> Result<Turn> {
        let turn = {
            let mut queues = self.lock();
            if let Some(queue) = queues.get_mut(key) {
                if queue.len() >= MAX_QUEUED {
                    return Err(Error::Overloaded);
                }
                let (sender, turn) = oneshot::channel();
                queue.push_back(sender);
                turn
            } else {
                queues.insert(key.to_owned(), VecDeque::new());
                return Ok(Turn { groups: self.clone(), key: key.to_owned(), open: None, passed_on: false });
            }
        };
        turn.await.map_err(|_| lost())
    }
}

fn lost() -> Error {
    Error::Unavailable("the transaction was given up".into())
}

/// The right to use the connection of a group. Dropping it lets the next transaction start a new one.
pub(super) struct Turn {
    groups: Groups,
    key: String,
    open: Option<OpenGroup>,
    /// Whether the turn was passed on.
    passed_on: bool,
}

impl Turn {
    /// The transaction that the previous member left open.
    pub(super) fn take(&mut self) -> Option<OpenGroup> {
        self.open.take()
    }

    /// Passes the open transaction to the next in the queue. Returns it when the queue is empty or the group is full.
    pub(super) fn pass(mut self, open: OpenGroup) -> Option<(OpenGroup, Self)> {
        if open.members.len() >= MAX_GROUP_SIZE {
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
                // Its caller has gone.
                Err(returned) => self = returned,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.passed_on {
            return;
        }
        loop {
            let next = {
                let mut queues = self.groups.lock();
                let next = queues.get_mut(&self.key).and_then(VecDeque::pop_front);
                if next.is_none() {
                    queues.remove(&self.key);
                }
                next
            };
            let Some(next) = next else { return };
            let turn =
                Self { groups: self.groups.clone(), key: self.key.clone(), open: None, passed_on: false };
            match next.send(turn) {
                Ok(()) => return,
                Err(mut returned) => returned.passed_on = true,
            }
        }
    }
}

/// An open transaction, and the members that wait for its commit.
pub(super) struct OpenGroup {
    pub(super) tx: SystemTx,
    members: Vec<oneshot::Sender<Result<()>>>,
}

impl OpenGroup {
    pub(super) fn new(tx: SystemTx) -> Self {
        Self { tx, members: Vec::new() }
    }

    /// Whether no member has joined yet.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member; the future resolves with the commit.
    pub(super) fn join(&mut self) -> impl Future<Output = Result<()>> + use<> {
        let (sender, committed) = oneshot::channel();
        self.members.push(sender);
        async move { committed.await.map_err(|_| lost())? }
    }

    /// Sends the outcome of the commit to all members.
    pub(super) fn acknowledge(&mut self, outcome: &Result<()>) {
        for member in self.members.drain(..) {
            let outcome = outcome.as_ref().copied().map_err(Error::of_group);
            let _ = member.send(outcome);
        }
    }
}
