//! A connection to SQLite while transactions use it: what a job of a group does, how it is undone, and what is kept for the
//! end of the group or for a later one.

use rusqlite::Connection;

use crate::{
    error::{Error, Result},
    sql::{
        deferred::{Deferred, PutOff},
        kept::{KeptStatement, KeptSum, added_up},
        value::{Cells, Param, ReadRow, Row},
    },
};

/// A connection while a transaction uses it.
pub(in crate::sql) struct SqliteSession {
    pub(super) connection: Connection,
    /// Statements that are kept for the end of the group.
    at_end: Vec<KeptStatement>,
    /// Amounts that are added at the end of the group, or before the first job that could look at what they add to.
    sums: Vec<KeptSum>,
    /// Whether the job at work never looks at what it adds to.
    adds_later: bool,
    /// The last number that was given out. None is given out twice, since what is put off is known by it.
    number: i64,
    /// Whether the store was asked for its highest number in the group.
    number_asked: bool,
    /// Whether nothing of the group is done yet.
    untouched: bool,
    /// What several commits share.
    pub(super) deferred: Deferred,
}

/// How the work of one job, or of several, can be undone.
#[derive(Clone, Copy)]
pub(in crate::sql) enum Undo {
    /// It came first: with the whole transaction. A savepoint would keep a copy of every page that the job changes.
    Transaction,
    /// With its savepoint, and the statements and sums kept after these, and what was put off.
    Savepoint { kept: usize, sums: usize, put_off: usize },
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            at_end: Vec::new(),
            sums: Vec::new(),
            adds_later: false,
            number: 0,
            number_asked: false,
            untouched: true,
            deferred: Deferred::default(),
        }
    }

    pub(in crate::sql) fn begin_group(&mut self) -> Result<()> {
        self.at_end.clear();
        self.sums.clear();
        self.number_asked = false;
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
        let put_off = self.deferred.put_off_so_far();
        Ok(Undo::Savepoint { kept: self.at_end.len(), sums: self.sums.len(), put_off })
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
                // Some failures, such as a full disk, have ended it already.
                if !self.connection.is_autocommit() {
                    self.batch("ROLLBACK")?;
                }
                self.begin_group()
            }
            Undo::Savepoint { kept, sums, put_off } => {
                if !succeeded {
                    self.deferred.forget_after(put_off);
                    self.at_end.truncate(kept);
                    self.sums.truncate(sums);
                    self.control("ROLLBACK TO job")?;
                }
                self.control("RELEASE job")
            }
        }
    }

    pub(super) fn end_group(&mut self) -> Result<()> {
        self.store_sums()?;
        // Without a transaction each of these would be a commit of its own.
        self.require_transaction()?;
        for kept in std::mem::take(&mut self.at_end) {
            self.run(&kept.sql, &kept.params())?;
        }
        // The index writes itself out with the commit, so that may be what fails.
        let committed = self.do_what_is_due().and_then(|()| self.control("COMMIT"));
        match &committed {
            Ok(()) => self.deferred.end(),
            Err(error) => self.deferred.fail(error),
        }
        committed
    }

    fn do_what_is_due(&self) -> Result<()> {
        for PutOff { mark, work } in self.deferred.due() {
            if self.run(&mark.sql, &mark.params())? > 0 {
                self.run(&work.sql, &work.params())?;
            }
        }
        Ok(())
    }

    /// Does what was put off, in a commit of its own.
    pub(super) fn do_what_waits(&mut self) -> Result<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        self.begin_group()?;
        self.deferred.want();
        self.end_group()
    }

    /// Writes the sums that were kept, each once. When that fails nothing of the group can be kept.
    pub(in crate::sql) fn store_sums(&mut self) -> Result<()> {
        let written = added_up(std::mem::take(&mut self.sums))
            .into_iter()
            .try_for_each(|sum| self.run(sum.sql, &sum.params()).map(|_| ()));
        if written.is_err() {
            // Fails when there is no transaction left, which is what we want.
            let _ = self.batch("ROLLBACK");
        }
        written
    }

    /// Keeps a statement for the end of the group.
    pub(in crate::sql) fn at_end(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.at_end.push(KeptStatement::new(sql, params)?);
        Ok(())
    }

    /// Keeps a statement for the end of this group or of a later one, as long as the other takes a mark away.
    pub(in crate::sql) fn put_off(
        &mut self,
        (mark, about): (&str, &[Param<'_>]),
        (work, params): (&str, &[Param<'_>]),
    ) -> Result<()> {
        let (mark, work) = (KeptStatement::new(mark, about)?, KeptStatement::new(work, params)?);
        self.deferred.put_off(PutOff { mark, work });
        Ok(())
    }

    /// Says whether the job that comes next never looks at what it adds to.
    pub(in crate::sql) fn adds_later(&mut self, later: bool) {
        self.adds_later = later;
    }

    /// Adds amounts to a row; for jobs that do not look at it, once for all of the group that add to the same row.
    pub(in crate::sql) fn add_at_end(
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
        self.run(sql, &sum.params()).map(|_| ())
    }

    /// A number above the one that a query finds and above all that were given out before.
    pub(in crate::sql) fn next_number(&mut self, highest: &str) -> Result<i64> {
        if !self.number_asked {
            let mut found = 0;
            self.rows(highest, &[], &mut |row| {
                found = row.next()?;
                Ok(())
            })?;
            self.number = self.number.max(found);
            self.number_asked = true;
        }
        self.number += 1;
        Ok(self.number)
    }

    pub(in crate::sql) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let touched = statement.execute(rusqlite::params_from_iter(params))?;
        Ok(touched as u64)
    }

    /// Runs a query and has its rows read.
    pub(in crate::sql) fn rows(&self, sql: &str, params: &[Param<'_>], read: ReadRow<'_>) -> Result<()> {
        let mut statement = self.connection.prepare_cached(&numbered(sql))?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            read(&mut Row { cells: Cells::Sqlite(row), next: 0 })?;
        }
        Ok(())
    }

    /// Runs a statement about the transaction, which is not read anew each time.
    fn control(&self, sql: &'static str) -> Result<()> {
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
