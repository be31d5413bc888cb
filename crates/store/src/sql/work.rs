//! The body of a transaction, with its types erased.
//!
//! Engines, queues and jobs only need to run it and to know whether it succeeded. With the types they would be
//! monomorphised for every transaction of the service, hundreds of times. One boxed future per transaction costs
//! nothing next to a commit.

use std::{any::Any, marker::PhantomData, pin::Pin};

use super::transaction::{SystemTx, Tx};
use crate::error::{Error, Result};

/// The body of a transaction: an async closure whose future is `Send`. `AsyncFnOnce` bounds cannot express that, so
/// this trait does.
pub trait Body<'tx, X: 'tx, T, E>: Send + 'static {
    /// Its future.
    type Future: Future<Output = Result<T, E>> + Send + 'tx;
    /// Starts it.
    fn begin(self, tx: &'tx mut X) -> Self::Future;
}

impl<'tx, X, T, E, F, R> Body<'tx, X, T, E> for F
where
    X: 'tx,
    F: FnOnce(&'tx mut X) -> R + Send + 'static,
    R: Future<Output = Result<T, E>> + Send + 'tx,
{
    type Future = R;
    fn begin(self, tx: &'tx mut X) -> R {
        self(tx)
    }
}

/// What a body receives: a transaction of one workspace, or one across workspaces.
pub(super) trait View: Send + 'static {
    fn of(tx: &mut SystemTx) -> &mut Self;
}

impl View for Tx {
    fn of(tx: &mut SystemTx) -> &mut Self {
        &mut tx.inner
    }
}

impl View for SystemTx {
    fn of(tx: &mut SystemTx) -> &mut Self {
        tx
    }
}

/// The body and outcome of a transaction, with its types erased.
pub(super) trait Work: Any + Send {
    /// Whether it may run again after a rollback.
    fn is_repeatable(&self) -> bool;
    /// Runs it and returns whether it succeeded.
    fn run<'a>(&'a mut self, tx: &'a mut SystemTx) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
    /// Makes it fail.
    fn fail(&mut self, error: Error);
}

/// The same with its types, for the caller that awaits the outcome.
pub(super) trait TypedWork: Work + Sized {
    type Value;
    type Error: From<Error>;
    fn outcome(self) -> Option<Result<Self::Value, Self::Error>>;
}

/// The typed outcome of erased work.
pub(super) fn outcome_of<W: TypedWork>(done: Result<Box<dyn Work>>) -> Result<W::Value, W::Error> {
    let done: Box<dyn Any> = done?;
    let work = done.downcast::<W>().ok();
    work.and_then(|work| work.outcome()).unwrap_or_else(|| Err(never_run().into()))
}

fn never_run() -> Error {
    Error::Internal("a transaction was not run".into())
}

/// Work that runs once.
pub(super) struct SingleRunWork<X, T, E, F> {
    body: Option<F>,
    result: Option<Result<T, E>>,
    view: PhantomData<fn(X)>,
}

impl<X, T, E, F> SingleRunWork<X, T, E, F> {
    pub(super) fn new(body: F) -> Self {
        Self { body: Some(body), result: None, view: PhantomData }
    }
}

impl<X, T, E, F> Work for SingleRunWork<X, T, E, F>
where
    X: View,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'tx> Body<'tx, X, T, E>,
{
    fn is_repeatable(&self) -> bool {
        false
    }

    fn run<'a>(&'a mut self, tx: &'a mut SystemTx) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let result = match self.body.take() {
                Some(body) => body.begin(X::of(tx)).await,
                None => Err(E::from(Error::Internal("a transaction was run twice".into()))),
            };
            self.result.insert(result).is_ok()
        })
    }

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(E::from(error)));
    }
}

impl<X, T, E, F> TypedWork for SingleRunWork<X, T, E, F>
where
    X: View,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'tx> Body<'tx, X, T, E>,
{
    type Value = T;
    type Error = E;
    fn outcome(self) -> Option<Result<T, E>> {
        self.result
    }
}

/// Work that may run again.
pub(super) struct RepeatableWork<T, E, F> {
    body: F,
    result: Option<Result<T, E>>,
}

impl<T, E, F> RepeatableWork<T, E, F> {
    pub(super) fn new(body: F) -> Self {
        Self { body, result: None }
    }
}

impl<T, E, F> Work for RepeatableWork<T, E, F>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'tx> Body<'tx, SystemTx, T, E> + Clone,
{
    fn is_repeatable(&self) -> bool {
        true
    }

    fn run<'a>(&'a mut self, tx: &'a mut SystemTx) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let result = self.body.clone().begin(tx).await;
            self.result.insert(result).is_ok()
        })
    }

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(E::from(error)));
    }
}

impl<T, E, F> TypedWork for RepeatableWork<T, E, F>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'tx> Body<'tx, SystemTx, T, E> + Clone,
{
    type Value = T;
    type Error = E;
    fn outcome(self) -> Option<Result<T, E>> {
        self.result
    }
}
