//! The transactions that SQLite's writer runs, and how those of one commit are kept apart.
//!
//! A savepoint keeps a copy of every page that changes behind it, which costs more than many a transaction's own work.
//! Jobs that can be run again do without: they are undone together, and those that had succeeded are run once more.

use tokio::sync::oneshot;

use super::{
    scope::Scope,
    sqlite::{
        polling::polled,
        session::{SqliteSession, Undo},
    },
    transaction::SystemTx,
    wake::Wake,
    work::Work,
};
use crate::error::{Error, Result};

/// A transaction that waits for the writer, then for the commit, and its caller's channel.
pub(super) struct Job {
    scope: Scope,
    work: Box<dyn Work>,
    succeeded: bool,
    /// For the listeners, after the commit.
    news: Vec<Wake>,
    done: oneshot::Sender<Box<dyn Work>>,
}

impl Job {
    /// A transaction for the writer, and what waits for its outcome.
    pub(super) fn new(scope: Scope, work: Box<dyn Work>) -> (Self, oneshot::Receiver<Box<dyn Work>>) {
        let (done, wait) = oneshot::channel();
        (Self { scope, work, succeeded: false, news: Vec::new(), done }, wait)
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.work.is_repeatable()
    }

    /// Runs it and tells whether it succeeded.
    fn run(&mut self, tx: &mut SystemTx) -> bool {
        tx.enter(&self.scope.workspace());
        if let Ok(session) = tx.sqlite() {
            session.adds_later(self.is_repeatable());
        }
        self.succeeded = polled(tx, &mut *self.work);
        self.news = std::mem::take(&mut tx.inner.wakes);
        self.succeeded
    }

    /// Makes it fail.
    fn fail(&mut self, error: Error) {
        self.succeeded = false;
        self.work.fail(error);
    }

    /// Tells the caller how it went, and gives what is to be told to listeners after that.
    pub(super) fn acknowledge(mut self, committed: Result<()>) -> Vec<Wake> {
        if self.succeeded
            && let Err(error) = committed
        {
            self.fail(error);
        }
        // A caller that went away does not need its answer.
        let _ = self.done.send(self.work);
        if self.succeeded { self.news } else { Vec::new() }
    }
}

/// The jobs of one commit.
#[derive(Default)]
pub(super) struct JobGroup {
    pub(super) jobs: Vec<Job>,
    /// Where the last jobs begin that are undone together, and how.
    together: Option<(usize, Undo)>,
    /// Whether one of those has failed, so that the rest of the group is kept apart.
    careful: bool,
}

impl JobGroup {
    /// Runs one more job.
    pub(super) fn run(&mut self, tx: &mut SystemTx, job: Job) {
        let repeatable = job.is_repeatable();
        self.jobs.push(job);
        let index = self.jobs.len() - 1;
        if !repeatable || self.careful {
            if let Err(error) = self.part(tx, repeatable) {
                self.jobs[index].fail(error);
            } else {
                run_apart(tx, &mut self.jobs[index]);
            }
            return;
        }
        if self.together.is_none() {
            match tx.sqlite().and_then(SqliteSession::begin_job) {
                Ok(undo) => self.together = Some((index, undo)),
                Err(error) => return self.jobs[index].fail(error),
            }
        }
        if !self.jobs[index].run(tx) {
            self.run_again(tx);
        }
    }

    /// Ends the jobs that are undone together. Who else comes sees the sums that they add to.
    fn part(&mut self, tx: &mut SystemTx, repeatable: bool) -> Result<()> {
        let session = tx.sqlite()?;
        if let Some((_, undo)) = self.together.take() {
            session.end_job(undo, true)?;
        }
        if repeatable { Ok(()) } else { session.store_sums() }
    }

    /// Undoes the last jobs, one of which failed, and runs each of them apart.
    fn run_again(&mut self, tx: &mut SystemTx) {
        let Some((start, undo)) = self.together.take() else { return };
        self.careful = true;
        let undone = tx.sqlite().and_then(|session| session.end_job(undo, false));
        for job in &mut self.jobs[start..] {
            match &undone {
                Ok(()) => run_apart(tx, job),
                Err(error) => job.fail(Error::of_group(error)),
            }
        }
    }
}

/// Runs a job so that its failure undoes what it did, and nothing that others of its group did.
fn run_apart(tx: &mut SystemTx, job: &mut Job) {
    let undo = match tx.sqlite().and_then(SqliteSession::begin_job) {
        Ok(undo) => undo,
        Err(error) => return job.fail(error),
    };
    let succeeded = job.run(tx);
    if let Err(error) = tx.sqlite().and_then(|session| session.end_job(undo, succeeded)) {
        job.fail(error);
    }
}
