//! Which of SQLite's readers does what.
//!
//! A reader that finds the store changed forgets all pages that it knew, so the one that was at work last gets the next
//! read: it is the likeliest to have nothing to forget. Reads wait only while all readers are at work.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::transaction::SystemTx;
use crate::error::{Error, Result};

/// Reads that may wait for a reader; more is refused as overload.
const WAITING: usize = 4096;

/// A read, and its caller's channel.
pub(super) type ReadJob = Box<dyn FnOnce(&mut SystemTx) + Send>;

/// The readers, as those see them who have something to read. They stop when this is dropped.
pub(super) struct Readers {
    doors: Vec<Sender<ReadJob>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Those without work, the last that had some at the end.
    idle: Vec<usize>,
    waiting: VecDeque<ReadJob>,
}

/// Where one reader waits.
pub(super) struct ReaderSlot {
    index: usize,
    door: Receiver<ReadJob>,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readers {
    /// So many readers, each with its place.
    pub(super) fn new(count: usize) -> (Self, Vec<ReaderSlot>) {
        let state = Arc::<Mutex<State>>::default();
        let place = |index| {
            // Whoever is idle has nothing at the door, so there is room for what is given to them.
            let (sender, door) = channel(1);
            (sender, ReaderSlot { index, door, state: state.clone() })
        };
        let (doors, places) = (0..count).map(place).unzip();
        (Self { doors, state }, places)
    }

    /// Has something read by the reader that was at work last, or by the first that is done.
    pub(super) fn submit(&self, job: ReadJob) -> Result<()> {
        let mut state = lock(&self.state);
        let Some(index) = state.idle.pop() else {
            if state.waiting.len() >= WAITING {
                return Err(Error::Overloaded);
            }
            state.waiting.push_back(job);
            return Ok(());
        };
        drop(state);
        self.doors[index].try_send(job).map_err(|_| Error::Unavailable("a reader has stopped".into()))
    }
}

impl ReaderSlot {
    /// What to read next; nothing when it is time to stop.
    pub(super) fn next(&mut self) -> Option<ReadJob> {
        let mut state = lock(&self.state);
        if let Some(job) = state.waiting.pop_front() {
            return Some(job);
        }
        state.idle.push(self.index);
        drop(state);
        self.door.blocking_recv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> ReadJob {
        Box::new(|_| ())
    }

    /// Whether something lies at somebody's door.
    fn has_work(place: &ReaderSlot) -> bool {
        !place.door.is_empty()
    }

    fn rest(place: &ReaderSlot) {
        lock(&place.state).idle.push(place.index);
    }

    #[test]
    fn the_last_at_work_is_the_next() {
        let (readers, mut places) = Readers::new(3);
        places.iter().for_each(rest);
        readers.submit(nothing()).unwrap();
        assert_eq!(places.iter().map(has_work).collect::<Vec<_>>(), [false, false, true]);
        drop(places[2].door.try_recv().unwrap());
        rest(&places[2]);
        readers.submit(nothing()).unwrap();
        readers.submit(nothing()).unwrap();
        assert_eq!(places.iter().map(has_work).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn reads_wait_while_all_are_at_work_and_too_many_are_refused() {
        let (readers, mut places) = Readers::new(1);
        for _ in 0..WAITING {
            readers.submit(nothing()).unwrap();
        }
        assert!(matches!(readers.submit(nothing()), Err(Error::Overloaded)));
        for _ in 0..WAITING {
            assert!(places[0].next().is_some());
        }
        drop(readers);
        assert!(places[0].next().is_none(), "the store is closed");
    }
}
