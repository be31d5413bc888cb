//! Wake-ups on their way to the other nodes of a PostgreSQL server.
//!
//! A transaction that notifies holds a lock of the whole database until its commit is on disk, so one connection of each
//! node does that for all transactions, after their commits. What comes while it is busy goes out together, each wake-up
//! once. Nothing here is durable: a lost wake-up costs the time until the listener polls.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::wake::Wake;

/// Maximum wake-ups that wait; more are dropped while the server cannot be reached.
const MAX_WAITING: usize = 4096;

/// The wake-ups that wait.
#[derive(Default)]
pub(super) struct OutgoingWakes {
    waiting: Mutex<HashSet<Wake>>,
    added: Notify,
}

impl OutgoingWakes {
    fn lock(&self) -> MutexGuard<'_, HashSet<Wake>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, wakes: impl IntoIterator<Item = Wake>) {
        let mut waiting = self.lock();
        let room = MAX_WAITING.saturating_sub(waiting.len());
        waiting.extend(wakes.into_iter().take(room));
        let is_empty = waiting.is_empty();
        drop(waiting);
        if !is_empty {
            self.added.notify_one();
        }
    }

    /// Waits for some, and takes all of them.
    pub(super) async fn take(&self) -> HashSet<Wake> {
        loop {
            let taken = std::mem::take(&mut *self.lock());
            if !taken.is_empty() {
                return taken;
            }
            self.added.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::WorkspaceId;

    use super::*;
    use crate::sql::wake::Topic;

    fn wake(number: usize) -> Wake {
        Wake {
            topic: Topic::Event,
            workspace: WorkspaceId::from(format!("ws_{number}").as_str()),
            mailbox: None,
            handled: false,
        }
    }

    #[tokio::test]
    async fn equal_wake_ups_go_out_once_and_no_more_than_the_limit_wait() {
        let wakes = OutgoingWakes::default();
        wakes.add([wake(1), wake(2), wake(1)]);
        wakes.add([wake(2)]);
        assert_eq!(wakes.take().await, HashSet::from([wake(1), wake(2)]));
        wakes.add((0..MAX_WAITING + 10).map(wake));
        wakes.add([wake(MAX_WAITING + 10)]);
        assert_eq!(wakes.take().await.len(), MAX_WAITING);
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_the_next() {
        let wakes = std::sync::Arc::new(OutgoingWakes::default());
        let taken = tokio::spawn({
            let wakes = wakes.clone();
            async move { wakes.take().await }
        });
        tokio::task::yield_now().await;
        wakes.add([wake(1)]);
        assert_eq!(taken.await.unwrap(), HashSet::from([wake(1)]));
    }
}
