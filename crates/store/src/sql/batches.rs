//! Items that are written together on PostgreSQL, by key.
//!
//! Writes that wait for the same locks run one after the other, each until its commit is on disk. So the first one leads:
//! while it writes, the next ones queue, and then one of them leads and writes all that have queued, with few statements
//! and one commit.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Maximum members of a batch, so that the first does not wait long for the last.
const MAX_MEMBERS: usize = 64;
/// Maximum bytes of a batch that has several members.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// Maximum queued members per key; more are rejected as overload.
const MAX_QUEUED: usize = 4096;

/// The queues of the keys that have a leader. The members of one key are all of one type.
#[derive(Clone, Default)]
pub(super) struct Batches(Arc<Mutex<HashMap<String, Box<dyn Any + Send>>>>);

type Queue<I, O> = VecDeque<Member<I, O>>;

/// An item that is queued, with its caller's channel.
pub(super) struct Member<I: Send + 'static, O: Send + 'static> {
    pub(super) item: I,
    bytes: usize,
    turn: oneshot::Sender<Waiting<I, O>>,
}

impl<I: Send + 'static, O: Send + 'static> Member<I, O> {
    pub(super) fn finish(self, outcome: O) {
        // Its caller may have gone.
        let _ = self.turn.send(Waiting::Done(outcome));
    }
}

/// What a member does when it comes.
pub(super) enum MemberTurn<I: Send + 'static, O: Send + 'static> {
    Lead(Lead<I, O>, I),
    Wait(oneshot::Receiver<Waiting<I, O>>),
}

/// What becomes of a member that has waited.
pub(super) enum Waiting<I: Send + 'static, O: Send + 'static> {
    /// It leads the next batch.
    Lead(Lead<I, O>, I),
    /// Another has written it.
    Done(O),
}

impl Batches {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads if nobody does, or queues.
    pub(super) fn join<I: Send + 'static, O: Send + 'static>(
        &self,
        key: &str,
        item: I,
        bytes: usize,
    ) -> Result<MemberTurn<I, O>> {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(key) else {
            queues.insert(key.to_owned(), Box::new(Queue::<I, O>::new()));
            return Ok(MemberTurn::Lead(Lead::new(self.clone(), key.to_owned()), item));
        };
        let Some(queue) = queue.downcast_mut::<Queue<I, O>>() else {
            return Err(Error::Internal("two kinds of batches have one key".into()));
        };
        if queue.len() >= MAX_QUEUED {
            return Err(Error::Overloaded);
        }
        let (turn, wait) = oneshot::channel();
        queue.push_back(Member { item, bytes, turn });
        Ok(MemberTurn::Wait(wait))
    }
}

/// The right to write the items of a key. Dropping it lets the next member lead.
pub(super) struct Lead<I: Send + 'static, O: Send + 'static> {
    batches: Batches,
    key: String,
    /// Whether the right was passed on.
    passed_on: bool,
    members: PhantomData<fn(I) -> O>,
}

impl<I: Send + 'static, O: Send + 'static> Lead<I, O> {
    fn new(batches: Batches, key: String) -> Self {
        Self { batches, key, passed_on: false, members: PhantomData }
    }

    /// Takes those that have queued, as many as fit into a batch with the leader's own bytes.
    pub(super) fn take_others(&self, own: usize) -> Vec<Member<I, O>> {
        let mut queues = self.batches.lock();
        let Some(queue) = queues.get_mut(&self.key).and_then(|queue| queue.downcast_mut::<Queue<I, O>>())
        else {
            return Vec::new();
        };
        let mut bytes = own;
        let fits = |member: &&Member<I, O>| {
            bytes = bytes.saturating_add(member.bytes);
            bytes <= MAX_BATCH_BYTES
        };
        let count = queue.iter().take(MAX_MEMBERS - 1).take_while(fits).count();
        queue.drain(..count).collect()
    }

