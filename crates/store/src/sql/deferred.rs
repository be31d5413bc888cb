//! Tasks that SQLite's writer defers until several commits can share them.
//!
//! FTS5 writes a new segment for every commit, whether it has one text or thirty. So texts are kept in memory until
//! there are enough, a search needs them, or no new ones come. The commit of the email stores a marker, which is
//! deleted with the task: a task lost in a crash is found by its marker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use super::deferred_statement::DeferredStatement;
use crate::error::Error;

/// At most this many tasks are deferred; the next commit runs all of them.
const MAX_DEFERRED: usize = 32;
const MAX_DEFERRED_BYTES: usize = 640 * 1024;
/// How long no new task must come before the writer is asked to run the pending ones.
const IDLE_DELAY: Duration = Duration::from_millis(50);
/// How often in a row the tasks may fail before they are dropped and left to the sweep for markers: they must
/// not block all other writes forever.
const MAX_ATTEMPTS: u32 = 8;

/// A deferred task.
pub(super) struct DeferredTask {
    /// Deletes its marker. When there is none any more, the task was done.
    pub(super) clear_marker: DeferredStatement,
    pub(super) task: DeferredStatement,
}

/// The deferred tasks.
#[derive(Default)]
pub(super) struct DeferredTasks {
    /// Those of earlier commits.
    pending: Vec<DeferredTask>,
    /// Those of the current commit.
    new: Vec<DeferredTask>,
    /// Whether the current commit runs all of them.
    flush_requested: bool,
    /// How many were ever deferred.
    total: u64,
    /// How many commits in a row failed to run due tasks.
    failed_commits: u32,
}

impl DeferredTasks {
    /// Starts a commit, or restarts it.
    pub(super) fn begin(&mut self) {
        self.new.clear();
        self.flush_requested = false;
    }

    pub(super) fn defer(&mut self, work: DeferredTask) {
        self.new.push(work);
    }

    /// How many tasks the current commit has deferred.
    pub(super) fn deferred_count(&self) -> usize {
        self.new.len()
    }

    /// Drops those deferred after that.
    pub(super) fn truncate(&mut self, count: usize) {
        self.new.truncate(count);
    }

    /// Makes the current commit run everything.
    pub(super) fn request_flush(&mut self) {
        self.flush_requested = true;
    }

    /// The tasks that the commit has to run.
    pub(super) fn due(&self) -> impl Iterator<Item = &DeferredTask> {
        let due = self.is_due();
        self.all().filter(move |_| due)
    }

    /// Ends a commit that ran the due tasks.
    pub(super) fn on_commit(&mut self) {
        if self.is_due() {
            self.pending.clear();
            self.new.clear();
            self.failed_commits = 0;
        } else {
            self.total += self.new.len() as u64;
            self.pending.append(&mut self.new);
        }
    }

    /// Ends a commit that failed.
    pub(super) fn on_failure(&mut self, error: &Error) {
        if !self.is_due() {
            return;
        }
        self.failed_commits += 1;
        if self.failed_commits >= MAX_ATTEMPTS {
            let texts = self.pending.len();
            tracing::error!(%error, texts, "deferred index tasks failed repeatedly; left to the sweep for markers");
            self.pending.clear();
            self.failed_commits = 0;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &DeferredTask> {
        self.pending.iter().chain(&self.new)
    }

    fn is_due(&self) -> bool {
        let bytes = || self.all().map(|deferred| deferred.task.size()).sum::<usize>();
        self.flush_requested || self.all().count() >= MAX_DEFERRED || bytes() >= MAX_DEFERRED_BYTES
    }
}

/// The number of pending tasks, for other threads.
#[derive(Default)]
pub(super) struct Backlog {
    pending: AtomicUsize,
    /// How many were ever deferred.
    total: AtomicU64,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }
}

/// Requests a flush when the store is idle, so that no task is pending for long.
pub(super) struct IdleFlush {
    backlog: Arc<Backlog>,
    signal: SyncSender<()>,
}

impl IdleFlush {
    /// Returns the shared backlog, and the body of a thread that calls the function when no new task came for a while,
    /// until the function returns false: the writer has stopped.
    pub(super) fn new<F: Fn() -> bool + Send>(
        request_flush: F,
    ) -> (Self, Arc<Backlog>, impl FnOnce() + Send + use<F>) {
        let backlog = Arc::<Backlog>::default();
        let (signal, signals) = sync_channel(1);
        let shared = backlog.clone();
        (Self { backlog: backlog.clone(), signal }, backlog, move || {
            flush_when_idle(&shared, &signals, request_flush);
        })
    }

