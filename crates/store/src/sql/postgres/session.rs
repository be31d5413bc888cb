//! A connection to PostgreSQL while a transaction uses it: statements pipelined before the first and next one, and
//! increments deferred to the end.

use std::{borrow::Cow, sync::Arc};

use deadpool_postgres::Object;
use futures_util::future::{try_join, try_join_all, try_join3};
use tokio_postgres::{Statement, types::ToSql};

use super::{
    rows::{Argument, arguments, for_many},
    settings::ConnectionSettings,
    statements::StatementCounters,
};
use crate::{
    error::{Error, Result},
    sql::{
        deferred_statement::{DeferredIncrement, DeferredStatement, merge_increments},
        value::{Cells, Param, Query, ReadRow, Row},
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
    /// Whether a transaction is open on the server.
    open: bool,
    /// Statements to send with the next one.
    pipeline: Vec<DeferredStatement>,
    /// Increments to apply before the commit.
    pub(super) increments: Vec<DeferredIncrement>,
    /// Whether this is a group or a batch, whose members never read what they add to.
    pub(super) defers_increments: bool,
    counters: Arc<StatementCounters>,
    /// Whether its commit is counted, and whether that is asynchronous.
    commits: Option<bool>,
}

/// What must be sent before the first statement.
pub(super) enum Begin {
    /// BEGIN and the settings of the transaction, and whether it commits asynchronously; `None` if it only reads.
    Transaction { statements: String, commits: Option<bool> },
    /// The workspace of a bare read.
    Read { set_workspace: Statement, setting: String, known: Arc<ConnectionSettings> },
}

impl Begin {
    async fn send(self, client: &Object) -> Result<()> {
        match self {
            Self::Transaction { statements, .. } => Ok(client.batch_execute(&statements).await?),
            Self::Read { set_workspace, setting, known } => {
                client.query(&set_workspace, &[&setting as &(dyn ToSql + Sync)]).await?;
                known.confirm(client, setting);
                Ok(())
            }
        }
    }
}

impl PostgresSession {
    pub(super) fn new(client: Object, begin: Option<Begin>, counters: Arc<StatementCounters>) -> Self {
        let commits = match &begin {
            Some(Begin::Transaction { commits, .. }) => *commits,
            _ => None,
        };
        Self {
            client: Some(client),
            begin,
            counters,
            commits,
            open: false,
            pipeline: Vec::new(),
            increments: Vec::new(),
            defers_increments: false,
        }
    }

    fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))
    }

    /// Runs `work` with prepared statements, pipelined after what must precede it.
    async fn with_begin<T>(
        &mut self,
        texts: &[&str],
        work: impl AsyncFnOnce(&Object, &[Statement]) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let begin = self.begin.take();
        self.open |= matches!(begin, Some(Begin::Transaction { .. }));
        let pipeline = std::mem::take(&mut self.pipeline);
        let client = self.client()?;
        let mut ready = Vec::with_capacity(pipeline.len());
        for statement in &pipeline {
            ready.push((prepare(client, statement).await?, arguments(statement)));
        }
        let mut statements = Vec::with_capacity(texts.len());
        for sql in texts {
            statements.push(client.prepare_cached(sql).await?);
        }
        self.counters.sent(usize::from(begin.is_some()) + ready.len() + statements.len());
        let work = async { Ok(work(client, &statements).await?) };
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

    /// The same for several rows of parameters.
    pub(in crate::sql) async fn pipeline_rows(&mut self, sql: &str, rows: &[Vec<Param<'_>>]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.pipeline.push(DeferredStatement::of_rows(sql, rows)?);
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
        self.rows_of(&last, &mut |_| Ok(())).await
    }

    /// Rolls back to the savepoint.
    pub(super) async fn undo(&mut self) -> Result<()> {
        // It may not have been sent yet.
        if let Some(at) = self.pipeline.iter().position(|statement| statement.sql == SAVEPOINT) {
            self.pipeline.truncate(at);
            return Ok(());
        }
        self.pipeline.clear();
        self.counters.sent(2);
        Ok(self.client()?.batch_execute("ROLLBACK TO job; RELEASE job").await?)
    }

    pub(in crate::sql) async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let params = dynamic(params);
        self.with_begin(&[sql], async |client, ready| client.execute(&ready[0], &params).await).await
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

    /// Runs several queries in one round trip, in this order.
    pub(in crate::sql) async fn query_together(&mut self, queries: &mut [Query<'_>]) -> Result<()> {
        let texts: Vec<&str> = queries.iter().map(|query| query.sql).collect();
        let params: Vec<_> = queries.iter().map(|query| dynamic(&query.params)).collect();
        let send = async |client: &Object, ready: &[Statement]| {
            let each = ready.iter().zip(&params).map(|(statement, params)| client.query(statement, params));
            try_join_all(each).await
        };
        let found = self.with_begin(&texts, send).await?;
        drop(params);
        found.iter().zip(queries).try_for_each(|(rows, query)| read_all(rows, &mut query.read))
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
        let sql = text(self.client()?, statement).await?;
        let arguments = arguments(statement);
        let params = references(&arguments);
        let rows =
            self.with_begin(&[&sql], async |client, ready| client.query(&ready[0], &params).await).await?;
        read_all(&rows, read)
    }

    pub(in crate::sql) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run("SELECT 1", &[]).await?;
        self.counters.sent(1);
        Ok(self.client()?.batch_execute(sql).await?)
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
            self.client()?.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        if let Some(asynchronously) = self.commits.filter(|_| commit && self.open) {
            self.counters.committed(asynchronously);
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
async fn text<'a>(client: &Object, statement: &'a DeferredStatement) -> Result<Cow<'a, str>> {
    if statement.rows() == 1 {
        return Ok(Cow::Borrowed(&statement.sql));
    }
    // The types of its parameters come from the text for one row.
    let single = client.prepare_cached(&statement.sql).await?;
    let many = for_many(&statement.sql, single.params());
    many.map(Cow::Owned).ok_or_else(|| Error::Internal("a statement that is for one row only".into()))
}

async fn prepare(client: &Object, statement: &DeferredStatement) -> Result<Statement> {
    Ok(client.prepare_cached(&text(client, statement).await?).await?)
}

fn read_all(rows: &[tokio_postgres::Row], read: ReadRow<'_>) -> Result<()> {
    rows.iter().try_for_each(|row| read(&mut Row { cells: Cells::Postgres(row), next: 0 }))
}

/// Sends statements without waiting for the one before.
async fn send_all(client: &Object, ready: &[(Statement, Vec<Argument<'_>>)]) -> Result<()> {
    let send = async |(statement, arguments): &(Statement, Vec<Argument<'_>>)| {
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
        // The next user of the connection must not get a half-finished transaction.
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
