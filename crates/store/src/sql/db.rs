//! The open store: its engine, and the ways to run a transaction on it.

use std::{sync::Arc, time::Instant};

use model::WorkspaceId;

#[cfg(feature = "faults")]
use super::faults::crashes;
use super::{
    batches::{Batches, Lead, MemberTurn, Waiting},
    location::DatabaseLocation,
    mode::Mode,
    postgres::{PoolFigures, PostgresEngine, statements::StatementCounts},
    scope::Scope,
    sqlite::SqliteEngine,
    transaction::{SystemTx, Tx},
    wake::{Topic, Wake, Wakes},
    work::{Body, RepeatableWork, SingleRunWork, TypedWork, Work, outcome_of},
};
use crate::error::{Error, Result};

/// An open store.
#[derive(Clone)]
pub struct Db(Arc<Engine>, Batches);

enum Engine {
    Sqlite(SqliteEngine),
    Postgres(PostgresEngine),
}

impl Db {
    /// Opens the store. Nothing is migrated yet.
    pub async fn open(location: &DatabaseLocation) -> Result<Self> {
        let engine = match location {
            DatabaseLocation::Sqlite(path) => Engine::Sqlite(SqliteEngine::open(path.clone()).await?),
            DatabaseLocation::Postgres(location) => Engine::Postgres(PostgresEngine::open(location).await?),
        };
        let db = Self(Arc::new(engine), Batches::default());
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
        self.wakes().listen(topic)
    }

    /// The same for a worker: it hears of what happened on this node, and of what the workers of no other node have heard
    /// of.
    pub fn listen_for_work(&self, topic: Topic) -> tokio::sync::broadcast::Receiver<Wake> {
        self.wakes().listen_for_work(topic)
    }

    /// Wakes the workers of other nodes, because this one cannot do all of the work at once.
    pub fn wake_other_nodes(&self, topic: Topic) {
        if let Engine::Postgres(engine) = &*self.0 {
            engine.wake_other_nodes(topic);
        }
    }

