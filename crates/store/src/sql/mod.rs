//! The seam between our statements and the two engines.
//!
//! A transaction is an async closure. PostgreSQL awaits it; SQLite hands it to the one writer thread (or a reader
//! thread) and polls it once, since nothing in it can be pending there. So one text of every query serves both, and a
//! body that waits for anything but the database fails in its first test. With `dialect.rs` this folder is the only
//! place that names an engine.

mod checkpoints;
mod deferred;
#[cfg(feature = "faults")]
pub mod faults;
mod group;
mod jobs;
mod listener;
mod postgres;
mod readers;
mod sqlite;
mod value;
mod wake;
mod work;

use std::{path::PathBuf, sync::Arc, time::Instant};

use model::{MailboxId, WorkspaceId};

use self::{
    postgres::PostgresSession,
    sqlite::SqliteSession,
    value::ReadRow,
    work::{Again, Once, Typed, Work, outcome_of},
};
pub use self::{
    value::{Cell, FromCell, FromRow, Param, Row},
    wake::{Topic, Wake, woken},
    work::Body,
};
use crate::error::Result;

/// What one statement lists at most; shorter lists are filled up, so that there is one text to prepare.
pub(crate) const LIST: usize = 32;

/// The places of a list, beginning with the given one.
pub(crate) fn list_places(first: usize) -> String {
    let places: Vec<String> = (first..first + LIST).map(|place| format!("${place}")).collect();
    places.join(", ")
}

/// What goes into the places of a list: these, and then what is nowhere to be found.
pub(crate) fn listed<'a, T: Into<Param<'a>> + Clone>(
    some: impl Iterator<Item = T>,
    nothing: T,
) -> impl Iterator<Item = Param<'a>> {
    some.chain(std::iter::repeat(nothing)).take(LIST).map(Into::into)
}

/// Where the relational store is.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string.
    Postgres(String),
}

impl DatabaseLocation {
    /// A PostgreSQL server by its URL, if the text is one.
    pub fn postgres(url: &str) -> Option<Self> {
        postgres::is_url(url).then(|| Self::Postgres(url.to_owned()))
    }
}

/// An open store.
#[derive(Clone)]
pub struct Db(Arc<Engine>);

enum Engine {
    Sqlite(sqlite::SqliteEngine),
    Postgres(postgres::PostgresEngine),
}

/// One connection in use by a transaction.
enum Session {
    Sqlite(SqliteSession),
    Postgres(PostgresSession),
}

/// What a transaction may touch.
#[derive(Clone, Debug)]
enum Scope {
    Workspace(WorkspaceId),
    System,
}

impl Scope {
    fn workspace(&self) -> WorkspaceId {
        WorkspaceId::from(self.setting())
    }

    /// The value of the session variable that PostgreSQL's row-level security compares with.
    fn setting(&self) -> &str {
        match self {
            Self::Workspace(id) => id.as_str(),
            Self::System => "*",
        }
    }
}

/// A transaction of one workspace.
///
/// Its statements get the workspace as `$1` without being asked, so no store function can name another one; their
/// own parameters begin at `$2`.
pub struct Tx {
    session: Session,
    workspace: WorkspaceId,
    /// Sent to the listeners of this process after the commit; PostgreSQL carries them itself.
    wakes: Vec<Wake>,
    /// Statements seen since the one that a fault counts from.
    #[cfg(feature = "faults")]
    seen: u32,
}

/// A transaction across workspaces, for the few things that need one: finding a key by its hash, signing up,
/// routing an address, upkeep. Its parameters begin at `$1`.
pub struct SystemTx {
    inner: Tx,
}

/// How a transaction is run.
#[derive(Clone, Copy)]
enum Way<'a> {
    Write,
    /// In one commit with others of the same key.
    SharedWrite(&'a str),
    Read,
    /// All statements see the same state.
    Snapshot,
}

impl Way<'_> {
    /// What it is called in the metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Write | Self::SharedWrite(_) => "write",
            Self::Read => "read",
            Self::Snapshot => "snapshot",
        }
    }
}

