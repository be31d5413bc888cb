//! The transactions that SQLite's writer runs, and how those of one commit are isolated.
//!
//! A savepoint keeps a copy of every page that changes after it, which often costs more than the transaction's own
//! work. Repeatable jobs share one: they are rolled back together, and those that had succeeded run again.

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

/// A transaction queued for the writer, with its caller's channel.
pub(super) struct Job {
    scope: Scope,
    work: Box<dyn Work>,
    succeeded: bool,
    /// Sent to the listeners after the commit.
    wakes: Vec<Wake>,
    done: oneshot::Sender<Box<dyn Work>>,
}

impl Job {
    /// A transaction for the writer, and the channel for its outcome.
    pub(super) fn new(scope: Scope, work: Box<dyn Work>) -> (Self, oneshot::Receiver<Box<dyn Work>>) {
        let (done, wait) = oneshot::channel();
        (Self { scope, work, succeeded: false, wakes: Vec::new(), done }, wait)
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.work.is_repeatable()
    }

    /// Runs it and returns whether it succeeded.
    fn run(&mut self, tx: &mut SystemTx) -> bool {
        tx.enter(&self.scope.workspace());
        if let Ok(session) = tx.sqlite() {
            session.defers_increments(self.is_repeatable());
        }
        self.succeeded = polled(tx, &mut *self.work);
        self.wakes = std::mem::take(&mut tx.inner.wakes);
        self.succeeded
    }

    /// Makes it fail.
    fn fail(&mut self, error: Error) {
        self.succeeded = false;
        self.work.fail(error);
    }

    /// Sends the outcome to the caller, and returns the wake-ups to send after that.
    pub(super) fn acknowledge(mut self, committed: Result<()>) -> Vec<Wake> {
        if self.succeeded
            && let Err(error) = committed
        {
            self.fail(error);
        }
        // The caller may have gone.
        let _ = self.done.send(self.work);
        if self.succeeded { self.wakes } else { Vec::new() }
    }
}

/// The jobs of one commit.
#[derive(Default)]
pub(super) struct JobGroup {
    pub(super) jobs: Vec<Job>,
    /// The first of the jobs that share a savepoint, and how to roll them back.
    shared: Option<(usize, Undo)>,
    /// Whether one of those has failed, so that the rest of the group runs isolated.
    isolate: bool,
}

impl JobGroup {
    /// Runs one more job.
    pub(super) fn run(&mut self, tx: &mut SystemTx, job: Job) {
        let repeatable = job.is_repeatable();
        self.jobs.push(job);
        let index = self.jobs.len() - 1;
        if !repeatable || self.isolate {
            if let Err(error) = self.close_shared(tx, repeatable) {
                self.jobs[index].fail(error);
            } else {
                run_isolated(tx, &mut self.jobs[index]);
            }
            return;
        }
        if self.shared.is_none() {
            match tx.sqlite().and_then(SqliteSession::begin_job) {
                Ok(undo) => self.shared = Some((index, undo)),
                Err(error) => return self.jobs[index].fail(error),
            }
        }
        if !self.jobs[index].run(tx) {
            self.rerun_isolated(tx);
        }
    }

    /// Closes the shared savepoint. A job that is not repeatable sees the increments so far.
    fn close_shared(&mut self, tx: &mut SystemTx, repeatable: bool) -> Result<()> {
        let session = tx.sqlite()?;
        if let Some((_, undo)) = self.shared.take() {
            session.end_job(undo, true)?;
        }
        if repeatable { Ok(()) } else { session.write_increments() }
    }

    /// Rolls back the shared savepoint, in which a job failed, and runs each of its jobs isolated.
    fn rerun_isolated(&mut self, tx: &mut SystemTx) {
        let Some((start, undo)) = self.shared.take() else { return };
        self.isolate = true;
        let undone = tx.sqlite().and_then(|session| session.end_job(undo, false));
        for job in &mut self.jobs[start..] {
            match &undone {
                Ok(()) => run_isolated(tx, job),
                Err(error) => job.fail(Error::of_group(error)),
            }
        }
    }
}

/// Runs a job in its own savepoint, so that its failure rolls back nothing else of its group.
fn run_isolated(tx: &mut SystemTx, job: &mut Job) {
    let undo = match tx.sqlite().and_then(SqliteSession::begin_job) {
        Ok(undo) => undo,
        Err(error) => return job.fail(error),
    };
    let succeeded = job.run(tx);
    if let Err(error) = tx.sqlite().and_then(|session| session.end_job(undo, succeeded)) {
        job.fail(error);
    }
}