    /// The next member; without one the key has no leader any more.
    fn next(&self) -> Option<Member<I, O>> {
        let mut queues = self.batches.lock();
        let next = queues
            .get_mut(&self.key)
            .and_then(|queue| queue.downcast_mut::<Queue<I, O>>())
            .and_then(VecDeque::pop_front);
        if next.is_none() {
            queues.remove(&self.key);
        }
        next
    }
}

impl<I: Send + 'static, O: Send + 'static> Drop for Lead<I, O> {
    fn drop(&mut self) {
        if self.passed_on {
            return;
        }
        while let Some(Member { item, turn, .. }) = self.next() {
            let lead = Self::new(self.batches.clone(), self.key.clone());
            match turn.send(Waiting::Lead(lead, item)) {
                Ok(()) => return,
                // Its caller has gone.
                Err(Waiting::Lead(mut lead, _)) => lead.passed_on = true,
                Err(Waiting::Done(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Turn = MemberTurn<usize, usize>;

    fn lead(turn: Turn) -> Lead<usize, usize> {
        match turn {
            MemberTurn::Lead(lead, _) => lead,
            MemberTurn::Wait(_) => panic!("it has to wait"),
        }
    }

    fn wait(turn: Turn) -> oneshot::Receiver<Waiting<usize, usize>> {
        match turn {
            MemberTurn::Wait(wait) => wait,
            MemberTurn::Lead(..) => panic!("it leads"),
        }
    }

    #[tokio::test]
    async fn the_first_leads_and_those_that_queue_are_written_by_the_next() {
        let batches = Batches::default();
        let join = |item: usize| batches.join("a", item, 1).unwrap();
        let first = lead(join(0));
        assert!(first.take_others(1).is_empty());
        let waits: Vec<_> = (1..4).map(|item| wait(join(item))).collect();
        assert!(
            matches!(batches.join::<usize, usize>("b", 0, 1).unwrap(), MemberTurn::Lead(..)),
            "of another key"
        );
        drop(first);
        let mut waits = waits.into_iter();
        let Waiting::Lead(second, 1) = waits.next().unwrap().await.unwrap() else {
            panic!("the next one leads")
        };
        for other in second.take_others(1) {
            let item = other.item;
            other.finish(item * 10);
        }
        for (wait, value) in waits.zip([20, 30]) {
            assert!(matches!(wait.await, Ok(Waiting::Done(done)) if done == value));
        }
        drop(second);
        assert!(batches.lock().is_empty(), "nothing is left of a key that is not used");
    }

    #[tokio::test]
    async fn those_who_have_gone_are_passed_over() {
        let batches = Batches::default();
        let join = |item: usize| batches.join("a", item, 1).unwrap();
        let first = lead(join(0));
        drop(wait(join(1)));
        drop(wait(join(2)));
        let third = wait(join(3));
        drop(first);
        assert!(matches!(third.await, Ok(Waiting::Lead(_, 3))));
        assert!(batches.lock().is_empty());
    }

    #[test]
    fn a_batch_is_bounded_in_members_and_in_bytes() {
        let batches = Batches::default();
        let leader = lead(batches.join("a", 0, 1).unwrap());
        let mut waits: Vec<_> = (0..100).map(|item| wait(batches.join("a", item, 1).unwrap())).collect();
        assert_eq!(leader.take_others(1).len(), MAX_MEMBERS - 1);
        assert_eq!(leader.take_others(1).len(), 100 - (MAX_MEMBERS - 1));
        waits.extend((0..4).map(|item| wait(batches.join("a", item, MAX_BATCH_BYTES / 2).unwrap())));
        assert_eq!(leader.take_others(1).len(), 1, "two are too large with the leader's own");
        assert_eq!(leader.take_others(MAX_BATCH_BYTES).len(), 0);
        waits.extend((0..MAX_QUEUED - 3).map(|item| wait(batches.join("a", item, 1).unwrap())));
        assert!(matches!(batches.join::<usize, usize>("a", 0, 1), Err(Error::Overloaded)));
    }
}
