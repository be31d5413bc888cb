//! Runs work on SQLite: polled once, on the thread that has the connection.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll, Waker},
};

use crate::{
    error::Error,
    sql::{transaction::SystemTx, work::Work},
};

/// Polls work that can only wait for this engine, which never blocks on a waker, and returns whether it succeeded. A
/// panic fails only that transaction.
pub(in crate::sql) fn polled(tx: &mut SystemTx, work: &mut dyn Work) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        work.run(tx).as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }));
    let fault = match outcome {
        Ok(Poll::Ready(succeeded)) => return succeeded,
        Ok(Poll::Pending) => "a transaction waited for something other than the database",
        Err(_) => "a transaction panicked",
    };
    work.fail(Error::Internal(fault.into()));
    false
}
