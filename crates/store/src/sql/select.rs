//! Queries that run together: on PostgreSQL they share a round trip.

use super::value::{FromRow, Param, Row};
use crate::error::Result;

/// A query with its parameters, and its rows once it has run. `$1` is the workspace.
pub struct Select<'a, T> {
    statement: (String, Vec<Param<'a>>),
    rows: Vec<T>,
}

impl<'a, T> Select<'a, T> {
    pub(crate) const fn new(sql: String, params: Vec<Param<'a>>) -> Self {
        Self { statement: (sql, params), rows: Vec::new() }
    }

    /// The rows, once it has [run](super::Tx::select).
    pub fn rows(self) -> Vec<T> {
        self.rows
    }

    /// The first row, if there is one.
    pub fn row(self) -> Option<T> {
        self.rows.into_iter().next()
    }
}

/// A query of any rows.
pub trait AnySelect<'a>: Send {
    /// Its statement, which runs once.
    fn take_statement(&mut self) -> (String, Vec<Param<'a>>);
    /// Reads one of its rows.
    fn read(&mut self, row: &mut Row<'_>) -> Result<()>;
}

impl<'a, T: FromRow> AnySelect<'a> for Select<'a, T> {
    fn take_statement(&mut self) -> (String, Vec<Param<'a>>) {
        std::mem::take(&mut self.statement)
    }

    fn read(&mut self, row: &mut Row<'_>) -> Result<()> {
        self.rows.push(T::from_row(row)?);
        Ok(())
    }
}
