//! Work that SQLite's writer puts off until several commits can share it.
//!
//! Its index for search writes a part of its own for every commit, whether that holds one text or thirty. So texts wait in
//! memory until some have come together, somebody wants to search, or nothing new comes. With its mail each leaves a mark
//! in the store, which goes with the work: what was lost with the process is found by its mark.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use super::kept::KeptStatement;
use crate::error::Error;

/// So much may wait; what comes then takes all of it along.
const MAX_DEFERRED: usize = 32;
const MAX_DEFERRED_BYTES: usize = 256 * 1024;
/// How long nothing new comes before somebody asks for what waits.
const PAUSE: Duration = Duration::from_millis(50);
/// How often in a row it may fail before it is left to whoever looks for its marks: it must not keep everything else from
/// being written for ever.
const TRIES: u32 = 8;

/// One thing that was put off.
pub(super) struct PutOff {
    /// Takes its mark away. Where there is none any more, there is nothing left to do.
    pub(super) mark: KeptStatement,
    pub(super) work: KeptStatement,
}

/// The work that waits.
#[derive(Default)]
pub(super) struct Deferred {
    /// That of commits before.
    waiting: Vec<PutOff>,
    /// That of the commit at work.
    new: Vec<PutOff>,
    /// Whether the commit at work is to take all of it along.
    wanted: bool,
    /// How many things were ever put off.
    ever: u64,
    /// How many commits in a row could not do what was due.
    failed: u32,
}

impl Deferred {
    /// Begins a commit, or begins it anew.
    pub(super) fn begin(&mut self) {
        self.new.clear();
        self.wanted = false;
    }

    pub(super) fn put_off(&mut self, work: PutOff) {
        self.new.push(work);
    }

    /// How much the commit at work has put off.
    pub(super) fn put_off_so_far(&self) -> usize {
        self.new.len()
    }

    /// Forgets what it put off after that.
    pub(super) fn forget_after(&mut self, so_far: usize) {
        self.new.truncate(so_far);
    }

    /// Has the commit at work take everything along.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// What the commit has to do before it ends.
    pub(super) fn due(&self) -> impl Iterator<Item = &PutOff> {
        let due = self.is_due();
        self.all().filter(move |_| due)
    }

    /// Ends a commit that did what was due.
    pub(super) fn end(&mut self) {
        if self.is_due() {
            self.waiting.clear();
            self.new.clear();
            self.failed = 0;
        } else {
            self.ever += self.new.len() as u64;
            self.waiting.append(&mut self.new);
        }
    }

