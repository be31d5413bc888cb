//! Transactions as store functions see them: of one workspace, or across workspaces.
//!
//! Every statement of a workspace gets its workspace here, so that none can run without it.

use model::{MailboxId, WorkspaceId, audit::AuditDetails};

#[cfg(feature = "faults")]
use super::faults::statements;
use super::{
    postgres::session::PostgresSession,
    scope::Scope,
    select::AnySelect,
    session::Session,
    sqlite::session::SqliteSession,
    value::{FromRow, Param},
    wake::{Topic, Wake},
};
use crate::error::{Error, Result};

/// A transaction of one workspace.
/// Its statements get the workspace as `$1` automatically, so no store function can name another one; their own
/// parameters start at `$2`.
pub struct Tx {
    session: Session,
    workspace: WorkspaceId,
    /// Sent to the listeners after the commit.
    pub(super) wakes: Vec<Wake>,
    /// What the audit entry says that is written with it.
    audit: AuditDetails,
    /// Statements since the one that a fault counts from.
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

    /// What the audit entry of the call says that this transaction writes.
    pub fn audit(&mut self) -> &mut AuditDetails {
        &mut self.audit
    }

    /// Wakes the listeners on all nodes after the commit: something changed in its workspace, or in one of its
    /// mailboxes.
    pub fn wake(&mut self, topic: Topic, mailbox: Option<&MailboxId>) {
        let workspace = self.workspace.clone();
        self.wakes.push(Wake { topic, workspace, mailbox: mailbox.cloned(), handled: false });
    }

    /// Runs a statement and returns how many rows it affected. `$1` is the workspace.
    pub async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.run(sql, &params).await
    }

    /// Runs a statement whose result is not needed, together with the next one or with the commit: on PostgreSQL they
    /// share a round trip. An error is returned by that next statement.
    pub async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.pipeline(sql, &params).await
    }

    /// Runs a statement for each of several rows of parameters, all of them together with the next statement or with
    /// the commit: on PostgreSQL it is one statement. It is an INSERT with VALUES or an UPDATE with WHERE, and no two
    /// rows may change the same one.
    pub(crate) async fn pipeline_rows(&mut self, sql: &str, rows: Vec<Vec<Param<'_>>>) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let rows = rows_with_workspace(&self.workspace, rows);
        self.session.pipeline_rows(sql, &rows).await
    }

    /// The same at once, for a statement that returns rows.
    pub(crate) async fn all_of_rows<T: FromRow>(
        &mut self,
        sql: &str,
        rows: Vec<Vec<Param<'_>>>,
    ) -> Result<Vec<T>> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let rows = rows_with_workspace(&self.workspace, rows);
        self.session.query_rows(sql, &rows).await
    }

    /// Runs a statement at the end of the commit, after all others that share it, in the order of these calls. For
    /// statements that are cheaper in one batch: FTS5 flushes at every savepoint. An error fails the whole commit.
    pub(crate) async fn at_commit(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let params = with_workspace(&self.workspace, params);
        self.session.at_commit(sql, &params).await
    }

    /// Runs a statement in this commit or in a later one, together with others; for work that only has to be done
    /// before [it is needed](crate::Db::index_texts). It is lost when the process ends before that, so this
    /// transaction has to store a marker: the first statement deletes it, and when it affects no row there is nothing
    /// to do. Only for SQLite.
    pub(crate) fn defer(
        &mut self,
        (clear_marker, marker_params): (&str, &[Param<'_>]),
        (task, params): (&str, &[Param<'_>]),
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, task)?;
        let (marker_params, params) =
            (with_workspace(&self.workspace, marker_params), with_workspace(&self.workspace, params));
        match &mut self.session {
            Session::Sqlite(session) => session.defer((clear_marker, &marker_params), (task, &params)),
            Session::Postgres(_) => Err(Error::Internal("nothing is put off here".into())),
        }
    }

    /// Runs a statement that adds amounts, its last parameters, to the row that the others select. In a [shared
    /// write](crate::Db::shared_write) it runs once per commit and row, before any other transaction can read the
    /// row; an error then fails the whole commit.
    pub(crate) async fn add_at_commit(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        #[cfg(feature = "faults")]
        statements::check(&self.workspace, &mut self.seen, sql)?;
        let row = with_workspace(&self.workspace, row);
        self.session.add_at_commit(sql, &row, amounts).await
    }

    /// A number for a row that is written [at the commit](Self::at_commit) or [later](Self::defer): above the result
    /// of a query without parameters, and above all numbers allocated before. Only for SQLite.
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

    /// Runs a statement that changes one row and reads a column of that row, by a query with the first of the same
    /// parameters. On PostgreSQL that is RETURNING; SQLite materialises what a statement returns, which costs many
    /// times as much as a query.
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

    /// Runs queries that do not need each other's rows: on PostgreSQL they share a round trip.
    pub async fn select(&mut self, selects: &mut [&mut dyn AnySelect<'_>]) -> Result<()> {
        let mut statements = Vec::with_capacity(selects.len());
        for select in &mut *selects {
            let (sql, params) = select.take_statement();
            #[cfg(feature = "faults")]
            statements::check(&self.workspace, &mut self.seen, &sql)?;
            statements.push((sql, with_workspace(&self.workspace, &params)));
        }
        self.session.select(selects, &statements).await
    }
}

fn with_workspace<'a>(workspace: &'a WorkspaceId, params: &[Param<'a>]) -> Vec<Param<'a>> {
    let mut all = Vec::with_capacity(params.len() + 1);
    all.push(Param::from(workspace));
    all.extend_from_slice(params);
    all
}

fn rows_with_workspace<'a>(workspace: &'a WorkspaceId, mut rows: Vec<Vec<Param<'a>>>) -> Vec<Vec<Param<'a>>> {
    for row in &mut rows {
        row.insert(0, Param::from(workspace));
    }
    rows
}

impl SystemTx {
    pub(super) fn new(session: Session, scope: &Scope) -> Self {
        Self {
            inner: Tx {
                session,
                workspace: scope.workspace(),
                wakes: Vec::new(),
                audit: AuditDetails::default(),
                #[cfg(feature = "faults")]
                seen: 0,
            },
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        self.inner.is_postgres()
    }

    /// Runs statements without parameters or rows, such as those of a migration.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<()> {
        match &mut self.inner.session {
            Session::Sqlite(session) => session.batch(sql),
            Session::Postgres(session) => session.batch(sql).await,
        }
    }

    /// Runs a statement and returns how many rows it affected.
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

    /// The SQLite connection.
    pub(super) fn sqlite(&mut self) -> Result<&mut SqliteSession> {
        match &mut self.inner.session {
            Session::Sqlite(session) => Ok(session),
            Session::Postgres(_) => Err(Error::Internal("not a SQLite session".into())),
        }
    }

    /// The PostgreSQL connection.
    pub(super) fn postgres(&mut self) -> Result<&mut PostgresSession> {
        match &mut self.inner.session {
            Session::Postgres(session) => Ok(session),
            Session::Sqlite(_) => Err(Error::Internal("not a PostgreSQL session".into())),
        }
    }
}
