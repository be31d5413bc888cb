//! A connection to PostgreSQL while a transaction uses it: statements pipelined before the first and next one, and
//! increments deferred to the end.

use std::{borrow::Cow, sync::Arc};

use futures_util::{
    FutureExt,
    future::{try_join, try_join_all, try_join3},
};
use tokio_postgres::types::ToSql;

use super::{
    connection::{Connection, PooledConnection, ReadyStatement},
    rows::{Argument, arguments, for_many},
    statements::{StatementCounters, TransactionEnd},
};
use crate::{
    error::{Error, Result},
    sql::{
        deferred_statement::{DeferredIncrement, DeferredStatement, merge_increments},
        value::{Cells, Param, ReadRow, Row},
    },
};

/// Maximum statements that are pipelined.
const MAX_PIPELINED: usize = 64;

/// A pooled connection while a transaction uses it.
pub(in crate::sql) struct PostgresSession {
    /// Present until it is discarded.
    client: Option<PooledConnection>,
    /// What must be sent before the first statement.
    begin: Option<Begin>,
    /// What depends on how the transaction ends.
    end: TransactionEnd,
    /// Whether a transaction is open on the server.
    open: bool,
    /// Statements to send with the next one.
    pipeline: Vec<DeferredStatement>,
    /// Increments to apply before the commit.
    increments: Vec<DeferredIncrement>,
    /// Whether nothing reads in this transaction what it adds to.
    pub(super) defers_increments: bool,
    counters: Arc<StatementCounters>,
}

/// What must be sent before the first statement, and how the transaction ends.
pub(super) struct Begin {
    /// The start of the transaction, and its [settings](super::settings).
    pub(super) statements: String,
    pub(super) end: TransactionEnd,
}

impl Begin {
    async fn send(self, client: &Connection) -> Result<()> {
        Ok(client.batch(&self.statements).await?)
    }
}

impl PostgresSession {
    pub(super) fn new(client: PooledConnection, begin: Begin, counters: Arc<StatementCounters>) -> Self {
        Self {
            client: Some(client),
            end: begin.end,
            begin: Some(begin),
            counters,
            open: false,
            pipeline: Vec::new(),
            increments: Vec::new(),
            defers_increments: false,
        }
    }

    fn client(&self) -> Result<&Connection> {
        self.client.as_deref().ok_or_else(|| Error::Internal("the connection is gone".into()))
    }

    /// Runs `work` with prepared statements, pipelined after what must precede it.
    async fn with_begin<T>(
        &mut self,
        statements: &[&str],
        work: impl AsyncFnOnce(&Connection, &[ReadyStatement]) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let pipeline = std::mem::take(&mut self.pipeline);
        let mut ready = Vec::with_capacity(pipeline.len());
        let mut prepared = Vec::with_capacity(statements.len());
        self.begin_to_learn(&pipeline, statements).await?;
        let client = self.client()?;
        for statement in &pipeline {
            ready.push((ready_rows(client, statement).await?, arguments(statement)));
        }
        for sql in statements {
            prepared.push(client.ready(sql).await?);
        }
        // Only now, so that no error leaves a transaction that is thought to have begun.
        let begin = self.begin.take();
        self.open |= begin.is_some();
        let client = self.client()?;
        self.counters.sent(ready.len() + statements.len());
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

    /// Begins the transaction at once where a statement can only be made ready within it.
    async fn begin_to_learn(&mut self, pipeline: &[DeferredStatement], statements: &[&str]) -> Result<()> {
        let client = self.client()?;
        let learns = statements.iter().any(|sql| client.needs_transaction_for(sql))
            || pipeline.iter().any(|statement| needs_transaction_for(client, statement));
        if learns && let Some(begin) = self.begin.take() {
            self.open = true;
            begin.send(self.client()?).await?;
        }
        Ok(())
    }

    /// Queues a statement for the next round trip.
    pub(in crate::sql) async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.pipeline.push(DeferredStatement::new(sql, params)?);
        if self.pipeline.len() >= MAX_PIPELINED { self.flush().await } else { Ok(()) }
    }

