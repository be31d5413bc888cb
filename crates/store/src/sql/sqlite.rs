//! SQLite: one writer thread that commits concurrent transactions as a group, and several readers.
//!
//! An fsync costs milliseconds, so the writer runs all queued transactions inside one COMMIT, and acknowledges them
//! after it. A transaction that fails or panics is rolled back alone: repeatable ones, such as deliveries, share a
//! savepoint, and when one fails the others run again; each of the rest has its own savepoint.

mod inline;
pub(super) mod polling;
pub(super) mod session;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::{
    mpsc::{Receiver, Sender, channel, error::TrySendError},
    oneshot,
};

use self::{
    inline::InlineReaders,
    polling::{idle, in_snapshot},
    session::SqliteSession,
};
use super::{
    checkpoints::Checkpoints,
    deferred::{Backlog, IdleFlush},
    jobs::{Job, JobGroup},
    readers::{ReadJob, ReaderSlot, Readers},
    scope::Scope,
    transaction::SystemTx,
    wake::Wakes,
    work::{RepeatableWork, TypedWork, Work, outcome_of},
};
use crate::error::{Error, Result};

/// Maximum transactions queued for the writer; more are rejected as overload.
const MAX_QUEUED_WRITES: usize = 4096;
/// Reader threads beside one for each core, so that a slow read does not block the quick ones.
const SPARE_READERS: usize = 2;
/// Reader threads at most: each has a cache of its own.
const MAX_READERS: usize = 64;
/// Maximum transactions in one commit.
const MAX_GROUP_SIZE: usize = 256;
/// How long a group may run before its commit, as a multiple of the last commit's duration. A larger group costs less
/// per transaction; a smaller one is acknowledged earlier.
const MAX_COMMIT_MULTIPLE: u32 = 3;

pub(super) struct SqliteEngine {
    writes: Sender<Job>,
    reads: Readers,
    inline_reads: InlineReaders,
    wakes: Wakes,
    /// Counts the commits with jobs that are not repeatable.
    changes: Arc<AtomicU64>,
    backlog: Arc<Backlog>,
}

impl SqliteEngine {
    pub(super) async fn open(path: PathBuf) -> Result<Self> {
        let (writes, write_jobs) = channel::<Job>(MAX_QUEUED_WRITES);
        // Weak, since the writer runs as long as there is a strong sender.
        let to_writer = writes.downgrade();
        let (idle_flush, backlog, flush_body) =
            IdleFlush::new(move || to_writer.upgrade().is_some_and(|writes| request_flush(&writes)));
        let (reads, slots) = Readers::new(reader_count());
        let (changes, wakes) = (Arc::new(AtomicU64::new(0)), Wakes::new());
        let (counted, published) = (changes.clone(), wakes.clone());
        let inline_reads = tokio::task::spawn_blocking(move || -> Result<InlineReaders> {
            let mut writer = connect(&path, false)?;
            let (checkpoints, checkpoint_body) = Checkpoints::new(&mut writer, connect(&path, false)?)?;
            spawn("sqlite-log", checkpoint_body)?;
            spawn("sqlite-words", flush_body)?;
            let writer =
                Writer { tx: idle(writer), changes: counted, wakes: published, checkpoints, idle_flush };
            spawn("sqlite-writer", move || writer.work(write_jobs))?;
            for slot in slots {
                let reader = connect(&path, true)?;
                spawn("sqlite-reader", move || read_loop(reader, slot))?;
            }
            let inline = (0..InlineReaders::count(core_count()).min(MAX_READERS)).map(|_| {
                let connection = connect(&path, true)?;
                bound_cache(&connection)?;
                Ok(connection)
            });
            Ok(InlineReaders::new(inline.collect::<Result<_>>()?))
        })
        .await
        .map_err(|error| Error::Internal(error.into()))??;
        Ok(Self { writes, reads, inline_reads, wakes, changes, backlog })
    }

    pub(super) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Runs work on the writer, and waits for the commit.
    pub(super) async fn write(&self, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        let (job, wait) = Job::new(scope, work);
        self.writes.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Error::Overloaded,
            TrySendError::Closed(_) => stopped(),
        })?;
        wait.await.map_err(|_| stopped())
    }

    /// Runs all deferred tasks.
    pub(super) async fn flush_deferred(&self) -> Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        self.perform(Scope::System, flush_job()).await
    }

    async fn perform<W: TypedWork>(&self, scope: Scope, work: W) -> Result<W::Value, W::Error> {
        outcome_of::<W>(self.write(scope, Box::new(work)).await)
    }

    /// Runs a read of a few rows: here if it can be, else on a reader.
    pub(super) async fn short_read(&self, scope: Scope, mut work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        if self.inline_reads.run(&scope, &mut *work) {
            return Ok(work);
        }
        self.read(scope, work).await
    }

    /// Runs work on a reader, in one transaction: all its statements share a snapshot, and locking the write-ahead log
    /// once takes less than doing so for each.
    pub(super) async fn read(&self, scope: Scope, mut work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        let (done, wait) = oneshot::channel();
        let job: ReadJob = Box::new(move |tx| {
            tx.enter(&scope.workspace());
            in_snapshot(tx, &mut *work);
            let _ = done.send(work);
        });
        self.reads.submit(job)?;
        wait.await.map_err(|_| stopped())
    }
}

