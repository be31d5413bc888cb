//! A connection to SQLite while transactions use it: running and rolling back the jobs of a group, and statements
//! deferred to the end of the group or to a later one.

use rusqlite::Connection;

use crate::{
    error::{Error, Result},
    sql::{
        deferred::{DeferredTask, DeferredTasks},
        deferred_statement::{DeferredIncrement, DeferredStatement, merge_increments},
        value::{Cells, Param, ReadRow, Row},
    },
};

/// A connection while a transaction uses it.
pub(in crate::sql) struct SqliteSession {
    pub(super) connection: Connection,
    /// Statements for the end of the group.
    at_commit: Vec<DeferredStatement>,
    /// Increments for the end of the group, or before the first job that could read what they add to.
    increments: Vec<DeferredIncrement>,
    /// Whether the current job never reads what it adds to.
    defers_increments: bool,
    /// The last number that was allocated. None is allocated twice, since it identifies a deferred task.
    number: i64,
    /// Whether the highest number was read in this group.
    number_loaded: bool,
    /// Whether no job of the group has run yet.
    untouched: bool,
    /// Tasks that several commits share.
    pub(super) deferred: DeferredTasks,
}

/// How to roll back one job, or several.
#[derive(Clone, Copy)]
pub(in crate::sql) enum Undo {
    /// The first job: by rolling back the whole transaction. A savepoint would keep a copy of every page that the job
    /// changes.
    Transaction,
    /// By its savepoint; these are the lengths of the lists to truncate.
    Savepoint { statements: usize, increments: usize, deferred: usize },
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            at_commit: Vec::new(),
            increments: Vec::new(),
            defers_increments: false,
            number: 0,
            number_loaded: false,
            untouched: true,
            deferred: DeferredTasks::default(),
        }
    }

    pub(in crate::sql) fn begin_group(&mut self) -> Result<()> {
        self.at_commit.clear();
        self.increments.clear();
        self.number_loaded = false;
        self.untouched = true;
        self.deferred.begin();
        self.control("BEGIN IMMEDIATE")
    }

    pub(in crate::sql) fn begin_job(&mut self) -> Result<Undo> {
        self.require_transaction()?;
        if std::mem::take(&mut self.untouched) {
            return Ok(Undo::Transaction);
        }
        self.control("SAVEPOINT job")?;
        let deferred = self.deferred.deferred_count();
        Ok(Undo::Savepoint { statements: self.at_commit.len(), increments: self.increments.len(), deferred })
    }

    fn require_transaction(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            return Err(Error::Unavailable("the database is locked or cannot be written".into()));
        }
        Ok(())
    }

    pub(in crate::sql) fn end_job(&mut self, undo: Undo, succeeded: bool) -> Result<()> {
        match undo {
            Undo::Transaction if succeeded => Ok(()),
            Undo::Transaction => {
                // Some failures, such as a full disk, have rolled it back already.
                if !self.connection.is_autocommit() {
                    self.batch("ROLLBACK")?;
                }
                self.begin_group()
            }
            Undo::Savepoint { statements, increments, deferred } => {
                if !succeeded {
                    self.deferred.truncate(deferred);
                    self.at_commit.truncate(statements);
                    self.increments.truncate(increments);
                    self.control("ROLLBACK TO job")?;
                }
                self.control("RELEASE job")
            }
        }
    }

    pub(super) fn end_group(&mut self) -> Result<()> {
        self.write_increments()?;
        // Without a transaction each of these would be a commit of its own.
        self.require_transaction()?;
        for statement in std::mem::take(&mut self.at_commit) {
            self.run(&statement.sql, &statement.params())?;
        }
        // FTS5 flushes with the commit, so that may be what fails.
        let committed = self.run_due_tasks().and_then(|()| self.control("COMMIT"));
        match &committed {
            Ok(()) => self.deferred.on_commit(),
            Err(error) => self.deferred.on_failure(error),
        }
        committed
    }

    fn run_due_tasks(&self) -> Result<()> {
        for DeferredTask { clear_marker, task } in self.deferred.due() {
            if self.run(&clear_marker.sql, &clear_marker.params())? > 0 {
                self.run(&task.sql, &task.params())?;
            }
        }
        Ok(())
    }

    /// Runs the deferred tasks, in a commit of their own.
    pub(super) fn flush_deferred(&mut self) -> Result<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        self.begin_group()?;
        self.deferred.request_flush();
        self.end_group()
    }

    /// Writes the increments, one statement per row. If that fails the whole group is rolled back.
    pub(in crate::sql) fn write_increments(&mut self) -> Result<()> {
        let written = merge_increments(std::mem::take(&mut self.increments))
            .into_iter()
            .try_for_each(|increment| self.run(increment.sql, &increment.params()).map(|_| ()));
        if written.is_err() {
            // Fails when there is no open transaction, which is fine.
            let _ = self.batch("ROLLBACK");
        }
        written
    }

    /// Queues a statement for the end of the group.
    pub(in crate::sql) fn at_commit(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.at_commit.push(DeferredStatement::new(sql, params)?);
        Ok(())
    }

    /// Defers a statement to the end of this group or a later one; the first one deletes its marker.
    pub(in crate::sql) fn defer(
        &mut self,
        (clear_marker, marker_params): (&str, &[Param<'_>]),
        (task, params): (&str, &[Param<'_>]),
    ) -> Result<()> {
        let (clear_marker, task) =
            (DeferredStatement::new(clear_marker, marker_params)?, DeferredStatement::new(task, params)?);
        self.deferred.defer(DeferredTask { clear_marker, task });
        Ok(())
    }

    /// Sets whether the next job never reads what it adds to.
    pub(in crate::sql) fn defers_increments(&mut self, later: bool) {
        self.defers_increments = later;
    }

    /// Adds amounts to a row; for jobs that do not read it, once per group and row.
    pub(in crate::sql) fn add_at_commit(
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
        self.run(sql, &increment.params()).map(|_| ())
    }

    /// A number above the result of a query and above all numbers allocated before.
    pub(in crate::sql) fn next_number(&mut self, highest: &str) -> Result<i64> {
        if !self.number_loaded {
            let mut highest_number = 0;
            self.rows(highest, &[], &mut |row| {
                highest_number = row.next()?;
                Ok(())
            })?;
            self.number = self.number.max(highest_number);
            self.number_loaded = true;
        }
        self.number += 1;
        Ok(self.number)
    }

    pub(in crate::sql) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let touched = statement.execute(rusqlite::params_from_iter(params))?;
        Ok(touched as u64)
    }

    /// Runs a query and reads its rows.
    pub(in crate::sql) fn rows(&self, sql: &str, params: &[Param<'_>], read: ReadRow<'_>) -> Result<()> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            read(&mut Row { cells: Cells::Sqlite(row), next: 0 })?;
        }
        Ok(())
    }

    /// Runs a transaction control statement, prepared once.
    pub(super) fn control(&self, sql: &'static str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    pub(in crate::sql) fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

/// SQLite numbers `$1` by first appearance and `?1` by its digit; only the latter is what we mean.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}
