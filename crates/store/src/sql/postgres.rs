//! PostgreSQL: a small pool, prepared statements, and row-level security as a second check.
//!
//! The workspace is passed to the server in a variable of the transaction. That statement and BEGIN are pipelined with
//! the first real one, and nobody waits for the COMMIT of a read, so they cost no round trip of their own.

mod connection;
pub(super) mod connector;
mod requirements;
mod rows;
pub(super) mod session;
mod settings;
pub(super) mod statements;
pub(super) mod tls;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{Object, PoolError, QueueMode, TimeoutType},
};
use futures_util::StreamExt;

use self::{
    connection::{Connections, Pool, PooledConnection},
    connector::Connector,
    session::{Begin, PostgresSession},
    statements::{StatementCounters, StatementCounts, TransactionEnd},
};
use super::{
    listener::Listener,
    location::PostgresLocation,
    mode::Mode,
    scope::Scope,
    session::Session,
    transaction::SystemTx,
    wake::{Topic, Wakes},
    work::Work,
};
use crate::error::{Error, Result};

/// How long a call waits for a pooled connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections of this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// Maximum pooled connections.
    pub size: usize,
    /// Pooled connections in use.
    pub in_use: usize,
    /// The longest that a call waited for another to return one, since this was last asked.
    pub longest_wait: Duration,
    /// Maximum connections to the server itself, rather than to a pooler in front of it.
    pub to_server: usize,
}

pub(super) struct PostgresEngine {
    pool: Pool,
    /// Whether a transaction has to bring all of its settings with it.
    has_pooler: bool,
    /// Connects around the pooler.
    direct: Arc<Connector>,
    listener: Listener,
    /// Counts the transactions that are not shared ones.
    changes: AtomicU64,
    /// For how many microseconds a call waited for a connection at most, since that was last asked.
    longest_wait: AtomicU64,
    counters: Arc<StatementCounters>,
    /// Whether a test lets this process die between a commit and its wake-ups.
    #[cfg(feature = "faults")]
    pub(super) is_dying: std::sync::atomic::AtomicBool,
}

impl PostgresEngine {
    pub(super) async fn open(location: &PostgresLocation) -> Result<Self> {
        let has_pooler = location.has_pooler();
        let connector = |url: &str, is_direct: bool| {
            Connector::new(url, is_direct.then_some(settings::SESSION_SETTINGS)).map(Arc::new)
        };
        let losses = Arc::<AtomicU64>::default();
        let own = connector(&location.url, !has_pooler)?;
        let create_timeout = own.timeout();
        let pool = Pool::builder(Connections::new(own.clone(), location.prepared_statements, losses.clone()))
            .max_size(location.pool)
            .wait_timeout(Some(POOL_TIMEOUT))
            .create_timeout(Some(create_timeout))
            .runtime(Runtime::Tokio1)
            // The connection of the last transaction has its statements prepared.
            .queue_mode(QueueMode::Lifo)
            .build()
            .map_err(|error| Error::Internal(error.into()))?;
        let first = pool.get().await;
        let first =
            first.map_err(|error| requirements::connection_fault(pool.manager().connector(), error))?;
        requirements::check(first.client()).await?;
        drop(first);
        // Where there is no pooler, both know which host is the primary.
        let listening = location.listen_url.as_ref().map_or(Ok(own), |url| connector(url, true))?;
        Ok(Self {
            pool,
            has_pooler,
            listener: Listener::start(listening.clone(), losses),
            direct: listening,
            changes: AtomicU64::new(0),
            longest_wait: AtomicU64::new(0),
            counters: Arc::default(),
            #[cfg(feature = "faults")]
            is_dying: false.into(),
        })
    }

    /// Runs work while the server is up, and returns it with its outcome.
    pub(super) async fn perform(
        &self,
        mode: Mode,
        scope: Scope,
        mut work: Box<dyn Work>,
    ) -> Result<Box<dyn Work>> {
        let done = async {
            match mode {
                Mode::Write | Mode::AsynchronousWrite => {
                    let done = self.write(scope, mode, &mut *work).await;
                    // Also after a failure: it may have been committed.
                    self.changes.fetch_add(1, Ordering::Release);
                    done
                }
                Mode::SharedWrite => self.shared_write(&mut *work).await,
                Mode::Read | Mode::ShortRead | Mode::Snapshot => self.read(scope, mode, &mut *work).await,
            }
        };
        self.listener.unless_down(done).await?;
        Ok(work)
    }

    /// Runs a statement on a connection of its own, which ends with it.
    pub(super) async fn run_outside_transaction(&self, sql: &str) -> Result<()> {
        let (client, mut messages) = self.direct.connect().await?;
        let run = async {
            client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await?;
            client.batch_execute(sql).await
        };
        let receive = async { while let Some(Ok(_)) = messages.next().await {} };
        let done = async {
            tokio::select! {
                done = run => Ok(done?),
                () = receive => Err(Error::Unavailable("PostgreSQL closed the connection".into())),
            }
        };
        self.listener.unless_down(done).await
    }

