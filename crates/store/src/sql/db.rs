//! The open store: its engine, and the ways to run a transaction on it.

use std::{sync::Arc, time::Instant};

use model::WorkspaceId;

#[cfg(feature = "faults")]
use super::faults::crashes;
use super::{
    location::DatabaseLocation,
    mode::Mode,
    postgres::PostgresEngine,
    scope::Scope,
    sqlite::SqliteEngine,
    transaction::{SystemTx, Tx},
    wake::{Topic, Wake},
    work::{Body, RepeatableWork, SingleRunWork, TypedWork, Work, outcome_of},
};
use crate::error::{Error, Result};

/// An open store.
#[derive(Clone)]
pub struct Db(Arc<Engine>);

enum Engine {
    Sqlite(SqliteEngine),
    Postgres(PostgresEngine),
}

impl Db {
    /// Opens the store. Nothing is migrated yet.
    pub async fn open(location: &DatabaseLocation) -> Result<Self> {
        let engine = match location {
            DatabaseLocation::Sqlite(path) => Engine::Sqlite(SqliteEngine::open(path.clone()).await?),
            DatabaseLocation::Postgres(url) => Engine::Postgres(PostgresEngine::open(url).await?),
        };
        let db = Self(Arc::new(engine));
        #[cfg(feature = "faults")]
        crashes::begin_to_live(db.address());
        Ok(db)
    }

    /// Identifies it among the open stores of a process, while it is open.
    #[cfg(feature = "faults")]
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Subscribes to wake-ups of a topic, from every node. A listener that falls behind loses the oldest ones and
    /// never blocks.
    pub fn listen(&self, topic: Topic) -> tokio::sync::broadcast::Receiver<Wake> {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.listen(topic),
            Engine::Postgres(engine) => engine.listen(topic),
        }
    }

    /// Whether this process is the only one that uses the store, so that no coordination with others is needed.
    pub fn is_sole_node(&self) -> bool {
        matches!(*self.0, Engine::Sqlite(_))
    }

    /// A number that changes with every write of this process except [shared](Self::shared_write) ones, before the
    /// write returns. `None` where other processes write as well.
    pub fn changes(&self) -> Option<u64> {
        match &*self.0 {
            Engine::Sqlite(engine) => Some(engine.changes()),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether a write completes after its future is dropped.
    pub fn finishes_alone(&self) -> bool {
        matches!(*self.0, Engine::Sqlite(_))
    }

    /// Flushes everything this process has written before into the search index. Call it before a search.
    pub async fn index_texts(&self) -> Result<()> {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.flush_deferred().await,
            // A search reads what is not in its index yet.
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// The engine's name, for people.
    pub fn engine_name(&self) -> &'static str {
        match &*self.0 {
            Engine::Sqlite(_) => "SQLite",
            Engine::Postgres(_) => "PostgreSQL",
        }
    }

    /// Runs a write transaction of one workspace; it is durable when this returns.
    pub fn write<T, E, F>(
        &self,
        workspace: &WorkspaceId,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Mode::Write, Scope::Workspace(workspace.clone()), SingleRunWork::new(body))
    }

    /// Runs read-only statements of one workspace, all on one snapshot of the store.
    pub fn read<T, E, F>(&self, workspace: &WorkspaceId, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Mode::Read, Scope::Workspace(workspace.clone()), SingleRunWork::new(body))
    }

    /// Runs a write transaction across workspaces.
    pub fn system_write<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Write, Scope::System, SingleRunWork::new(body))
    }

    /// The same, in one commit with concurrent transactions of the same key; for frequent writes that wait for the
    /// same locks. Each is durable when it returns, and fails alone.
    ///
    /// The body may run more than once, after its changes were rolled back: each time it is a clone. It must not read
    /// the counters that it [adds to](Tx::add_at_commit).
    pub fn shared_write<T, E, F>(&self, key: &str, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E> + Clone,
    {
        self.typed(Mode::SharedWrite(key), Scope::System, RepeatableWork::new(body))
    }

    /// Runs read-only statements across workspaces, all on one snapshot of the store.
    pub fn system_read<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Read, Scope::System, SingleRunWork::new(body))
    }

    /// Runs read-only statements across workspaces, all on one snapshot of the store.
    pub(crate) fn snapshot<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Snapshot, Scope::System, SingleRunWork::new(body))
    }

    /// Does not borrow the work while it runs, so that callers need not prove bounds that the engines know already.
    fn typed<W: TypedWork>(
        &self,
        mode: Mode<'_>,
        scope: Scope,
        work: W,
    ) -> impl Future<Output = Result<W::Value, W::Error>> + Send {
        let done = self.perform(mode, scope, Box::new(work));
        async move { outcome_of::<W>(done.await) }
    }

    /// Runs work on an engine, and returns it with its outcome.
    async fn perform(&self, mode: Mode<'_>, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        #[cfg(feature = "faults")]
        let dies = match mode {
            Mode::Write | Mode::SharedWrite(_) => crashes::survives_until_commit(self.address())?,
            Mode::Read => crashes::is_alive(self.address()).map(|()| false)?,
            Mode::Snapshot => false,
        };
        #[cfg(feature = "faults")]
        if dies && let Engine::Postgres(engine) = &*self.0 {
            engine.is_dying.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let started = Instant::now();
        let outcome = match &*self.0 {
            Engine::Sqlite(engine) => match mode {
                // Its writer shares every commit.
                Mode::Write | Mode::SharedWrite(_) => engine.write(scope, work).await,
                Mode::Read | Mode::Snapshot => engine.read(scope, work).await,
            },
            // Boxed, so that the futures of handlers stay small.
            Engine::Postgres(engine) => Box::pin(engine.perform(mode, scope, work)).await,
        };
        mode.seconds().record(started.elapsed().as_secs_f64());
        #[cfg(feature = "faults")]
        if dies {
            return Err(crashes::died());
        }
        outcome
    }
}