    /// The same for several rows of parameters.
    pub(in crate::sql) async fn pipeline_rows(&mut self, sql: &str, rows: &[Vec<Param<'_>>]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.pipeline.push(DeferredStatement::of_rows(sql, rows)?);
        if self.pipeline.len() >= MAX_PIPELINED { self.flush().await } else { Ok(()) }
    }

    /// Adds amounts to a row; in a batch once for all that add to the same one.
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
    async fn flush(&mut self) -> Result<()> {
        let Some(last) = self.pipeline.pop() else { return Ok(()) };
        self.rows_of(&last, &mut |_| Ok(())).await
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
        let rows =
            self.with_begin(&[sql], async |client, ready| client.query(&ready[0], &params).await).await?;
        read_all(&rows, read)
    }

    /// Runs a statement for several rows of parameters, and reads the rows that it returns.
    pub(in crate::sql) async fn query_rows(
        &mut self,
        sql: &str,
        rows: &[Vec<Param<'_>>],
        read: ReadRow<'_>,
    ) -> Result<()> {
        self.rows_of(&DeferredStatement::of_rows(sql, rows)?, read).await
    }

    async fn rows_of(&mut self, statement: &DeferredStatement, read: ReadRow<'_>) -> Result<()> {
        self.begin_to_learn(std::slice::from_ref(statement), &[]).await?;
        let sql = text(self.client()?, statement).await?;
        let arguments = arguments(statement);
        let params = references(&arguments);
        let rows =
            self.with_begin(&[&sql], async |client, ready| client.query(&ready[0], &params).await).await?;
        read_all(&rows, read)
    }

    /// Runs queries in one round trip, and returns the rows of each.
    pub(in crate::sql) async fn rows_of_all(
        &mut self,
        queries: &[(String, Vec<Param<'_>>)],
    ) -> Result<Vec<Vec<tokio_postgres::Row>>> {
        let statements: Vec<&str> = queries.iter().map(|(sql, _)| sql.as_str()).collect();
        self.with_begin(&statements, async |client, prepared| {
            let query = async |(statement, (_, params)): (&ReadyStatement, &(String, Vec<Param<'_>>))| {
                client.query(statement, &dynamic(params)).await
            };
            try_join_all(prepared.iter().zip(queries).map(query)).await
        })
        .await
    }

    pub(in crate::sql) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run("SELECT 1", &[]).await?;
        self.counters.sent(1);
        Ok(self.client()?.batch(sql).await?)
    }

    pub(super) async fn finish(&mut self, commit: bool) -> Result<()> {
        let increments = merge_increments(std::mem::take(&mut self.increments));
        if commit {
            self.pipeline_increments(&increments).await?;
        }
        if commit && !self.pipeline.is_empty() {
            // In one round trip: after a failed statement, this COMMIT is a rollback.
            self.run("COMMIT", &[]).await?;
        } else if self.open {
            self.counters.sent(1);
            self.client()?.batch(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        if commit && self.open {
            self.counters.committed(self.end);
        }
        self.pipeline.clear();
        self.open = false;
        Ok(())
    }

    /// One statement for all rows that increments of the same text add to.
    async fn pipeline_increments(&mut self, increments: &[DeferredIncrement]) -> Result<()> {
        let mut statements: Vec<(&DeferredIncrement, Vec<Vec<Param<'_>>>)> = Vec::new();
        for increment in increments {
            match statements.iter_mut().find(|(first, _)| first.is_same_statement(increment)) {
                Some((_, rows)) => rows.push(increment.params()),
                None => statements.push((increment, vec![increment.params()])),
            }
        }
        for (first, rows) in statements {
            self.pipeline_rows(first.sql, &rows).await?;
        }
        Ok(())
    }
}

/// The text of a statement, for as many rows as it has.
async fn text<'a>(client: &Connection, statement: &'a DeferredStatement) -> Result<Cow<'a, str>> {
    if statement.rows() == 1 {
        return Ok(Cow::Borrowed(&statement.sql));
    }
    // The types of its parameters come from the text for one row.
    let single = client.ready(&statement.sql).await?;
    let many = for_many(&statement.sql, single.types());
    many.map(Cow::Owned).ok_or_else(|| Error::Internal("a statement that is for one row only".into()))
}

/// Whether a statement can be made ready only within a transaction, for as many rows as it has.
fn needs_transaction_for(client: &Connection, statement: &DeferredStatement) -> bool {
    let Some(types) = client.unprepared_types(&statement.sql) else {
        return client.needs_transaction_for(&statement.sql);
    };
    statement.rows() > 1
        && for_many(&statement.sql, &types).is_some_and(|many| client.needs_transaction_for(&many))
}

async fn ready_rows(client: &Connection, statement: &DeferredStatement) -> Result<ReadyStatement> {
    Ok(client.ready(&text(client, statement).await?).await?)
}

fn read_all(rows: &[tokio_postgres::Row], read: ReadRow<'_>) -> Result<()> {
    rows.iter().try_for_each(|row| read(&mut Row { cells: Cells::Postgres(row), next: 0 }))
}

/// Sends statements without waiting for the one before.
async fn send_all(client: &Connection, ready: &[(ReadyStatement, Vec<Argument<'_>>)]) -> Result<()> {
    let send = async |(statement, arguments): &(ReadyStatement, Vec<Argument<'_>>)| {
        client.execute(statement, &references(arguments)).await
    };
    try_join_all(ready.iter().map(send)).await?;
    Ok(())
}

fn dynamic<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

fn references<'a>(arguments: &'a [Argument<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    arguments.iter().map(|argument| argument as &(dyn ToSql + Sync)).collect()
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // The next user of the connection must not get a half-finished transaction.
        let Some(client) = self.client.take() else { return };
        if self.end == TransactionEnd::Read {
            // Sent before anything of the next user; nobody has to wait for the response.
            let _ = client.batch("COMMIT").now_or_never();
        } else {
            drop(PooledConnection::take(client));
        }
    }
}