    /// Runs work that never reads what it adds to, such as that of a batch: its increments come at the end, once for each
    /// row.
    async fn shared_write(&self, work: &mut dyn Work) -> Result<()> {
        let mut tx = self.begin(Scope::System, Mode::SharedWrite).await?;
        tx.postgres()?.defers_increments = true;
        let succeeded = work.run(&mut tx).await;
        let finished = self.finish(&mut tx, succeeded).await;
        if succeeded { finished } else { Ok(()) }
    }

    /// Changes with every write of this process but shared ones.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    async fn write(&self, scope: Scope, mode: Mode, work: &mut dyn Work) -> Result<()> {
        let mut tx = self.begin(scope, mode).await?;
        let succeeded = work.run(&mut tx).await;
        let finished = self.finish(&mut tx, succeeded).await;
        // Failed work carries its own error.
        if succeeded { finished } else { Ok(()) }
    }

    /// Commits a transaction, and then wakes its listeners; or rolls it back.
    async fn finish(&self, tx: &mut SystemTx, commit: bool) -> Result<()> {
        tx.postgres()?.finish(commit).await?;
        let wakes = std::mem::take(&mut tx.inner.wakes);
        #[cfg(feature = "faults")]
        let commit = commit && !self.is_dying.load(std::sync::atomic::Ordering::Relaxed);
        if commit && !wakes.is_empty() {
            self.listener.wake(wakes);
        }
        Ok(())
    }

    async fn read(&self, scope: Scope, mode: Mode, work: &mut dyn Work) -> Result<()> {
        let mut tx = self.begin(scope, mode).await?;
        work.run(&mut tx).await;
        // The session ends its transaction when it is dropped.
        Ok(())
    }

    /// Takes a connection from the pool, for a transaction that starts with the first statement.
    async fn begin(&self, scope: Scope, mode: Mode) -> Result<SystemTx> {
        let client = self.connection().await?;
        let (begin, own, end) = match mode {
            Mode::Write => (BEGIN, "", TransactionEnd::Durable),
            Mode::SharedWrite => (BEGIN, SHARED, TransactionEnd::Durable),
            Mode::AsynchronousWrite => (BEGIN, ASYNCHRONOUS, TransactionEnd::Asynchronous),
            Mode::Read | Mode::ShortRead => (BEGIN_READ, "", TransactionEnd::Read),
            Mode::Snapshot => (BEGIN_READ, SNAPSHOT, TransactionEnd::Read),
        };
        let statements = settings::begin(begin, own, scope.setting(), self.has_pooler)?;
        let begin = Begin { statements, end };
        let session = PostgresSession::new(client, begin, self.counters.clone());
        Ok(SystemTx::new(Session::Postgres(session), &scope))
    }

    /// Takes a connection from the pool, and records how long another call had it. A connection that is opened takes its
    /// time too, but then the pool had room.
    async fn connection(&self) -> Result<PooledConnection> {
        let asked_at = Instant::now();
        let taken = self.pool.get().await;
        let has_waited = match &taken {
            Ok(connection) => Object::metrics(connection).recycle_count > 0,
            Err(error) => matches!(error, PoolError::Timeout(TimeoutType::Wait)),
        };
        if has_waited {
            let micros = u64::try_from(asked_at.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.longest_wait.fetch_max(micros, Ordering::Relaxed);
        }
        Ok(taken?)
    }

    /// The pool's state, and the longest wait since this was last asked.
    pub(super) fn take_pool_figures(&self) -> PoolFigures {
        let status = self.pool.status();
        PoolFigures {
            size: status.max_size,
            in_use: status.size.saturating_sub(status.available),
            longest_wait: Duration::from_micros(self.longest_wait.swap(0, Ordering::Relaxed)),
            // One more listens.
            to_server: if self.has_pooler { 1 } else { status.max_size + 1 },
        }
    }

    pub(super) fn statement_counts(&self) -> StatementCounts {
        self.counters.counts()
    }

    pub(super) fn wakes(&self) -> &Wakes {
        self.listener.wakes()
    }

    pub(super) fn wake_other_nodes(&self, topic: Topic) {
        self.listener.wake_other_nodes(topic);
    }
}

const BEGIN: &str = "BEGIN";
/// Its statements look rows up by keys, for one row or for many. Without the setting those with arrays of keys are planned
/// each time, because any plan for arrays of unknown length seems dearer; that took as long as to run them.
const SHARED: &str = "; SET LOCAL plan_cache_mode = force_generic_plan";
/// Its commit is acknowledged before it is on disk, where it is half a second later.
const ASYNCHRONOUS: &str = "; SET LOCAL synchronous_commit = off";
/// It locks nothing, and what is read goes to a disk that may be slow.
const SNAPSHOT: &str = "; SET LOCAL idle_in_transaction_session_timeout = '30s'";
/// Every statement of the transaction sees the snapshot of the first one.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
