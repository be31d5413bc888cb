//! SQLite: one writer thread that commits concurrent transactions as a group, and several readers.
//!
//! An fsync costs milliseconds, so the writer runs every transaction that is waiting inside one COMMIT, and acknowledges
//! them after it. A transaction that fails or panics is rolled back alone: those that can be run again, as deliveries
//! can, share what undoes them, and when one fails the others are run anew; each of the rest has a savepoint.

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
    broadcast,
    mpsc::{Receiver, Sender, channel, error::TrySendError},
    oneshot,
};

use self::{polling::polled, session::SqliteSession};
use super::{
    checkpoints::Checkpoints,
    deferred::{Backlog, Watch},
    jobs::{Job, JobGroup},
    readers::{ReadJob, ReaderSlot, Readers},
    scope::Scope,
    session::Session,
    transaction::SystemTx,
    wake::{Topic, Wake, Wakes},
    work::{Again, Typed, Work, outcome_of},
};
use crate::error::{Error, Result};

/// Transactions that may wait for the writer; more is refused as overload.
const WRITE_QUEUE: usize = 4096;
/// Reader threads: enough that a slow read does not hold up the quick ones.
const READERS: usize = 4;
/// Transactions in one commit at most.
const GROUP: usize = 256;
/// How many times as long as the last commit a group may work before its own. A larger group costs less for each of its
/// transactions; a smaller one lets those who wait for it go on while the next one works.
const MAX_ATTEMPTS: u32 = 3;

pub(super) struct SqliteEngine {
    writes: Sender<Job>,
    reads: Readers,
    wakes: Wakes,
    /// Counts the commits with jobs that cannot be run again.
    changes: Arc<AtomicU64>,
    backlog: Arc<Backlog>,
}

impl SqliteEngine {
    pub(super) async fn open(path: PathBuf) -> Result<Self> {
        let (writes, write_jobs) = channel::<Job>(WRITE_QUEUE);
        // Weak, since the writer works as long as anybody could send it something.
        let to_writer = writes.downgrade();
        let (watch, backlog, look) =
            Watch::new(move || to_writer.upgrade().is_some_and(|writes| ask_for_what_waits(&writes)));
        let (reads, places) = Readers::new(READERS);
        let (changes, wakes) = (Arc::new(AtomicU64::new(0)), Wakes::new());
        let (counted, told) = (changes.clone(), wakes.clone());
        tokio::task::spawn_blocking(move || -> Result<()> {
            let mut writer = connect(&path, false)?;
            let (checkpoints, write_back) = Checkpoints::new(&mut writer, connect(&path, false)?)?;
            spawn("sqlite-log", write_back)?;
            spawn("sqlite-words", look)?;
            let writer = Writer { tx: idle(writer), changes: counted, wakes: told, checkpoints, watch };
            spawn("sqlite-writer", move || writer.work(write_jobs))?;
            for place in places {
                let reader = connect(&path, true)?;
                spawn("sqlite-reader", move || read_loop(reader, place))?;
            }
            Ok(())
        })
        .await
        .map_err(|error| Error::Internal(error.into()))??;
        Ok(Self { writes, reads, wakes, changes, backlog })
    }

    pub(super) fn listen(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.wakes.listen(topic)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has the writer do some work, and waits for the commit.
    pub(super) async fn write(&self, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        let (job, wait) = Job::new(scope, work);
        self.writes.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Error::Overloaded,
            TrySendError::Closed(_) => stopped(),
        })?;
        wait.await.map_err(|_| stopped())
    }

    /// Has done what was put off so far.
    pub(super) async fn do_what_waits(&self) -> Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        self.perform(Scope::System, wanting_what_waits()).await
    }

    async fn perform<W: Typed>(&self, scope: Scope, work: W) -> Result<W::Value, W::Error> {
        outcome_of::<W>(self.write(scope, Box::new(work)).await)
    }

    /// Has a reader do some work.
    pub(super) async fn read(&self, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        self.submit(scope, work, polled).await
    }

    /// The same in one transaction, which is what makes its statements see the same state.
    pub(super) async fn snapshot(&self, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        self.submit(scope, work, in_snapshot).await
    }

    async fn submit(
        &self,
        scope: Scope,
        mut work: Box<dyn Work>,
        run: fn(&mut SystemTx, &mut dyn Work) -> bool,
    ) -> Result<Box<dyn Work>> {
        let (done, wait) = oneshot::channel();
        let job: ReadJob = Box::new(move |tx| {
            tx.enter(&scope.workspace());
            run(tx, &mut *work);
            let _ = done.send(work);
        });
        self.reads.submit(job)?;
        wait.await.map_err(|_| stopped())
    }
}

