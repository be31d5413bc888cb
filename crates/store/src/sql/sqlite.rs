//! SQLite: one writer thread that commits concurrent transactions as a group, and several readers.
//!
//! An fsync costs milliseconds, so the writer runs every transaction that is waiting inside one COMMIT, each but the
//! first in a savepoint, and acknowledges them after it. A transaction that fails or panics is rolled back alone.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    pin::pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::Connection;
use tokio::sync::{broadcast, oneshot};

use super::{
    FromRow, Param, Row, Scope, Session, SystemTx, Wake,
    value::{Cells, KeptStatement},
};
use crate::error::{Error, Result};

/// Transactions that may wait for the writer; more is refused as overload.
const WRITE_QUEUE: usize = 4096;
/// Reads that may wait for a reader.
const READ_QUEUE: usize = 4096;
/// Reader threads: enough that a slow read does not hold up the quick ones.
const READERS: usize = 4;
/// Transactions in one commit at most.
const GROUP: usize = 256;
/// How many times as long as the last commit a group may work before its own. A larger group costs less for each of its
/// transactions; a smaller one lets those who wait for it go on while the next one works.
const PATIENCE: u32 = 3;

type Acknowledge = Box<dyn FnOnce(Result<()>) + Send>;
type WriteJob = Box<dyn FnOnce(&mut SystemTx) -> Acknowledge + Send>;
type ReadJob = Box<dyn FnOnce(&mut SystemTx) + Send>;

pub(super) struct SqliteEngine {
    writes: Sender<WriteJob>,
    reads: Sender<ReadJob>,
    wakes: broadcast::Sender<Wake>,
}

impl SqliteEngine {
    pub(super) async fn open(path: PathBuf) -> Result<Self> {
        let (writes, write_jobs) = bounded::<WriteJob>(WRITE_QUEUE);
        let (reads, read_jobs) = bounded::<ReadJob>(READ_QUEUE);
        tokio::task::spawn_blocking(move || -> Result<()> {
            let writer = connect(&path, false)?;
            spawn("sqlite-writer", move || write_loop(writer, &write_jobs))?;
            for _ in 0..READERS {
                let reader = connect(&path, true)?;
                let jobs = read_jobs.clone();
                spawn("sqlite-reader", move || read_loop(reader, &jobs))?;
            }
            Ok(())
        })
        .await
        .map_err(|error| Error::Internal(error.to_string()))??;
        Ok(Self { writes, reads, wakes: broadcast::channel(1024).0 })
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Wake> {
        self.wakes.subscribe()
    }

    pub(super) async fn write<T, E, F>(&self, scope: Scope, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + Send + 'static,
    {
        let (done, wait) = oneshot::channel::<Result<T, E>>();
        let wakes = self.wakes.clone();
        let job: WriteJob = Box::new(move |tx| {
            tx.enter(&scope.workspace());
            let result = in_group(tx, body);
            let news = std::mem::take(&mut tx.inner.wakes);
            Box::new(move |committed| {
                let answer = match (result, committed) {
                    (Ok(value), Ok(())) => {
                        for wake in news {
                            // Nobody listening is fine.
                            let _ = wakes.send(wake);
                        }
                        Ok(value)
                    }
                    (Err(error), _) => Err(error),
                    (Ok(_), Err(error)) => Err(E::from(error)),
                };
                // A caller that went away does not need its answer.
                let _ = done.send(answer);
            })
        });
        submit(&self.writes, job)?;
        wait.await.map_err(|_| E::from(stopped()))?
    }

    pub(super) async fn read<T, E, F>(&self, scope: Scope, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + Send + 'static,
    {
        let (done, wait) = oneshot::channel::<Result<T, E>>();
        let job: ReadJob = Box::new(move |tx| {
            tx.enter(&scope.workspace());
            let _ = done.send(polled(tx, body));
        });
        submit(&self.reads, job)?;
        wait.await.map_err(|_| E::from(stopped()))?
    }

    pub(super) async fn snapshot<T, E, F>(&self, scope: Scope, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + Send + 'static,
    {
        let (done, wait) = oneshot::channel::<Result<T, E>>();
        let job: ReadJob = Box::new(move |tx| {
            tx.enter(&scope.workspace());
            let _ = done.send(in_snapshot(tx, body));
        });
        submit(&self.reads, job)?;
        wait.await.map_err(|_| E::from(stopped()))?
    }
}

fn submit<J>(queue: &Sender<J>, job: J) -> Result<()> {
    queue.try_send(job).map_err(|error| match error {
        TrySendError::Full(_) => Error::Overloaded,
        TrySendError::Disconnected(_) => stopped(),
    })
}

fn stopped() -> Error {
    Error::Unavailable("the SQLite thread has stopped".to_owned())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(|_| ())
        .map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}")))
}

fn connect(path: &Path, read_only: bool) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(512);
    // Otherwise a prepared statement is planned anew whenever other values are bound to it.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Pages that change with every mail are written back once for many mails: a log of about 16 MB.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 1_i64 << 30)?;
    connection.pragma_update(None, "cache_size", if read_only { -4_000 } else { -16_000 })?;
    if read_only {
        connection.pragma_update(None, "query_only", "ON")?;
    }
    Ok(connection)
}

fn idle(connection: Connection) -> SystemTx {
    SystemTx::new(Session::Sqlite(SqliteSession::new(connection)), &Scope::System)
}

fn write_loop(connection: Connection, jobs: &Receiver<WriteJob>) {
    let mut tx = idle(connection);
    let mut last_commit = Duration::ZERO;
    while let Ok(first) = jobs.recv() {
        let start = Instant::now();
        let begun = tx.sqlite().and_then(SqliteSession::begin_group);
        let mut group = vec![first(&mut tx)];
        while group.len() < GROUP
            && start.elapsed() < last_commit * PATIENCE
            && let Ok(job) = jobs.try_recv()
        {
            group.push(job(&mut tx));
        }
        let commit = Instant::now();
        let committed = begun.and_then(|()| tx.sqlite()?.end_group());
        last_commit = commit.elapsed();
        if committed.is_err() {
            // Fails when there is no transaction left, which is what we want.
            let _ = tx.sqlite().and_then(|session| session.batch("ROLLBACK"));
        }
        for acknowledge in group {
            acknowledge(committed.as_ref().copied().map_err(|error| Error::Unavailable(error.to_string())));
        }
    }
}

fn read_loop(connection: Connection, jobs: &Receiver<ReadJob>) {
    let mut tx = idle(connection);
    while let Ok(job) = jobs.recv() {
        job(&mut tx);
    }
}

/// Runs a body so that its failure undoes what it did, and nothing that others of its group did.
fn in_group<T, E, F>(tx: &mut SystemTx, body: F) -> Result<T, E>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut SystemTx) -> Result<T, E>,
{
    let savepoint = tx.sqlite()?.begin_job()?;
    let result = polled(tx, body);
    tx.sqlite()?.end_job(savepoint, result.is_ok())?;
    result
}

/// Runs a body that only reads in one transaction, which is what makes its statements see the same state.
fn in_snapshot<T, E, F>(tx: &mut SystemTx, body: F) -> Result<T, E>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut SystemTx) -> Result<T, E>,
{
    tx.sqlite()?.batch("BEGIN")?;
    let result = polled(tx, body);
    tx.sqlite()?.batch("ROLLBACK")?;
    result
}

