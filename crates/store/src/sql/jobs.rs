//! The transactions that SQLite's writer runs, and how those of one commit are kept apart.
//!
//! A savepoint keeps a copy of every page that changes behind it, which costs more than many a transaction's own work.
//! Jobs that can be run again do without: they are undone together, and those that had succeeded are run once more.

use tokio::sync::oneshot;

use super::{
    Scope, SystemTx, Wake,
    sqlite::{SqliteSession, Undo, polled},
};
use crate::error::{Error, Result};

/// What a transaction does.
pub(super) trait Body<T, E> {
    /// Whether it may be run again once it is undone.
    const REPEATABLE: bool;
    fn run(&mut self, tx: &mut SystemTx) -> Result<T, E>;
}

/// A body that can be run once.
pub(super) struct Once<F>(pub(super) Option<F>);

impl<T, E, F> Body<T, E> for Once<F>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut SystemTx) -> Result<T, E>,
{
    const REPEATABLE: bool = false;
    fn run(&mut self, tx: &mut SystemTx) -> Result<T, E> {
        match self.0.take() {
            Some(body) => polled(tx, body),
            None => Err(E::from(Error::Internal("a transaction was run twice".to_owned()))),
        }
    }
}

/// A body that can be run again.
pub(super) struct Again<F>(pub(super) F);

impl<T, E, F> Body<T, E> for Again<F>
where
    E: From<Error>,
    F: AsyncFn(&mut SystemTx) -> Result<T, E>,
{
    const REPEATABLE: bool = true;
    fn run(&mut self, tx: &mut SystemTx) -> Result<T, E> {
        polled(tx, &self.0)
    }
}

/// A transaction that waits for the writer, then for the commit.
pub(super) trait Job: Send {
    fn is_repeatable(&self) -> bool;
    /// Runs it and tells whether it succeeded.
    fn run(&mut self, tx: &mut SystemTx) -> bool;
    /// Makes it fail.
    fn fail(&mut self, error: Error);
    /// Tells the caller how it went, and gives what is to be told to listeners after that.
    fn acknowledge(self: Box<Self>, committed: Result<()>) -> Vec<Wake>;
}

/// A transaction with whoever waits for it.
pub(super) struct Write<T, E, B> {
    scope: Scope,
    body: B,
    result: Option<Result<T, E>>,
    /// For the listeners, after the commit.
    news: Vec<Wake>,
    done: oneshot::Sender<Result<T, E>>,
}

impl<T, E, B> Write<T, E, B> {
    /// A transaction for the writer, and what waits for its outcome.
    pub(super) fn new(scope: Scope, body: B) -> (Box<Self>, oneshot::Receiver<Result<T, E>>) {
        let (done, wait) = oneshot::channel();
        (Box::new(Self { scope, body, result: None, news: Vec::new(), done }), wait)
    }
}

impl<T, E, B> Job for Write<T, E, B>
where
    T: Send,
    E: From<Error> + Send,
    B: Body<T, E> + Send,
{
    fn is_repeatable(&self) -> bool {
        B::REPEATABLE
    }

    fn run(&mut self, tx: &mut SystemTx) -> bool {
        tx.enter(&self.scope.workspace());
        if let Ok(session) = tx.sqlite() {
            session.adds_later(B::REPEATABLE);
        }
        let result = self.body.run(tx);
        self.news = std::mem::take(&mut tx.inner.wakes);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(E::from(error)));
    }

    fn acknowledge(self: Box<Self>, committed: Result<()>) -> Vec<Wake> {
        let answer = match (self.result, committed) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(_)), Err(error)) => Err(E::from(error)),
            (None, _) => Err(E::from(Error::Internal("a transaction was not run".to_owned()))),
        };
        let news = if answer.is_ok() { self.news } else { Vec::new() };
        // A caller that went away does not need its answer.
        let _ = self.done.send(answer);
        news
    }
}

/// The jobs of one commit.
#[derive(Default)]
pub(super) struct JobGroup {
    pub(super) jobs: Vec<Box<dyn Job>>,
    /// Where the last jobs begin that are undone together, and how.
    together: Option<(usize, Undo)>,
    /// Whether one of those has failed, so that the rest of the group is kept apart.
    careful: bool,
}

impl JobGroup {
    /// Runs one more job.
    pub(super) fn run(&mut self, tx: &mut SystemTx, job: Box<dyn Job>) {
        let repeatable = job.is_repeatable();
        self.jobs.push(job);
        let index = self.jobs.len() - 1;
        if !repeatable || self.careful {
            if let Err(error) = self.part(tx, repeatable) {
                self.jobs[index].fail(error);
            } else {
                run_apart(tx, &mut *self.jobs[index]);
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
                Ok(()) => run_apart(tx, &mut **job),
                Err(error) => job.fail(Error::Unavailable(error.to_string())),
            }
        }
    }
}

/// Runs a job so that its failure undoes what it did, and nothing that others of its group did.
fn run_apart(tx: &mut SystemTx, job: &mut dyn Job) {
    let undo = match tx.sqlite().and_then(SqliteSession::begin_job) {
        Ok(undo) => undo,
        Err(error) => return job.fail(error),
    };
    let succeeded = job.run(tx);
    if let Err(error) = tx.sqlite().and_then(|session| session.end_job(undo, succeeded)) {
        job.fail(error);
    }
}