    fn wakes(&self) -> &Wakes {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.wakes(),
            Engine::Postgres(engine) => engine.wakes(),
        }
    }

    /// Whether this process is the only one that uses the store, so that no coordination with others is needed.
    pub fn is_sole_node(&self) -> bool {
        matches!(*self.0, Engine::Sqlite(_))
    }

    /// A number that changes with every write of this process except [shared](Self::shared_write) and
    /// [batched](Self::batch_write) ones, before the write returns. Other processes may write as well.
    pub fn changes(&self) -> u64 {
        match &*self.0 {
            Engine::Sqlite(engine) => engine.changes(),
            Engine::Postgres(engine) => engine.changes(),
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

    /// What this process has sent to PostgreSQL; `None` on SQLite.
    pub fn statement_counts(&self) -> Option<StatementCounts> {
        match &*self.0 {
            Engine::Sqlite(_) => None,
            Engine::Postgres(engine) => Some(engine.statement_counts()),
        }
    }

    /// The connections of this node to PostgreSQL, and the longest wait for one since this was last asked; `None` on
    /// SQLite.
    pub fn take_pool_figures(&self) -> Option<PoolFigures> {
        match &*self.0 {
            Engine::Sqlite(_) => None,
            Engine::Postgres(engine) => Some(engine.take_pool_figures()),
        }
    }

    /// Runs a statement that cannot be part of a transaction, around a pooler and without a time limit. SQLite has no
    /// such statements.
    pub(crate) async fn run_outside_transaction(&self, sql: &str) -> Result<()> {
        match &*self.0 {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(engine) => engine.run_outside_transaction(sql).await,
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

    /// The same, but on PostgreSQL it is acknowledged before it is on disk: a server that crashes within the next half
    /// second loses it. What commits later is never on disk before it. For writes that can be repeated or that nobody
    /// misses.
    pub fn asynchronous_write<T, E, F>(
        &self,
        workspace: &WorkspaceId,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Mode::AsynchronousWrite, Scope::Workspace(workspace.clone()), SingleRunWork::new(body))
    }

    /// The same across workspaces.
    pub fn asynchronous_system_write<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Mode::AsynchronousWrite, Scope::System, SingleRunWork::new(body))
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

    /// The same for a few rows by key. On SQLite it runs on the calling thread while the disk is quick: to ask another
    /// thread takes as long as the read.
    pub fn short_read<T, E, F>(
        &self,
        workspace: &WorkspaceId,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Mode::ShortRead, Scope::Workspace(workspace.clone()), SingleRunWork::new(body))
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

    /// The same for frequent writes that lock nothing that others wait for. Each is durable when it returns, and fails
    /// alone, although on SQLite several share a savepoint.
    ///
    /// The body may run more than once, after its changes were rolled back: each time it is a clone. It must not read
    /// the counters that it [adds to](Tx::add_at_commit).
    pub fn shared_write<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E> + Clone,
    {
        self.typed(Mode::SharedWrite, Scope::System, RepeatableWork::new(body))
    }

    /// Writes an item together with others of the same key that come meanwhile: `write` gets all of them and returns a
    /// value for each. It is durable when this returns. If they fail together, each is written alone, so that one fails
    /// only for its own sake. On SQLite, where concurrent writes share a commit anyway, each is written by itself.
    ///
    /// Like the body of a [shared write](Self::shared_write), `write` may run more than once and must not read the
    /// counters that it adds to. The future must not be dropped, because the items of others depend on it.
    pub async fn batch_write<I, T, E, W, F>(&self, key: &str, item: I, bytes: usize, write: W) -> Result<T, E>
    where
        I: Clone + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        W: Fn(Vec<I>) -> F + Send,
        F: AsyncFnOnce(&mut SystemTx) -> Result<Vec<T>, E>
            + for<'tx> Body<'tx, SystemTx, Vec<T>, E>
            + Clone
            + Send,
    {
        if self.finishes_alone() {
            return only(self.shared_write(write(vec![item])).await?);
        }
        let (lead, item) = match self.1.join(key, item, bytes)? {
            MemberTurn::Lead(lead, item) => (lead, item),
            MemberTurn::Wait(turn) => match turn.await {
                Ok(Waiting::Done(outcome)) => return outcome,
                Ok(Waiting::Lead(lead, item)) => (lead, item),
                Err(_) => return Err(Error::Unavailable("the batch was given up".into()).into()),
            },
        };
        self.lead(lead, item, bytes, write).await
    }

    /// Writes an item with those that have queued behind it.
    async fn lead<I, T, E, W, F>(
        &self,
        lead: Lead<I, Result<T, E>>,
        item: I,
        bytes: usize,
        write: W,
    ) -> Result<T, E>
    where
        I: Clone + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        W: Fn(Vec<I>) -> F + Send,
        F: AsyncFnOnce(&mut SystemTx) -> Result<Vec<T>, E>
            + for<'tx> Body<'tx, SystemTx, Vec<T>, E>
            + Clone
            + Send,
    {
        let others = lead.take_others(bytes);
        let alone = |item: I| {
            let done = self.typed(Mode::SharedWrite, Scope::System, SingleRunWork::new(write(vec![item])));
            async move { only(done.await?) }
        };
        if others.is_empty() {
            return alone(item).await;
        }
        let items = [&item].into_iter().chain(others.iter().map(|other| &other.item)).cloned().collect();
        let work = Box::new(SingleRunWork::<SystemTx, Vec<T>, E, F>::new(write(items)));
        let done = self.perform(Mode::SharedWrite, Scope::System, work).await;
        if matches!(done, Err(Error::Overloaded)) {
            // Each alone would wait just as long, and the next ones behind it.
            for other in others {
                other.finish(Err(Error::Overloaded.into()));
            }
            return Err(Error::Overloaded.into());
        }
        match outcome_of::<SingleRunWork<SystemTx, Vec<T>, E, F>>(done) {
            Ok(values) if values.len() == others.len() + 1 => {
                let mut values = values.into_iter();
                let own = values.next();
                for (other, value) in others.into_iter().zip(values) {
                    other.finish(Ok(value));
                }
                own.ok_or_else(|| Error::Internal("a batch without a value".into()).into())
            }
            Ok(_) => Err(Error::Internal("a batch without a value for each".into()).into()),
            // Should the commit have succeeded unnoticed, these fail: the same items cannot be stored twice.
            Err(_) => {
                let own = alone(item).await;
                for other in others {
                    let outcome = alone(other.item.clone()).await;
                    other.finish(outcome);
                }
                own
            }
        }
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
        mode: Mode,
        scope: Scope,
        work: W,
    ) -> impl Future<Output = Result<W::Value, W::Error>> + Send {
        let done = self.perform(mode, scope, Box::new(work));
        async move { outcome_of::<W>(done.await) }
    }

    /// Runs work on an engine, and returns it with its outcome.
    async fn perform(&self, mode: Mode, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        #[cfg(feature = "faults")]
        let dies = match mode {
            Mode::Write | Mode::AsynchronousWrite | Mode::SharedWrite => {
                crashes::survives_until_commit(self.address())?
            }
            Mode::Read | Mode::ShortRead => crashes::is_alive(self.address()).map(|()| false)?,
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
                Mode::Write | Mode::AsynchronousWrite | Mode::SharedWrite => engine.write(scope, work).await,
                Mode::Read | Mode::Snapshot => engine.read(scope, work).await,
                Mode::ShortRead => engine.short_read(scope, work).await,
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

/// The only value of a batch of one.
fn only<T, E: From<Error>>(values: Vec<T>) -> Result<T, E> {
    values.into_iter().next().ok_or_else(|| Error::Internal("a batch without a value".into()).into())
}