fn reader_count() -> usize {
    (core_count() + SPARE_READERS).min(MAX_READERS)
}

/// As many threads serve connections.
fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A job that makes its commit run the deferred tasks.
fn flush_job() -> impl TypedWork<Value = (), Error = Error> {
    RepeatableWork::new(async |tx: &mut SystemTx| {
        tx.sqlite()?.deferred.request_flush();
        Ok(())
    })
}

/// Queues such a job, and returns whether the writer still runs. A full queue is fine: the writer is busy anyway.
fn request_flush(writes: &Sender<Job>) -> bool {
    let (job, _) = Job::new(Scope::System, Box::new(flush_job()));
    !matches!(writes.try_send(job), Err(TrySendError::Closed(_)))
}

fn stopped() -> Error {
    Error::Unavailable("the SQLite thread has stopped".into())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(|_| ())
        .map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}").into()))
}

fn connect(path: &Path, read_only: bool) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(512);
    // Otherwise a prepared statement is re-planned whenever other values are bound to it.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Another thread runs the checkpoints.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 1_i64 << 30)?;
    if read_only {
        connection.pragma_update(None, "query_only", "ON")?;
        return Ok(connection);
    }
    // These read the schema.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    bound_cache(&connection)?;
    Ok(connection)
}

/// Only as many pages as are in constant use: rebalancing a b-tree makes SQLite walk the whole cache at the end of
/// the commit, and the operating system caches the rest.
fn bound_cache(connection: &Connection) -> Result<()> {
    Ok(connection.pragma_update(None, "cache_size", -4_000)?)
}

/// The writer thread.
struct Writer {
    tx: SystemTx,
    changes: Arc<AtomicU64>,
    wakes: Wakes,
    checkpoints: Checkpoints,
    idle_flush: IdleFlush,
}

impl Writer {
    /// Commits jobs until the channel is closed.
    fn work(mut self, mut jobs: Receiver<Job>) {
        let mut last_commit = Duration::ZERO;
        while let Some(first) = jobs.blocking_recv() {
            let start = Instant::now();
            let begun = self.tx.sqlite().and_then(SqliteSession::begin_group);
            let mut group = JobGroup::default();
            group.run(&mut self.tx, first);
            while group.jobs.len() < MAX_GROUP_SIZE
                && start.elapsed() < last_commit * MAX_COMMIT_MULTIPLE
                && let Ok(job) = jobs.try_recv()
            {
                group.run(&mut self.tx, job);
            }
            let commit = Instant::now();
            let committed = begun.and_then(|()| self.tx.sqlite()?.end_group());
            last_commit = commit.elapsed();
            self.acknowledge(group, &committed);
        }
        // Tasks that are lost here are found by their markers.
        let _ = self.tx.sqlite().and_then(SqliteSession::flush_deferred);
    }

    /// Acknowledges a commit: first to its callers, then to the listeners.
    fn acknowledge(&mut self, group: JobGroup, committed: &Result<()>) {
        if committed.is_err() {
            // Fails when there is no open transaction, which is fine.
            let _ = self.tx.sqlite().and_then(|session| session.batch("ROLLBACK"));
        }
        if let Ok(session) = self.tx.sqlite() {
            self.idle_flush.publish(&session.deferred);
        }
        if group.jobs.iter().any(|job| !job.is_repeatable()) {
            self.changes.fetch_add(1, Ordering::Release);
        }
        let mut wakes = Vec::new();
        for job in group.jobs {
            let outcome = committed.as_ref().copied();
            wakes.extend(job.acknowledge(outcome.map_err(Error::of_group)));
        }
        for wake in wakes {
            self.wakes.send(wake);
        }
        if let Ok(session) = self.tx.sqlite() {
            self.checkpoints.run_if_due(&session.connection);
        }
    }
}

fn read_loop(connection: Connection, mut slot: ReaderSlot) {
    // Most readers of a small service are never used, and need not read the schema.
    let Some(first) = slot.next() else { return };
    if let Err(error) = bound_cache(&connection) {
        tracing::warn!(%error, "reader cache size not set; using the default");
    }
    let mut tx = idle(connection);
    first(&mut tx);
    while let Some(job) = slot.next() {
        job(&mut tx);
    }
}
