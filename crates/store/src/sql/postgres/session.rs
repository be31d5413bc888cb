//! A connection to PostgreSQL while a transaction uses it: what is sent ahead of its first statement, what is kept for its
//! next one, and what is added at its end.

use deadpool_postgres::Object;
use futures_util::future::{try_join, try_join_all, try_join3};
use tokio_postgres::{Statement, types::ToSql};

use crate::{
    error::{Error, Result},
    sql::{
        kept::{KeptStatement, KeptSum, added_up},
        value::{Cells, Param, ReadRow, Row},
    },
};

/// Statements that are held back at most.
const MAX_PIPELINED: usize = 64;
/// Where the work of one member of a group begins.
pub(super) const SAVEPOINT: &str = "SAVEPOINT job";

/// A pooled connection while a transaction uses it.
pub(in crate::sql) struct PostgresSession {
    /// Present until it is thrown away.
    client: Option<Object>,
    /// What must be sent ahead of the first statement.
    begin: Option<Begin>,
    /// Whether a transaction is open on the server.
    open: bool,
    /// Statements that go out with the next one.
    later: Vec<KeptStatement>,
    /// Amounts that are added at the end of a group.
    pub(super) sums: Vec<KeptSum>,
    /// Whether this is a group, whose members never look at what they add to.
    pub(super) adds_later: bool,
}

/// What must be sent ahead of the first statement: what opens a transaction, if there is to be one, and the workspace.
pub(super) struct Begin {
    pub(super) transaction: Option<&'static str>,
    pub(super) set_workspace: Statement,
    pub(super) setting: String,
}

impl Begin {
    async fn send(self, client: &Object) -> Result<()> {
        let set = [&self.setting as &(dyn ToSql + Sync)];
        let set = client.query(&self.set_workspace, &set);
        if let Some(begin) = self.transaction {
            try_join(client.batch_execute(begin), set).await?;
        } else {
            set.await?;
        }
        Ok(())
    }
}

impl PostgresSession {
    pub(super) fn new(client: Object, begin: Begin) -> Self {
        Self {
            client: Some(client),
            begin: Some(begin),
            open: false,
            later: Vec::new(),
            sums: Vec::new(),
            adds_later: false,
        }
    }

    /// Runs `work`, with what must precede it sent in the same breath.
    async fn with_begin<T>(
        &mut self,
        sql: &str,
        work: impl AsyncFnOnce(&Object, &Statement) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let begin = self.begin.take();
        self.open |= begin.as_ref().is_some_and(|begin| begin.transaction.is_some());
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        let later = std::mem::take(&mut self.later);
        let mut ready = Vec::with_capacity(later.len());
        for kept in &later {
            ready.push((client.prepare_cached(&kept.sql).await?, kept.params()));
        }
        let statement = client.prepare_cached(sql).await?;
        let work = async { Ok(work(client, &statement).await?) };
        match (begin, ready.is_empty()) {
            (None, true) => work.await,
            (Some(begin), true) => Ok(try_join(begin.send(client), work).await?.1),
            (None, false) => Ok(try_join(send_all(client, &ready), work).await?.1),
            (Some(begin), false) => {
                Ok(try_join3(begin.send(client), send_all(client, &ready), work).await?.2)
            }
        }
    }

    /// Keeps a statement for the next trip.
    pub(in crate::sql) async fn later(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.later.push(KeptStatement::new(sql, params)?);
        if self.later.len() >= MAX_PIPELINED { self.flush().await } else { Ok(()) }
    }

    /// Adds amounts to a row; in a group once for all that add to the same one.
    pub(in crate::sql) async fn add_at_end(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        let sum = KeptSum::new(sql, row, amounts)?;
        if self.adds_later {
            self.sums.push(sum);
            return Ok(());
        }
        self.later(sql, &sum.params()).await
    }

    /// Sends what was kept.
    pub(super) async fn flush(&mut self) -> Result<()> {
        let Some(last) = self.later.pop() else { return Ok(()) };
        self.run(&last.sql, &last.params()).await?;
        Ok(())
    }

    /// Forgets what was done since the savepoint.
    pub(super) async fn undo(&mut self) -> Result<()> {
        // It may not even have been sent.
        if let Some(at) = self.later.iter().position(|kept| kept.sql == SAVEPOINT) {
            self.later.truncate(at);
            return Ok(());
        }
        self.later.clear();
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        Ok(client.batch_execute("ROLLBACK TO job; RELEASE job").await?)
    }

    pub(in crate::sql) async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let params = dynamic(params);
        self.with_begin(sql, async |client, statement| client.execute(statement, &params).await).await
    }

    /// Runs a query and has its rows read.
    pub(in crate::sql) async fn rows(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: ReadRow<'_>,
    ) -> Result<()> {
        let params = dynamic(params);
        let rows =
            self.with_begin(sql, async |client, statement| client.query(statement, &params).await).await?;
        rows.iter().try_for_each(|row| read(&mut Row { cells: Cells::Postgres(row), next: 0 }))
    }

    pub(in crate::sql) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run("SELECT 1", &[]).await?;
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        Ok(client.batch_execute(sql).await?)
    }

    pub(super) async fn finish(&mut self, commit: bool) -> Result<()> {
        let sums = added_up(std::mem::take(&mut self.sums));
        if commit {
            for sum in sums {
                self.later(sum.sql, &sum.params()).await?;
            }
        }
        if commit && !self.later.is_empty() {
            // In one trip: after a statement that failed, this COMMIT only ends the transaction.
            self.run("COMMIT", &[]).await?;
        } else if let Some(client) = &self.client
            && self.open
        {
            client.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        self.later.clear();
        self.open = false;
        Ok(())
    }
}

/// Sends statements without waiting for one before the next.
async fn send_all(client: &Object, ready: &[(Statement, Vec<Param<'_>>)]) -> Result<()> {
    let send = async |(statement, params): &(Statement, Vec<Param<'_>>)| {
        client.execute(statement, &dynamic(params)).await
    };
    try_join_all(ready.iter().map(send)).await?;
    Ok(())
}

fn dynamic<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        // A transaction that was abandoned half-way must not be met by the next user of the connection.
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