/// Has the commit that it is part of do what waits.
fn wanting_what_waits() -> impl Typed<Value = (), Error = Error> {
    Again::new(async |tx: &mut SystemTx| {
        tx.sqlite()?.deferred.want();
        Ok(())
    })
}

/// Asks the writer for it, and tells whether there still is one. It need not be told when it has too much to do already.
fn ask_for_what_waits(writes: &Sender<Job>) -> bool {
    let (job, _) = Job::new(Scope::System, Box::new(wanting_what_waits()));
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
    // Otherwise a prepared statement is planned anew whenever other values are bound to it.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Another thread writes the log back.
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

/// No more than pages that are in use all the time: what balances a tree makes SQLite go through the whole cache at the end
/// of the commit, and the operating system has the rest.
fn bound_cache(connection: &Connection) -> Result<()> {
    Ok(connection.pragma_update(None, "cache_size", -4_000)?)
}

fn idle(connection: Connection) -> SystemTx {
    SystemTx::new(Session::Sqlite(SqliteSession::new(connection)), &Scope::System)
}

/// The one who writes.
struct Writer {
    tx: SystemTx,
    changes: Arc<AtomicU64>,
    wakes: Wakes,
    checkpoints: Checkpoints,
    watch: Watch,
}

impl Writer {
    /// Commits what comes, until nothing can come any more.
    fn work(mut self, mut jobs: Receiver<Job>) {
        let mut last_commit = Duration::ZERO;
        while let Some(first) = jobs.blocking_recv() {
            let start = Instant::now();
            let begun = self.tx.sqlite().and_then(SqliteSession::begin_group);
            let mut group = JobGroup::default();
            group.run(&mut self.tx, first);
            while group.jobs.len() < GROUP
                && start.elapsed() < last_commit * MAX_ATTEMPTS
                && let Ok(job) = jobs.try_recv()
            {
                group.run(&mut self.tx, job);
            }
            let commit = Instant::now();
            let committed = begun.and_then(|()| self.tx.sqlite()?.end_group());
            last_commit = commit.elapsed();
            self.tell(group, &committed);
        }
        // Whatever is lost when this comes too late is found by its mark.
        let _ = self.tx.sqlite().and_then(SqliteSession::do_what_waits);
    }

    /// Tells everybody how a commit went: first those who wait for it, then those who listen.
    fn tell(&mut self, group: JobGroup, committed: &Result<()>) {
        if committed.is_err() {
            // Fails when there is no transaction left, which is what we want.
            let _ = self.tx.sqlite().and_then(|session| session.batch("ROLLBACK"));
        }
        if let Ok(session) = self.tx.sqlite() {
            self.watch.tell(&session.deferred);
        }
        if group.jobs.iter().any(|job| !job.is_repeatable()) {
            self.changes.fetch_add(1, Ordering::Release);
        }
        let mut news = Vec::new();
        for job in group.jobs {
            let outcome = committed.as_ref().copied();
            news.extend(job.acknowledge(outcome.map_err(Error::of_group)));
        }
        for wake in news {
            self.wakes.send(wake);
        }
        if let Ok(session) = self.tx.sqlite() {
            self.checkpoints.look(&session.connection);
        }
    }
}

fn read_loop(connection: Connection, mut place: ReaderSlot) {
    // Most readers of a small service never have anything to do, and are spared reading the schema.
    let Some(first) = place.next() else { return };
    if let Err(error) = bound_cache(&connection) {
        tracing::warn!(%error, "a reader's cache has its usual size");
    }
    let mut tx = idle(connection);
    first(&mut tx);
    while let Some(job) = place.next() {
        job(&mut tx);
    }
}

fn in_snapshot(tx: &mut SystemTx, work: &mut dyn Work) -> bool {
    let batch = |tx: &mut SystemTx, sql| tx.sqlite().and_then(|session| session.batch(sql));
    if let Err(error) = batch(tx, "BEGIN") {
        work.fail(error);
        return false;
    }
    let succeeded = polled(tx, work);
    if let Err(error) = batch(tx, "ROLLBACK") {
        work.fail(error);
        return false;
    }
    succeeded
}
