//! Runs work on SQLite: polled once, on the thread that has the connection.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll, Waker},
};

use rusqlite::Connection;

use super::session::SqliteSession;
use crate::{
    error::Error,
    sql::{scope::Scope, session::Session, transaction::SystemTx, work::Work},
};

/// A connection that no transaction uses.
pub(super) fn idle(connection: Connection) -> SystemTx {
    SystemTx::new(Session::Sqlite(SqliteSession::new(connection)), &Scope::System)
}

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

/// The same for work that only reads, in one transaction: all its statements share a snapshot.
pub(super) fn in_snapshot(tx: &mut SystemTx, work: &mut dyn Work) {
    let control = |tx: &mut SystemTx, sql| tx.sqlite().and_then(|session| session.control(sql));
    if let Err(error) = control(tx, "BEGIN") {
        work.fail(error);
        return;
    }
    polled(tx, work);
    if let Err(error) = control(tx, "ROLLBACK") {
        work.fail(error);
    }
}
