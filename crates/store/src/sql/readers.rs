//! Dispatches reads to SQLite's reader threads.
//!
//! A reader that finds the database changed drops its page cache, so the reader that was active last gets the next
//! read: it is the likeliest to have a valid cache. Reads are queued only while all readers are busy.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::transaction::SystemTx;
use crate::error::{Error, Result};

/// Maximum queued reads; more are rejected as overload.
const MAX_QUEUED_READS: usize = 4096;

/// A read, and its caller's channel.
pub(super) type ReadJob = Box<dyn FnOnce(&mut SystemTx) + Send>;

/// The handle for submitting reads. The readers stop when this is dropped.
pub(super) struct Readers {
    senders: Vec<Sender<ReadJob>>,
    state: Arc<Mutex<ReaderState>>,
}

#[derive(Default)]
struct ReaderState {
    /// Idle readers, the last active one at the end.
    idle: Vec<usize>,
    queued: VecDeque<ReadJob>,
}

/// The receiving side of one reader.
pub(super) struct ReaderSlot {
    index: usize,
    jobs: Receiver<ReadJob>,
    state: Arc<Mutex<ReaderState>>,
}

fn lock(state: &Mutex<ReaderState>) -> MutexGuard<'_, ReaderState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readers {
    /// So many readers, each with its slot.
    pub(super) fn new(count: usize) -> (Self, Vec<ReaderSlot>) {
        let state = Arc::<Mutex<ReaderState>>::default();
        let slot = |index| {
            // An idle reader's channel is empty, so there is room for its next job.
            let (sender, jobs) = channel(1);
            (sender, ReaderSlot { index, jobs, state: state.clone() })
        };
        let (senders, slots) = (0..count).map(slot).unzip();
        (Self { senders, state }, slots)
    }

    /// Runs a read on the reader that was active last, or on the first that becomes idle.
    pub(super) fn submit(&self, job: ReadJob) -> Result<()> {
        let mut state = lock(&self.state);
        let Some(index) = state.idle.pop() else {
            if state.queued.len() >= MAX_QUEUED_READS {
                return Err(Error::Overloaded);
            }
            state.queued.push_back(job);
            return Ok(());
        };
        drop(state);
        self.senders[index].try_send(job).map_err(|_| Error::Unavailable("a reader has stopped".into()))
    }
}

impl ReaderSlot {
    /// The next read; `None` when it is time to stop.
    pub(super) fn next(&mut self) -> Option<ReadJob> {
        let mut state = lock(&self.state);
        if let Some(job) = state.queued.pop_front() {
            return Some(job);
        }
        state.idle.push(self.index);
        drop(state);
        self.jobs.blocking_recv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_job() -> ReadJob {
        Box::new(|_| ())
    }

    /// Whether a job was sent to a reader.
    fn has_work(slot: &ReaderSlot) -> bool {
        !slot.jobs.is_empty()
    }

    fn become_idle(slot: &ReaderSlot) {
        lock(&slot.state).idle.push(slot.index);
    }

    #[test]
    fn the_last_active_reader_gets_the_next_read() {
        let (readers, mut slots) = Readers::new(3);
        slots.iter().for_each(become_idle);
        readers.submit(empty_job()).unwrap();
        assert_eq!(slots.iter().map(has_work).collect::<Vec<_>>(), [false, false, true]);
        drop(slots[2].jobs.try_recv().unwrap());
        become_idle(&slots[2]);
        readers.submit(empty_job()).unwrap();
        readers.submit(empty_job()).unwrap();
        assert_eq!(slots.iter().map(has_work).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn reads_are_queued_while_all_readers_are_busy() {
        let (readers, mut slots) = Readers::new(1);
        for _ in 0..MAX_QUEUED_READS {
            readers.submit(empty_job()).unwrap();
        }
        assert!(matches!(readers.submit(empty_job()), Err(Error::Overloaded)));
        for _ in 0..MAX_QUEUED_READS {
            assert!(slots[0].next().is_some());
        }
        drop(readers);
        assert!(slots[0].next().is_none(), "the store is closed");
    }
}