impl Db {
    /// Opens the store. Nothing is migrated yet.
    pub async fn open(location: &DatabaseLocation) -> Result<Self> {
        let engine = match location {
            DatabaseLocation::Sqlite(path) => Engine::Sqlite(sqlite::SqliteEngine::open(path.clone()).await?),
            DatabaseLocation::Postgres(url) => Engine::Postgres(postgres::PostgresEngine::open(url).await?),
        };
        let db = Self(Arc::new(engine));
        #[cfg(feature = "faults")]
        db.begin_to_live();
        Ok(db)
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
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Way::Write, Scope::Workspace(workspace.clone()), Once::new(body))
    }

    /// Runs statements of one workspace that only read.
    ///
    /// On PostgreSQL each statement sees its own snapshot: what must fit together is read by one statement.
    pub fn read<T, E, F>(&self, workspace: &WorkspaceId, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + for<'tx> Body<'tx, Tx, T, E>,
    {
        self.typed(Way::Read, Scope::Workspace(workspace.clone()), Once::new(body))
    }

    /// Runs a transaction across workspaces that may write.
    pub fn system_write<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Way::Write, Scope::System, Once::new(body))
    }

    /// The same, in one commit with others of the same key that come at the same time; for what is written often and
    /// waits for the same locks. Each is durable when it returns, and fails alone.
    ///
    /// The body may be run more than once, after what it did in the store was undone: each time it is a clone. It must not
    /// look at what it [adds to](Tx::add_at_end).
    pub fn shared_write<T, E, F>(&self, key: &str, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E> + Clone,
    {
        self.typed(Way::SharedWrite(key), Scope::System, Again::new(body))
    }

    /// Runs statements across workspaces that only read.
    pub fn system_read<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Way::Read, Scope::System, Once::new(body))
    }

    /// Runs statements across workspaces that only read, all of them on one snapshot of the store.
    pub(crate) fn snapshot<T, E, F>(&self, body: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<crate::Error> + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T, E> + for<'tx> Body<'tx, SystemTx, T, E>,
    {
        self.typed(Way::Snapshot, Scope::System, Once::new(body))
    }

    /// Does not hold on to the work while it is done, so that nobody has to prove of its body what the engines know already.
    fn typed<W: Typed>(
        &self,
        way: Way<'_>,
        scope: Scope,
        work: W,
    ) -> impl Future<Output = Result<W::Value, W::Error>> + Send {
        let done = self.perform(way, scope, Box::new(work));
        async move { outcome_of::<W>(done.await) }
    }

    /// Has an engine do some work, and gives it back with its outcome.
    async fn perform(&self, way: Way<'_>, scope: Scope, work: Box<dyn Work>) -> Result<Box<dyn Work>> {
        #[cfg(feature = "faults")]
        let dies = match way {
            Way::Write | Way::SharedWrite(_) => self.survives_until_commit()?,
            Way::Read => self.is_alive().map(|()| false)?,
            Way::Snapshot => false,
        };
        let started = Instant::now();
        let kind = way.name();
        let outcome = match &*self.0 {
            Engine::Sqlite(engine) => match way {
                // Its writer shares every commit.
                Way::Write | Way::SharedWrite(_) => engine.write(scope, work).await,
                Way::Read => engine.read(scope, work).await,
                Way::Snapshot => engine.snapshot(scope, work).await,
            },
            // Boxed, so that the futures of handlers stay small.
            Engine::Postgres(engine) => Box::pin(engine.perform(way, scope, work)).await,
        };
        metrics::histogram!("store_seconds", "kind" => kind).record(started.elapsed().as_secs_f64());
        #[cfg(feature = "faults")]
        if dies {
            return Err(faults::died());
        }
        outcome
    }
}

impl Session {
    async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        match self {
            Self::Sqlite(session) => session.run(sql, params),
            Self::Postgres(session) => session.run(sql, params).await,
        }
    }

    async fn later(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.run(sql, params).map(|_| ()),
            Self::Postgres(session) => session.later(sql, params).await,
        }
    }

    async fn at_end(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        match self {
            Self::Sqlite(session) => {
                session.at_end(sql, params);
                Ok(())
            }
            Self::Postgres(session) => session.later(sql, params).await,
        }
    }

    async fn add_at_end(&mut self, sql: &'static str, row: &[Param<'_>], amounts: &[i64]) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.add_at_end(sql, row, amounts),
            Self::Postgres(session) => session.add_at_end(sql, row, amounts).await,
        }
    }

    async fn rows(&mut self, sql: &str, params: &[Param<'_>], read: ReadRow<'_>) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.rows(sql, params, read),
            Self::Postgres(session) => session.rows(sql, params, read).await,
        }
    }

    async fn all<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.rows(sql, params, &mut |row| {
            all.push(T::from_row(row)?);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    async fn one<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<T>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }
}

