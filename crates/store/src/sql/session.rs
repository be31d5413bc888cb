//! One connection in use by a transaction, on either engine.
//!
//! SQLite returns at once and PostgreSQL is awaited; above this layer there is no difference.

use super::{
    postgres::session::PostgresSession,
    select::AnySelect,
    sqlite::session::SqliteSession,
    value::{Cells, FromRow, Param, ReadRow, Row, read_into},
};
use crate::error::Result;

/// One connection in use by a transaction.
pub(super) enum Session {
    Sqlite(SqliteSession),
    Postgres(PostgresSession),
}

impl Session {
    pub(super) async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        match self {
            Self::Sqlite(session) => session.run(sql, params),
            Self::Postgres(session) => session.run(sql, params).await,
        }
    }

    pub(super) async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.run(sql, params).map(|_| ()),
            Self::Postgres(session) => session.pipeline(sql, params).await,
        }
    }

    pub(super) async fn pipeline_rows(&mut self, sql: &str, rows: &[Vec<Param<'_>>]) -> Result<()> {
        match self {
            Self::Sqlite(session) => rows.iter().try_for_each(|row| session.run(sql, row).map(|_| ())),
            Self::Postgres(session) => session.pipeline_rows(sql, rows).await,
        }
    }

    pub(super) async fn query_rows<T: FromRow>(
        &mut self,
        sql: &str,
        rows: &[Vec<Param<'_>>],
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let mut read = read_into(&mut all);
        match self {
            Self::Sqlite(session) => {
                rows.iter().try_for_each(|row| session.rows(sql, row, &mut read))?;
            }
            Self::Postgres(session) => session.query_rows(sql, rows, &mut read).await?,
        }
        drop(read);
        Ok(all)
    }

    pub(super) async fn at_commit(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.at_commit(sql, params),
            Self::Postgres(session) => session.pipeline(sql, params).await,
        }
    }

    pub(super) async fn add_at_commit(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.add_at_commit(sql, row, amounts),
            Self::Postgres(session) => session.add_at_commit(sql, row, amounts).await,
        }
    }

    async fn rows(&mut self, sql: &str, params: &[Param<'_>], read: ReadRow<'_>) -> Result<()> {
        match self {
            Self::Sqlite(session) => session.rows(sql, params, read),
            Self::Postgres(session) => session.rows(sql, params, read).await,
        }
    }

    /// Runs queries whose statements were taken before.
    pub(super) async fn select(
        &mut self,
        selects: &mut [&mut dyn AnySelect<'_>],
        statements: &[(String, Vec<Param<'_>>)],
    ) -> Result<()> {
        match self {
            Self::Sqlite(session) => {
                for (select, (sql, params)) in selects.iter_mut().zip(statements) {
                    session.rows(sql, params, &mut |row| select.read(row))?;
                }
            }
            Self::Postgres(session) => {
                let rows_of_all = session.rows_of_all(statements).await?;
                for (select, rows) in selects.iter_mut().zip(rows_of_all) {
                    for row in &rows {
                        select.read(&mut Row { cells: Cells::Postgres(row), next: 0 })?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) async fn all<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.rows(sql, params, &mut read_into(&mut all)).await?;
        Ok(all)
    }

    pub(super) async fn one<T: FromRow>(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<T>> {
        Ok(self.all(sql, params).await?.into_iter().next())
    }
}