    /// Publishes the backlog after a commit. Call it before the commit is acknowledged.
    pub(super) fn publish(&self, deferred: &DeferredTasks) {
        self.backlog.pending.store(deferred.pending.len(), Ordering::Release);
        let before = self.backlog.total.swap(deferred.total, Ordering::Relaxed);
        // Once for new tasks only: failed ones are retried with the next.
        if before != deferred.total {
            // An earlier signal is still queued, or the thread is awake already.
            let _ = self.signal.try_send(());
        }
    }
}

fn flush_when_idle(backlog: &Backlog, signals: &Receiver<()>, request_flush: impl Fn() -> bool) {
    while signals.recv().is_ok() {
        let mut before = None;
        while before != Some(backlog.total.load(Ordering::Relaxed)) {
            before = Some(backlog.total.load(Ordering::Relaxed));
            std::thread::sleep(IDLE_DELAY);
        }
        if !backlog.is_empty() && !request_flush() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::Param;

    fn work(bytes: usize) -> DeferredTask {
        let text = "x".repeat(bytes);
        let owned = |params: &[Param<'_>]| DeferredStatement::new("", params).unwrap();
        DeferredTask { clear_marker: owned(&[]), task: owned(&[text.as_str().into()]) }
    }

    /// Defers so many tasks in one commit, and returns how many were due in it.
    fn commit(deferred: &mut DeferredTasks, count: usize, bytes: usize) -> usize {
        deferred.begin();
        (0..count).for_each(|_| deferred.defer(work(bytes)));
        let due = deferred.due().count();
        deferred.on_commit();
        due
    }

    #[test]
    fn tasks_are_pending_until_there_are_enough() {
        let mut deferred = DeferredTasks::default();
        for _ in 1..MAX_DEFERRED {
            assert_eq!(commit(&mut deferred, 1, 10), 0);
        }
        assert_eq!(commit(&mut deferred, 1, 10), MAX_DEFERRED);
        assert_eq!(commit(&mut deferred, 1, 10), 0, "what was done is gone");
        assert_eq!(commit(&mut deferred, 1, MAX_DEFERRED_BYTES), 2);
        assert_eq!(commit(&mut deferred, 2 * MAX_DEFERRED, 10), 2 * MAX_DEFERRED);
    }

    #[test]
    fn a_flush_request_runs_pending_tasks() {
        let mut deferred = DeferredTasks::default();
        commit(&mut deferred, 3, 10);
        deferred.begin();
        deferred.defer(work(10));
        deferred.request_flush();
        assert_eq!(deferred.due().count(), 4);
        deferred.on_commit();
        assert_eq!(commit(&mut deferred, 1, 10), 0, "nobody wants it any more");
    }

    #[test]
    fn a_failed_commit_keeps_pending_tasks_and_drops_its_own() {
        let mut deferred = DeferredTasks::default();
        commit(&mut deferred, 3, 10);
        deferred.begin();
        deferred.defer(work(10));
        let count = deferred.deferred_count();
        deferred.defer(work(10));
        deferred.truncate(count);
        deferred.request_flush();
        assert_eq!(deferred.due().count(), 4, "without that of a job that failed");
        deferred.begin();
        deferred.request_flush();
        assert_eq!(deferred.due().count(), 3);
    }

    #[test]
    fn tasks_that_fail_repeatedly_are_dropped() {
        let mut deferred = DeferredTasks::default();
        let error = Error::Unavailable("the disk is full".into());
        commit(&mut deferred, 3, 10);
        for _ in 0..MAX_ATTEMPTS {
            deferred.begin();
            deferred.on_failure(&error);
            assert!(!deferred.is_empty(), "that failed for something else");
        }
        for _ in 1..MAX_ATTEMPTS {
            deferred.begin();
            deferred.request_flush();
            deferred.on_failure(&error);
            assert!(!deferred.is_empty());
        }
        deferred.on_failure(&error);
        assert!(deferred.is_empty());
    }

    #[test]
    fn the_writer_is_asked_to_flush_when_idle() {
        let (sender, signals) = mpsc::channel();
        let (idle_flush, backlog, body) = IdleFlush::new(move || sender.send(()).is_ok());
        let thread = std::thread::spawn(body);
        let mut deferred = DeferredTasks::default();
        assert!(backlog.is_empty());
        commit(&mut deferred, 1, 10);
        idle_flush.publish(&deferred);
        assert!(!backlog.is_empty());
        signals.recv().unwrap();
        deferred.begin();
        deferred.request_flush();
        deferred.on_commit();
        idle_flush.publish(&deferred);
        assert!(backlog.is_empty());
        drop(idle_flush);
        thread.join().unwrap();
    }
}
