//! Transactions as store functions see them: of one workspace, or across workspaces.
//!
//! Here each statement of a workspace gets its workspace, so that none can be without it.

use model::{MailboxId, WorkspaceId};

#[cfg(feature = "faults")]
use super::faults::statements;
use super::{
    postgres::session::PostgresSession,
    scope::Scope,
    session::Session,
    sqlite::session::SqliteSession,
    value::{FromRow, Param},
    wake::{Topic, Wake},
};
use crate::error::{Error, Result};

/// A transaction of one workspace.
///
/// Its statements get the workspace as `$1` without being asked, so no store function can name another one; their
/// own parameters begin at `$2`.
pub struct Tx {
    session: Session,
    workspace: WorkspaceId,
    /// Sent to the listeners of this process after the commit; PostgreSQL carries them itself.
    pub(super) wakes: Vec<Wake>,
    /// Statements seen since the one that a fault counts from.
    #[cfg(feature = "faults")]
    seen: u32,
}

/// A transaction across workspaces, for the few things that need one: finding a key by its hash, signing up,
/// routing an address, upkeep. Its parameters begin at `$1`.
pub struct SystemTx {
    pub(super) inner: Tx,
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
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.run(sql, &params).await
    }

    /// Runs a statement whose outcome nobody needs, at the latest with the next one that is run, or with the commit.
    /// Where each statement is a trip to a server, many then share one. An error comes with that next statement.
    pub async fn later(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.later(sql, &params).await
    }

    /// Runs a statement at the end of the commit, after all others that share it, and in the order of these calls. For
    /// what is cheaper all at once: SQLite's full-text index writes itself out at every savepoint. An error of such a
    /// statement fails the whole commit.
    pub(crate) async fn at_end(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.at_end(sql, &params).await
    }

    /// Runs a statement in this commit or in a later one, together with those of others; for what only has to be done before
    /// [somebody needs it](crate::Db::index_texts). It is lost when the process ends before, so this transaction has to leave a
    /// mark in the store: the other statement takes it away, and where it touches nothing there is nothing to be done.
    /// Only for SQLite.
    pub(crate) fn put_off(
        &mut self,
        (mark, about): (&str, &[Param<'_>]),
        (work, params): (&str, &[Param<'_>]),
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, work)?;
        let (about, params) =
            (with_workspace(&self.workspace, about), with_workspace(&self.workspace, params));
        match &mut self.session {
            Session::Sqlite(session) => session.put_off((mark, &about), (work, &params)),
            Session::Postgres(_) => Err(Error::Internal("nothing is put off here".into())),
        }
    }

    /// Runs a statement that adds amounts, its last parameters, to the row that the others name. In a
    /// [shared write](crate::Db::shared_write) it is run once for all of a commit that add to the same row, before anybody
    /// else can look at it; an error then fails the whole commit.
    pub(crate) async fn add_at_end(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let row = with_workspace(&self.workspace, row);
        self.session.add_at_end(sql, &row, amounts).await
    }

    /// A number for a row that comes [at the end](Self::at_end) or [later](Self::put_off): above the one that a query without
    /// parameters finds, and above all that were given out before. Only SQLite needs it.
    pub(crate) fn next_number(&mut self, highest: &str) -> Result<i64> {
        match &mut self.session {
            Session::Sqlite(session) => session.next_number(highest),
            Session::Postgres(_) => Err(Error::Internal("rows have no numbers here".into())),
        }
    }

    /// Runs a query and reads its first row, if there is one. `$1` is the workspace.
    pub async fn one<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<T>> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
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
        statements::check(&self.workspace, &mut self.seen, sql)?;
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
    pub(super) fn new(session: Session, scope: &Scope) -> Self {
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

    /// The connection, for those who know that it is one to SQLite.
    pub(super) fn sqlite(&mut self) -> Result<&mut SqliteSession> {
        match &mut self.inner.session {
            Session::Sqlite(session) => Ok(session),
            Session::Postgres(_) => Err(Error::Internal("not a SQLite session".into())),
        }
    }

    /// The connection, for those who know that it is one to PostgreSQL.
    pub(super) fn postgres(&mut self) -> Result<&mut PostgresSession> {
        match &mut self.inner.session {
            Session::Postgres(session) => Ok(session),
            Session::Sqlite(_) => Err(Error::Internal("not a PostgreSQL session".into())),
        }
    }
}
