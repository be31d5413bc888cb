//! A connection to PostgreSQL while a transaction uses it: statements pipelined before the first and next one, and
//! increments deferred to the end.

use deadpool_postgres::Object;
use futures_util::{
    FutureExt,
    future::{try_join, try_join_all, try_join3},
};
use tokio_postgres::{Statement, types::ToSql};

use crate::{
    error::{Error, Result},
    sql::{
        deferred_statement::{DeferredIncrement, DeferredStatement, merge_increments},
        traffic::Traffic,
        value::{Cells, Param, ReadRow, Row},
    },
};

/// Maximum statements that are pipelined.
const MAX_PIPELINED: usize = 64;
/// Where the work of one member of a group starts.
pub(super) const SAVEPOINT: &str = "SAVEPOINT job";

/// A pooled connection while a transaction uses it.
pub(in crate::sql) struct PostgresSession {
    /// Present until it is discarded.
    client: Option<Object>,
    /// What must be sent before the first statement.
    begin: Option<Begin>,
    /// Whether the transaction only reads, so that nothing depends on how it ends.
    is_read: bool,
    /// Whether a transaction is open on the server.
    open: bool,
    /// Statements to send with the next one.
    pipeline: Vec<DeferredStatement>,
    /// Increments to apply at the end of a group.
    pub(super) increments: Vec<DeferredIncrement>,
    /// Whether this is a group, whose members never read what they add to.
    pub(super) defers_increments: bool,
}

/// What must be sent before the first statement: the start of the transaction, and the workspace that row-level
/// security compares with, for this transaction only. A pooled connection, ours or one behind a pooler, keeps nothing
/// of it for the next user.
pub(super) struct Begin {
    sql: String,
}

impl Begin {
    pub(super) fn new(transaction: &str, workspace: &str) -> Self {
        let workspace = workspace.replace('\\', r"\\").replace('\'', "''");
        Self { sql: format!("{transaction}; SET LOCAL mailbox.workspace = E'{workspace}'") }
    }

    async fn send(self, client: &Object) -> Result<()> {
        Ok(client.batch_execute(&self.sql).await?)
    }
}

/// A prepared statement with its parameters.
type ReadyStatement<'a> = (Statement, Vec<Param<'a>>);

impl PostgresSession {
    pub(super) fn new(client: Object, begin: Begin, is_read: bool) -> Self {
        Self {
            client: Some(client),
            begin: Some(begin),
            is_read,
            open: false,
            pipeline: Vec::new(),
            increments: Vec::new(),
            defers_increments: false,
        }
    }

    fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))
    }

    /// Runs `work` for prepared statements, pipelined after what must precede it.
    async fn with_begin<T>(
        &mut self,
        statements: &[&str],
        work: impl AsyncFnOnce(&Object, &[Statement]) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let pipeline = std::mem::take(&mut self.pipeline);
        let mut ready = Vec::with_capacity(pipeline.len());
        let mut prepared = Vec::with_capacity(statements.len());
        let client = self.client()?;
        for statement in &pipeline {
            ready.push((prepare(client, &statement.sql).await?, statement.params()));
        }
        for sql in statements {
            prepared.push(prepare(client, sql).await?);
        }
        // Only now, so that no error leaves a transaction that is thought to have begun.
        let begin = self.begin.take();
        self.open |= begin.is_some();
        let client = self.client()?;
        Traffic { statements: ready.len() + statements.len(), round_trips: 1 }.record();
        let work = async { Ok(work(client, &prepared).await?) };
        match (begin, ready.is_empty()) {
            (None, true) => work.await,
            (Some(begin), true) => Ok(try_join(begin.send(client), work).await?.1),
            (None, false) => Ok(try_join(send_all(client, &ready), work).await?.1),
            (Some(begin), false) => {
                Ok(try_join3(begin.send(client), send_all(client, &ready), work).await?.2)
            }
        }
    }

    /// Queues a statement for the next round trip.
    pub(in crate::sql) async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.pipeline.push(DeferredStatement::new(sql, params)?);
        if self.pipeline.len() >= MAX_PIPELINED { self.flush().await } else { Ok(()) }
    }

    /// Adds amounts to a row; in a group once for all that add to the same one.
    pub(in crate::sql) async fn add_at_commit(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        let increment = DeferredIncrement::new(sql, row, amounts)?;
        if self.defers_increments {
            self.increments.push(increment);
            return Ok(());
        }
        self.pipeline(sql, &increment.params()).await
    }

    /// Sends the queued statements.
    pub(super) async fn flush(&mut self) -> Result<()> {
        let Some(last) = self.pipeline.pop() else { return Ok(()) };
        self.run(&last.sql, &last.params()).await?;
        Ok(())
    }

    /// Rolls back to the savepoint.
    pub(super) async fn undo(&mut self) -> Result<()> {
        // It may not have been sent yet.
        if let Some(at) = self.pipeline.iter().position(|statement| statement.sql == SAVEPOINT) {
            self.pipeline.truncate(at);
            return Ok(());
        }
        self.pipeline.clear();
        Traffic { statements: 2, round_trips: 1 }.record();
        Ok(self.client()?.batch_execute("ROLLBACK TO job; RELEASE job").await?)
    }

    pub(in crate::sql) async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let params = dynamic(params);
        self.with_begin(&[sql], async |client, prepared| client.execute(&prepared[0], &params).await).await
    }

    /// Runs a query and reads its rows.
    pub(in crate::sql) async fn rows(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: ReadRow<'_>,
    ) -> Result<()> {
        let params = dynamic(params);
        let rows = self
            .with_begin(&[sql], async |client, prepared| client.query(&prepared[0], &params).await)
            .await?;
        rows.iter().try_for_each(|row| read(&mut Row { cells: Cells::Postgres(row), next: 0 }))
    }

    /// Runs queries in one round trip, and returns the rows of each.
    pub(in crate::sql) async fn rows_of_all(
        &mut self,
        queries: &[(String, Vec<Param<'_>>)],
    ) -> Result<Vec<Vec<tokio_postgres::Row>>> {
        let statements: Vec<&str> = queries.iter().map(|(sql, _)| sql.as_str()).collect();
        self.with_begin(&statements, async |client, prepared| {
            let query = async |(statement, (_, params)): (&Statement, &(String, Vec<Param<'_>>))| {
                client.query(statement, &dynamic(params)).await
            };
            try_join_all(prepared.iter().zip(queries).map(query)).await
        })
        .await
    }

    pub(in crate::sql) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run("SELECT 1", &[]).await?;
        Traffic { statements: 1, round_trips: 1 }.record();
        Ok(self.client()?.batch_execute(sql).await?)
    }

    pub(super) async fn finish(&mut self, commit: bool) -> Result<()> {
        let increments = merge_increments(std::mem::take(&mut self.increments));
        if commit {
            for increment in increments {
                self.pipeline(increment.sql, &increment.params()).await?;
            }
        }
        if commit && !self.pipeline.is_empty() {
            // In one round trip: after a failed statement, this COMMIT is a rollback.
            self.run("COMMIT", &[]).await?;
        } else if let Some(client) = &self.client
            && self.open
        {
            Traffic { statements: 1, round_trips: 1 }.record();
            client.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        self.pipeline.clear();
        self.open = false;
        Ok(())
    }
}

/// A prepared statement of this connection, which keeps it.
async fn prepare(client: &Object, sql: &str) -> Result<Statement> {
    let known = client.statement_cache.size();
    let statement = client.prepare_cached(sql).await?;
    if client.statement_cache.size() > known {
        Traffic { statements: 0, round_trips: 1 }.record();
    }
    Ok(statement)
}

/// Sends statements without waiting for the one before.
async fn send_all(client: &Object, ready: &[ReadyStatement<'_>]) -> Result<()> {
    let send =
        async |(statement, params): &ReadyStatement<'_>| client.execute(statement, &dynamic(params)).await;
    try_join_all(ready.iter().map(send)).await?;
    Ok(())
}

fn dynamic<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // The next user of the connection must not get a half-finished transaction.
        let Some(client) = self.client.take() else { return };
        if self.is_read {
            // Sent before anything of the next user; nobody has to wait for the response.
            let _ = client.batch_execute("COMMIT").now_or_never();
        } else {
            drop(Object::take(client));
        }
    }
}