    /// Ends a commit that failed.
    pub(super) fn fail(&mut self, error: &Error) {
        if !self.is_due() {
            return;
        }
        self.failed += 1;
        if self.failed >= TRIES {
            tracing::error!(%error, texts = self.waiting.len(), "what was put off cannot be done now");
            self.waiting.clear();
            self.failed = 0;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &PutOff> {
        self.waiting.iter().chain(&self.new)
    }

    fn is_due(&self) -> bool {
        let bytes = || self.all().map(|put_off| put_off.work.size()).sum::<usize>();
        self.wanted || self.all().count() >= MAX_DEFERRED || bytes() >= MAX_DEFERRED_BYTES
    }
}

/// What others know of the work that waits.
#[derive(Default)]
pub(super) struct Backlog {
    waiting: AtomicUsize,
    /// How many things were ever put off.
    ever: AtomicU64,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

/// Who sees to it that nothing waits for long.
pub(super) struct Watch {
    backlog: Arc<Backlog>,
    ask: SyncSender<()>,
}

impl Watch {
    /// With what others know, and with the work of a thread. That calls the function when nothing new came for a while, until
    /// the function says that there is nobody left to ask.
    pub(super) fn new<F: Fn() -> bool + Send>(
        ask_writer: F,
    ) -> (Self, Arc<Backlog>, impl FnOnce() + Send + use<F>) {
        let backlog = Arc::<Backlog>::default();
        let (ask, asked) = sync_channel(1);
        let watched = backlog.clone();
        (Self { backlog: backlog.clone(), ask }, backlog, move || watch(&watched, &asked, ask_writer))
    }

    /// Tells what waits after a commit. To be called before anybody hears of that.
    pub(super) fn tell(&self, deferred: &Deferred) {
        self.backlog.waiting.store(deferred.waiting.len(), Ordering::Release);
        let before = self.backlog.ever.swap(deferred.ever, Ordering::Relaxed);
        // Once for all that is new: what could not be done is tried again with the next.
        if before != deferred.ever {
            // Who was asked before has not begun yet, or is looking already.
            let _ = self.ask.try_send(());
        }
    }
}

fn watch(backlog: &Backlog, asked: &Receiver<()>, ask_writer: impl Fn() -> bool) {
    while asked.recv().is_ok() {
        let mut before = None;
        while before != Some(backlog.ever.load(Ordering::Relaxed)) {
            before = Some(backlog.ever.load(Ordering::Relaxed));
            std::thread::sleep(PAUSE);
        }
        if !backlog.is_empty() && !ask_writer() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::Param;

    fn work(bytes: usize) -> PutOff {
        let text = "x".repeat(bytes);
        let keep = |params: &[Param<'_>]| KeptStatement::new("", params).unwrap();
        PutOff { mark: keep(&[]), work: keep(&[text.as_str().into()]) }
    }

    /// Puts so many off in a commit of their own, and tells how many were due in it.
    fn commit(deferred: &mut Deferred, count: usize, bytes: usize) -> usize {
        deferred.begin();
        (0..count).for_each(|_| deferred.put_off(work(bytes)));
        let due = deferred.due().count();
        deferred.end();
        due
    }

    #[test]
    fn work_waits_until_there_is_much_of_it() {
        let mut deferred = Deferred::default();
        for _ in 1..MAX_DEFERRED {
            assert_eq!(commit(&mut deferred, 1, 10), 0);
        }
        assert_eq!(commit(&mut deferred, 1, 10), MAX_DEFERRED);
        assert_eq!(commit(&mut deferred, 1, 10), 0, "what was done is gone");
        assert_eq!(commit(&mut deferred, 1, MAX_DEFERRED_BYTES), 2);
        assert_eq!(commit(&mut deferred, 2 * MAX_DEFERRED, 10), 2 * MAX_DEFERRED);
    }

    #[test]
    fn work_is_done_when_somebody_wants_it() {
        let mut deferred = Deferred::default();
        commit(&mut deferred, 3, 10);
        deferred.begin();
        deferred.put_off(work(10));
        deferred.want();
        assert_eq!(deferred.due().count(), 4);
        deferred.end();
        assert_eq!(commit(&mut deferred, 1, 10), 0, "nobody wants it any more");
    }

    #[test]
    fn a_commit_that_fails_keeps_what_waited_and_forgets_its_own() {
        let mut deferred = Deferred::default();
        commit(&mut deferred, 3, 10);
        deferred.begin();
        deferred.put_off(work(10));
        let so_far = deferred.put_off_so_far();
        deferred.put_off(work(10));
        deferred.forget_after(so_far);
        deferred.want();
        assert_eq!(deferred.due().count(), 4, "without that of a job that failed");
        deferred.begin();
        deferred.want();
        assert_eq!(deferred.due().count(), 3);
    }

    #[test]
    fn work_that_fails_again_and_again_is_left_to_others() {
        let mut deferred = Deferred::default();
        let error = Error::Unavailable("the disk is full".into());
        commit(&mut deferred, 3, 10);
        for _ in 0..TRIES {
            deferred.begin();
            deferred.fail(&error);
            assert!(!deferred.is_empty(), "that failed for something else");
        }
        for _ in 1..TRIES {
            deferred.begin();
            deferred.want();
            deferred.fail(&error);
            assert!(!deferred.is_empty());
        }
        deferred.fail(&error);
        assert!(deferred.is_empty());
    }

    #[test]
    fn the_writer_is_asked_once_nothing_new_comes() {
        let (sender, asked) = mpsc::channel();
        let (watch, backlog, look) = Watch::new(move || sender.send(()).is_ok());
        let looking = std::thread::spawn(look);
        let mut deferred = Deferred::default();
        assert!(backlog.is_empty());
        commit(&mut deferred, 1, 10);
        watch.tell(&deferred);
        assert!(!backlog.is_empty());
        asked.recv().unwrap();
        deferred.begin();
        deferred.want();
        deferred.end();
        watch.tell(&deferred);
        assert!(backlog.is_empty());
        drop(watch);
        looking.join().unwrap();
    }
}
