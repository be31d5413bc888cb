//! The open store: which engine it is, and the ways to run a transaction on it.

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
    work::{Again, Body, Once, Typed, Work, outcome_of},
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

    /// What tells it from the other open stores of a process, for as long as it is open.
    #[cfg(feature = "faults")]
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Listens for wake-ups of a topic, of every node. A listener that falls behind loses the oldest ones, never blocks.
    pub fn listen(&self, topic: Topic) -> tokio::sync::broadcast::Receiver<Wake> {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.listen(topic),
            Engine::Postgres(engine) => engine.listen(topic),
        }
    }

    /// Whether this process is the only one that serves the store, so that nothing needs to be agreed with others.
    pub fn is_sole_node(&self) -> bool {
        matches!(*self.0, Engine::Sqlite(_))
    }

    /// A number that is another one after every write of this process but [shared](Self::shared_write) ones, before
    /// its caller hears of it. Nothing where others write as well.
    pub fn changes(&self) -> Option<u64> {
        match &*self.0 {
            Engine::Sqlite(engine) => Some(engine.changes()),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether a write that was begun comes to its end when nobody waits for it any more.
    pub fn finishes_alone(&self) -> bool {
        matches!(*self.0, Engine::Sqlite(_))
    }

    /// Has the index for search know everything that was written before, by this process. Whoever searches calls it first.
    pub async fn index_texts(&self) -> Result<()> {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.do_what_waits().await,
            // Its index knows every mail from its commit on.
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

    /// Runs a transaction of one workspace that may write; it is durable when this returns.
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
        self.typed(Mode::Write, Scope::Workspace(workspace.clone()), Once::new(body))
    }

    /// Runs statements of one workspace that only read.
    ///
    /// On PostgreSQL each statement sees its own snapshot: what must fit together is read by one statement.
    pub fn read<T, E, F>(&self, workspace: &WorkspaceId, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Mode::Read, Scope::Workspace(workspace.clone()), Once::new(body))
    }

    /// Runs a transaction across workspaces that may write.
    pub fn system_write<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Write, Scope::System, Once::new(body))
    }

    /// The same, in one commit with others of the same key that come at the same time; for what is written often and
    /// waits for the same locks. Each is durable when it returns, and fails alone.
    ///
    /// The body may be run more than once, after what it did in the store was undone: each time it is a clone. It must not
    /// look at what it [adds to](Tx::add_at_end).
    pub fn shared_write<T, E, F>(&self, key: &str, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E> + Clone,
    {
        self.typed(Mode::SharedWrite(key), Scope::System, Again::new(body))
    }

    /// Runs statements across workspaces that only read.
    pub fn system_read<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Read, Scope::System, Once::new(body))
    }

    /// Runs statements across workspaces that only read, all of them on one snapshot of the store.
    pub(crate) fn snapshot<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::Snapshot, Scope::System, Once::new(body))
    }

    /// Does not hold on to the work while it is done, so that nobody has to prove of its body what the engines know already.
    fn typed<W: Typed>(
        &self,
        mode: Mode<'_>,
        scope: Scope,
        work: W,
    ) -> impl Future<Output = Result<W::Value, W::Error>> + Send {
        let done = self.perform(mode, scope, Box::new(work));
        async move { outcome_of::<W>(done.await) }
    }

    /// Has an engine do some work, and gives it back with its outcome.
    async fn perform(&self, mode: Mode<'_>, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        #[cfg(feature = "faults")]
        let dies = match mode {
            Mode::Write | Mode::SharedWrite(_) => crashes::survives_until_commit(self.address())?,
            Mode::Read => crashes::is_alive(self.address()).map(|()| false)?,
            Mode::Snapshot => false,
        };
        let started = Instant::now();
        let outcome = match &*self.0 {
            Engine::Sqlite(engine) => match mode {
                // Its writer shares every commit.
                Mode::Write | Mode::SharedWrite(_) => engine.write(scope, work).await,
                Mode::Read => engine.read(scope, work).await,
                Mode::Snapshot => engine.snapshot(scope, work).await,
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
