//! PostgreSQL: a small pool, prepared statements, and row-level security as a second check.
//!
//! The workspace is passed to the server in a variable of the transaction. That statement and BEGIN are pipelined with
//! the first real one, and nobody waits for the COMMIT of a read, so they cost no round trip of their own.

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
    time::Duration,
};

use deadpool_postgres::{Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime};
use tokio::sync::broadcast;
use tokio_postgres::{Config, NoTls, config::SslMode};

use self::{
    session::{Begin, PostgresSession},
    statements::{StatementCounters, StatementCounts, TransactionEnd},
};
use super::{
    listener::Listener,
    mode::Mode,
    scope::Scope,
    session::Session,
    transaction::SystemTx,
    wake::{Topic, Wake},
    work::Work,
};
use crate::error::{Error, Result};

/// Connections of one node. Commits of concurrent transactions are grouped by the server itself.
const POOL_SIZE: usize = 24;
/// How long a call waits for a pooled connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct PostgresEngine {
    pool: Pool,
    listener: Listener,
    /// Counts the transactions that are not shared ones.
    changes: AtomicU64,
    counters: Arc<StatementCounters>,
    /// Whether a test lets this process die between a commit and its wake-ups.
    #[cfg(feature = "faults")]
    pub(super) is_dying: std::sync::atomic::AtomicBool,
}

impl PostgresEngine {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let mut config: Config = url.parse().map_err(|error| {
            Error::Unavailable(format!("database.url is not a connection string: {error}").into())
        })?;
        config.application_name("agent-mailbox");
        config.connect_timeout(CONNECT_TIMEOUT);
        // A statement that runs this long is of no use; an idle open transaction would block others.
        config.options("-c statement_timeout=15s -c idle_in_transaction_session_timeout=30s");
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = if config.get_ssl_mode() == SslMode::Disable {
            Manager::from_config(config.clone(), NoTls, recycling)
        } else {
            Manager::from_config(config.clone(), tls::connector()?, recycling)
        };
        let pool = Pool::builder(manager)
            .max_size(POOL_SIZE)
            .wait_timeout(Some(POOL_TIMEOUT))
            .create_timeout(Some(POOL_TIMEOUT))
            .runtime(Runtime::Tokio1)
            // The connection of the last transaction has its statements prepared.
            .queue_mode(QueueMode::Lifo)
            .build()
            .map_err(|error| Error::Internal(error.into()))?;
        let first = pool.get().await.map_err(|error| requirements::connection_fault(&config, error))?;
        requirements::check(&first).await?;
        drop(first);
        Ok(Self {
            pool,
            listener: Listener::start(config),
            changes: AtomicU64::new(0),
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
        let client = self.pool.get().await?;
        let (begin, end) = match mode {
            Mode::Write => (BEGIN, TransactionEnd::Durable),
            Mode::SharedWrite => (BEGIN_SHARED, TransactionEnd::Durable),
            Mode::AsynchronousWrite => (BEGIN_ASYNCHRONOUS, TransactionEnd::Asynchronous),
            Mode::Read | Mode::ShortRead | Mode::Snapshot => (BEGIN_READ, TransactionEnd::Read),
        };
        let begin = Begin { statements: settings::begin(begin, scope.setting())?, end };
        let session = PostgresSession::new(client, begin, self.counters.clone());
        Ok(SystemTx::new(Session::Postgres(session), &scope))
    }

    pub(super) fn statement_counts(&self) -> StatementCounts {
        self.counters.counts()
    }

    pub(super) fn listen(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.listener.wakes(topic)
    }
}

const BEGIN: &str = "BEGIN";
/// Its statements look rows up by keys, for one row or for many. Without the setting those with arrays of keys are planned
/// each time, because any plan for arrays of unknown length seems dearer; that took as long as to run them.
const BEGIN_SHARED: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";
/// Its commit is acknowledged before it is on disk, where it is half a second later.
const BEGIN_ASYNCHRONOUS: &str = "BEGIN; SET LOCAL synchronous_commit = off";
/// Every statement of the transaction sees the snapshot of the first one.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