impl Tx {
    /// The workspace of this transaction.
    pub fn workspace(&self) -> &WorkspaceId {
        &self.workspace
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.session, Session::Postgres(_))
    }

    /// Wakes the listeners of all nodes once this transaction is durable: something happened in its workspace, or in one of
    /// its mailboxes.
    pub async fn wake(&mut self, topic: Topic, mailbox: Option<&MailboxId>) -> Result<()> {
        let wake = Wake { topic, workspace: self.workspace.clone(), mailbox: mailbox.cloned() };
        if self.is_postgres() {
            let note = wake.encode();
            self.session
                .later("SELECT pg_notify($1, $2)", &[Wake::CHANNEL.into(), note.as_str().into()])
                .await?;
        } else {
            self.wakes.push(wake);
        }
        Ok(())
    }

    /// Runs a statement and tells how many rows it touched. `$1` is the workspace.
    pub async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.run(sql, &params).await
    }

    /// Runs a statement whose outcome nobody needs, at the latest with the next one that is run, or with the commit.
    /// Where each statement is a trip to a server, many then share one. An error comes with that next statement.
    pub async fn later(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.later(sql, &params).await
    }

    /// Runs a statement at the end of the commit, after all others that share it, and in the order of these calls. For
    /// what is cheaper all at once: SQLite's full-text index writes itself out at every savepoint. An error of such a
    /// statement fails the whole commit.
    pub(crate) async fn at_end(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.at_end(sql, &params).await
    }

    /// Runs a statement in this commit or in a later one, together with those of others; for what only has to be done before
    /// [somebody needs it](Db::index_texts). It is lost when the process ends before, so this transaction has to leave a
    /// mark in the store: the other statement takes it away, and where it touches nothing there is nothing to be done.
    /// Only for SQLite.
    pub(crate) fn put_off(
        &mut self,
        (mark, about): (&str, &[Param<'_>]),
        (work, params): (&str, &[Param<'_>]),
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, work)?;
        let (about, params) =
            (with_workspace(&self.workspace, about), with_workspace(&self.workspace, params));
        match &mut self.session {
            Session::Sqlite(session) => {
                session.put_off((mark, &about), (work, &params));
                Ok(())
            }
            Session::Postgres(_) => Err(crate::Error::Internal("nothing is put off here".into())),
        }
    }

    /// Runs a statement that adds amounts, its last parameters, to the row that the others name. In a
    /// [shared write](Db::shared_write) it is run once for all of a commit that add to the same row, before anybody
    /// else can look at it; an error then fails the whole commit.
    pub(crate) async fn add_at_end(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let row = with_workspace(&self.workspace, row);
        self.session.add_at_end(sql, &row, amounts).await
    }

    /// A number for a row that comes [at the end](Self::at_end) or [later](Self::put_off): above the one that a query without
    /// parameters finds, and above all that were given out before. Only SQLite needs it.
    pub(crate) fn next_number(&mut self, highest: &str) -> Result<i64> {
        match &mut self.session {
            Session::Sqlite(session) => session.next_number(highest),
            Session::Postgres(_) => Err(crate::Error::Internal("rows have no numbers here".into())),
        }
    }

    /// Runs a query and reads its first row, if there is one. `$1` is the workspace.
    pub async fn one<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<T>> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.one(sql, &params).await
    }

    /// Runs a statement that changes one row and reads something of that row, by a query with the first of the same
    /// parameters. On PostgreSQL that is one way; SQLite makes a table for whatever a statement returns, which costs many times
    /// as much as a query.
    pub(crate) async fn change<T: FromRow>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        (column, query, keys): (&str, &str, usize),
    ) -> Result<Option<T>> {
        if self.is_postgres() {
            return self.one(&format!("{sql} RETURNING {column}"), params).await;
        }
        self.run(sql, params).await?;
        self.one(query, &params[..keys]).await
    }

    /// Runs a query and reads all its rows. `$1` is the workspace.
    pub async fn all<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<T>> {
        #[cfg(feature = "faults")]
        faults::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.all(sql, &params).await
    }
}

fn with_workspace<'a>(workspace: &'a WorkspaceId, params: &[Param<'a>]) -> Vec<Param<'a>> {
    let mut all = Vec::with_capacity(params.len() + 1);
    all.push(Param::from(workspace));
    all.extend_from_slice(params);
    all
}

impl SystemTx {
    fn new(session: Session, scope: &Scope) -> Self {
        Self {
            inner: Tx {
                session,
                workspace: scope.workspace(),
                wakes: Vec::new(),
                #[cfg(feature = "faults")]
                seen: 0,
            },
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.inner.is_postgres()
    }

    /// Runs statements that take no parameters and give no rows, such as those of a migration.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<()> {
        match &mut self.inner.session {
            Session::Sqlite(session) => session.batch(sql),
            Session::Postgres(session) => session.batch(sql).await,
        }
    }

    /// Runs a statement and tells how many rows it touched.
    pub async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        self.inner.session.run(sql, params).await
    }

    /// Runs a query and reads its first row, if there is one.
    pub async fn one<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<T>> {
        self.inner.session.one(sql, params).await
    }

    /// Runs a query and reads all its rows.
    pub async fn all<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<T>> {
        self.inner.session.all(sql, params).await
    }

    /// The same transaction, for the statements of one workspace.
    pub fn enter(&mut self, workspace: &WorkspaceId) -> &mut Tx {
        self.inner.workspace = workspace.clone();
        #[cfg(feature = "faults")]
        {
            self.inner.seen = 0;
        }
        &mut self.inner
    }
}