/// Polls a body that can only wait for this engine, which never waits. A panic in it ends that transaction alone.
fn polled<T, E, F>(tx: &mut SystemTx, body: F) -> Result<T, E>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut SystemTx) -> Result<T, E>,
{
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        match pin!(body(tx)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(E::from(Error::Internal(
                "a transaction waited for something other than the database".to_owned(),
            ))),
        }
    }));
    outcome.unwrap_or_else(|_| Err(E::from(Error::Internal("a transaction panicked".to_owned()))))
}

/// A connection while a transaction uses it.
pub(super) struct SqliteSession {
    connection: Connection,
    /// Statements that are kept for the end of the group.
    at_end: Vec<KeptStatement>,
    /// The last number that was given out in the group.
    number: Option<i64>,
    /// Whether nothing of the group is done yet.
    untouched: bool,
}

/// How the work of one job can be undone.
#[derive(Clone, Copy)]
enum Undo {
    /// It came first: with the whole transaction. A savepoint would keep a copy of every page that the job changes.
    Transaction,
    /// With its savepoint, and the statements kept after these.
    Savepoint { kept: usize },
}

impl SqliteSession {
    fn new(connection: Connection) -> Self {
        Self { connection, at_end: Vec::new(), number: None, untouched: true }
    }

    fn begin_group(&mut self) -> Result<()> {
        self.at_end.clear();
        self.number = None;
        self.untouched = true;
        self.batch("BEGIN IMMEDIATE")
    }

    fn begin_job(&mut self) -> Result<Undo> {
        if self.connection.is_autocommit() {
            return Err(Error::Unavailable("the database is locked or cannot be written".to_owned()));
        }
        if std::mem::take(&mut self.untouched) {
            return Ok(Undo::Transaction);
        }
        self.batch("SAVEPOINT job")?;
        Ok(Undo::Savepoint { kept: self.at_end.len() })
    }

    fn end_job(&mut self, undo: Undo, succeeded: bool) -> Result<()> {
        match undo {
            Undo::Transaction if succeeded => Ok(()),
            Undo::Transaction => {
                // Some failures, such as a full disk, have ended it already.
                if !self.connection.is_autocommit() {
                    self.batch("ROLLBACK")?;
                }
                self.begin_group()
            }
            Undo::Savepoint { kept } => {
                if !succeeded {
                    self.at_end.truncate(kept);
                    self.batch("ROLLBACK TO job")?;
                }
                self.batch("RELEASE job")
            }
        }
    }

    fn end_group(&mut self) -> Result<()> {
        for kept in std::mem::take(&mut self.at_end) {
            self.run(&kept.sql, &kept.params())?;
        }
        self.batch("COMMIT")
    }

    /// Keeps a statement for the end of the group.
    pub(super) fn at_end(&mut self, sql: &str, params: &[Param<'_>]) {
        self.at_end.push(KeptStatement::new(sql, params));
    }

    /// A number above the one that a query finds and above all that were given out in this group.
    pub(super) fn next_number(&mut self, highest: &str) -> Result<i64> {
        let last = match self.number {
            Some(last) => last,
            None => self.all::<(i64,)>(highest, &[])?.first().map_or(0, |(found,)| *found),
        };
        self.number = Some(last + 1);
        Ok(last + 1)
    }

    pub(super) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let touched = statement.execute(rusqlite::params_from_iter(params))?;
        Ok(touched as u64)
    }

    pub(super) fn all<T: FromRow>(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(T::from_row(&mut Row { cells: Cells::Sqlite(row), next: 0 })?);
        }
        Ok(found)
    }

    pub(super) fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

/// SQLite numbers `$1` by first appearance and `?1` by its digit; only the latter is what we mean.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

impl SystemTx {
    fn sqlite(&mut self) -> Result<&mut SqliteSession> {
        match &mut self.inner.session {
            Session::Sqlite(session) => Ok(session),
            Session::Postgres(_) => Err(stopped()),
        }
    }
}
