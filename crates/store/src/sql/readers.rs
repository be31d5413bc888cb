//! Dispatches reads to SQLite's reader threads.
//!
//! A reader that finds the database changed drops its page cache, so the reader that was active last gets the next
//! read: it is the likeliest to have a valid cache. Waking a thread costs as much as a short read, so one reader that has
//! been busy looks for work a moment longer before it sleeps.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use super::transaction::SystemTx;
use crate::error::{Error, Result};

/// Maximum queued reads; more are rejected as overload.
const MAX_QUEUED_READS: usize = 4096;
/// How long a busy reader looks for another read.
const LINGER: Duration = Duration::from_micros(50);

/// A read, and its caller's channel.
pub(super) type ReadJob = Box<dyn FnOnce(&mut SystemTx) + Send>;

/// The handle for submitting reads. The readers stop when this is dropped.
pub(super) struct Readers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// The queue's length, for the reader that lingers.
    length: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<ReadJob>,
    /// Readers that sleep, the last active one at the end.
    asleep: Vec<Thread>,
    /// Whether a reader lingers. One is enough: others would keep the threads that make the work from running.
    is_watched: bool,
    is_closed: bool,
}

/// The receiving side of one reader.
pub(super) struct ReaderSlot {
    shared: Arc<Shared>,
    /// Whether it found its last job without sleeping. Calls that come one by one wake a reader each, and do not make it
    /// look for more.
    is_busy: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, queue: &mut Queue) -> Option<ReadJob> {
        let job = queue.jobs.pop_front();
        self.length.store(queue.jobs.len(), Ordering::Release);
        job
    }

    /// Gives the processor to the threads that make work, until there is some or the time is over.
    fn linger(&self) {
        let start = Instant::now();
        while self.length.load(Ordering::Acquire) == 0 && start.elapsed() < LINGER {
            thread::yield_now();
        }
    }

    /// Sleeps until somebody takes this reader from the list.
    fn sleep<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        let this = thread::current();
        queue.asleep.push(this.clone());
        while queue.asleep.iter().any(|reader| reader.id() == this.id()) {
            drop(queue);
            thread::park();
            queue = self.lock();
        }
        queue
    }
}

impl Readers {
    /// So many readers, each with its slot.
    pub(super) fn new(count: usize) -> (Self, Vec<ReaderSlot>) {
        let shared = Arc::<Shared>::default();
        let slots = (0..count).map(|_| ReaderSlot { shared: shared.clone(), is_busy: false }).collect();
        (Self(shared), slots)
    }

    /// Runs a read on the reader that lingers, on the one that was active last, or on the first that has finished.
    pub(super) fn submit(&self, job: ReadJob) -> Result<()> {
        let mut queue = self.0.lock();
        if queue.jobs.len() >= MAX_QUEUED_READS {
            return Err(Error::Overloaded);
        }
        queue.jobs.push_back(job);
        self.0.length.store(queue.jobs.len(), Ordering::Release);
        let is_taken = queue.is_watched && queue.jobs.len() == 1;
        let reader = if is_taken { None } else { queue.asleep.pop() };
        drop(queue);
        if let Some(reader) = reader {
            reader.unpark();
        }
        Ok(())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        let readers = std::mem::take(&mut queue.asleep);
        drop(queue);
        readers.iter().for_each(Thread::unpark);
    }
}

impl ReaderSlot {
    /// The next read; `None` when it is time to stop.
    pub(super) fn next(&mut self) -> Option<ReadJob> {
        let shared = self.shared.clone();
        let mut queue = shared.lock();
        if queue.jobs.is_empty() && self.is_busy && !queue.is_watched && !queue.is_closed {
            queue.is_watched = true;
            drop(queue);
            shared.linger();
            queue = shared.lock();
            queue.is_watched = false;
        }
        self.is_busy = true;
        loop {
            if let Some(job) = shared.take(&mut queue) {
                return Some(job);
            }
            if queue.is_closed {
                return None;
            }
            self.is_busy = false;
            queue = shared.sleep(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn empty_job() -> ReadJob {
        Box::new(|_| ())
    }

    /// Waits until so many readers sleep.
    fn wait_for_sleepers(readers: &Readers, count: usize) {
        while readers.0.lock().asleep.len() != count {
            thread::yield_now();
        }
    }

    /// Starts a reader that reports its number for each job, and waits until it sleeps.
    fn start(readers: &Readers, mut slot: ReaderSlot, number: usize, taken: mpsc::Sender<usize>) {
        let sleepers = readers.0.lock().asleep.len();
        thread::spawn(move || {
            while slot.next().is_some() {
                slot.is_busy = false;
                let _ = taken.send(number);
            }
        });
        wait_for_sleepers(readers, sleepers + 1);
    }

    #[test]
    fn the_last_active_reader_gets_the_next_read() {
        let (readers, slots) = Readers::new(3);
        let (taken, active) = mpsc::channel();
        for (number, slot) in slots.into_iter().enumerate() {
            start(&readers, slot, number, taken.clone());
        }
        for _ in 0..20 {
            readers.submit(empty_job()).unwrap();
            assert_eq!(active.recv().unwrap(), 2);
            wait_for_sleepers(&readers, 3);
        }
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

    #[test]
    fn every_read_is_run_once_however_they_come() {
        let (readers, slots) = Readers::new(4);
        let (taken, done) = mpsc::channel();
        for mut slot in slots {
            let taken = taken.clone();
            thread::spawn(move || {
                while slot.next().is_some() {
                    let _ = taken.send(());
                }
            });
        }
        drop(taken);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..500).for_each(|_| readers.submit(empty_job()).unwrap()));
            }
        });
        for _ in 0..20 {
            // One by one: each finds the readers asleep, or one that lingers.
            readers.submit(empty_job()).unwrap();
            thread::yield_now();
        }
        for _ in 0..1520 {
            done.recv().unwrap();
        }
        drop(readers);
        assert!(done.recv().is_err(), "all readers have stopped, and none ran a read twice");
    }
}
