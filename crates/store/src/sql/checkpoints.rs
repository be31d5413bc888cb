//! WAL checkpoints of SQLite, on their own thread.
//!
//! SQLite's automatic checkpoint runs inside a commit, which then waits until the pages of many others are written a
//! second time. Here a thread with its own connection does it while the writer goes on. The WAL restarts as soon as
//! the checkpoint has caught up; the writer helps only when commits come faster than that.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
    mpsc::{SyncSender, sync_channel},
};

use rusqlite::{Connection, ErrorCode, wal::CheckpointMode};

use crate::error::Result;

/// WAL pages that start a checkpoint, 16 MB: a page that changes with every message is then written once for many.
const CHECKPOINT_PAGES: u32 = 4_000;
/// WAL pages from which the writer runs the checkpoint itself.
const MAX_WAL_PAGES: u32 = 4 * CHECKPOINT_PAGES;
/// How many more pages are logged before the thread is signalled again.
const CHECKPOINT_STEP_PAGES: u32 = CHECKPOINT_PAGES / 4;
/// How often the thread tries to catch up with the writer before it gives up.
const MAX_ROUNDS: u32 = 4;

/// The writer's handle. The thread ends when this is dropped.
pub(super) struct Checkpoints {
    /// Pages in the WAL after the last commit.
    pages: Arc<AtomicU32>,
    signal: SyncSender<()>,
    /// The number of pages at which the thread is signalled.
    signal_at: u32,
}

impl Checkpoints {
    /// Starts to count the writer's WAL pages, and returns the body of the thread.
    pub(super) fn new(
        writer: &mut Connection,
        own: Connection,
    ) -> Result<(Self, impl FnOnce() + Send + use<>)> {
        let pages = Arc::<AtomicU32>::default();
        let (counted, seen) = (pages.clone(), pages.clone());
        // Replaces SQLite's own hook, which would run a checkpoint at once.
        writer.wal_hook(Some(move |_: &mut _, logged| {
            counted.store(u32::try_from(logged).unwrap_or_default(), Ordering::Release);
            Ok(())
        }))?;
        let (signal, signals) = sync_channel(1);
        let work = move || {
            while signals.recv().is_ok() {
                catch_up(&own, &seen);
            }
        };
        Ok((Self { pages, signal, signal_at: CHECKPOINT_PAGES }, work))
    }

    /// Runs or requests a checkpoint if the WAL is long. Call it after a commit, when its callers have been answered.
    pub(super) fn run_if_due(&mut self, writer: &Connection) {
        match self.pages.load(Ordering::Acquire) {
            ..CHECKPOINT_PAGES => self.signal_at = CHECKPOINT_PAGES,
            MAX_WAL_PAGES.. => _ = checkpoint(writer),
            pages if pages >= self.signal_at => {
                // Otherwise it would sync for every commit when commits come faster than it can write.
                self.signal_at = pages + CHECKPOINT_STEP_PAGES;
                // An earlier signal that is still queued is enough.
                let _ = self.signal.try_send(());
            }
            _ => {}
        }
    }
}

fn catch_up(connection: &Connection, pages: &AtomicU32) {
    for _ in 0..MAX_ROUNDS {
        match checkpoint(connection) {
            Some(written) if written < pages.load(Ordering::Acquire) => {}
            _ => return,
        }
    }
}

/// Copies the pages that no reader needs in the WAL to the database, and returns how many are copied by now.
fn checkpoint(connection: &Connection) -> Option<u32> {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((_, written)) => u32::try_from(written).ok(),
        // Another connection is running one.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => None,
        Err(error) => {
            // Nothing is lost: the WAL has everything, and the next checkpoint tries again.
            tracing::warn!(%error, "WAL checkpoint failed; retrying after a later commit");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &tempfile::TempDir) -> Connection {
        let connection = Connection::open(folder.path().join("test.db")).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection
    }

    /// A writer with a table to fill, and the body of the checkpoint thread, which runs only when called.
    fn start(folder: &tempfile::TempDir) -> (Connection, Checkpoints, impl FnOnce()) {
        let mut writer = open(folder);
        writer.execute_batch("CREATE TABLE t (x)").unwrap();
        let (checkpoints, work) = Checkpoints::new(&mut writer, open(folder)).unwrap();
        (writer, checkpoints, work)
    }

    fn logged(checkpoints: &Checkpoints) -> u32 {
        checkpoints.pages.load(Ordering::Acquire)
    }

    /// Fills some pages in one commit.
    fn fill(connection: &Connection, pages: u32) {
        let rows = i64::from(pages);
        connection
            .execute(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                 INSERT INTO t SELECT randomblob(3500) FROM n",
                [rows],
            )
            .unwrap();
    }

    #[test]
    fn a_long_wal_restarts_without_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, work) = start(&folder);
        fill(&writer, CHECKPOINT_PAGES / 2);
        checkpoints.run_if_due(&writer);
        fill(&writer, CHECKPOINT_PAGES / 2);
        assert!(logged(&checkpoints) > CHECKPOINT_PAGES, "short logs are left alone");
        checkpoints.run_if_due(&writer);
        let pages = checkpoints.pages.clone();
        drop(checkpoints);
        work();
        fill(&writer, 1);
        assert!(pages.load(Ordering::Acquire) < 10, "what was asked for is done");
    }

    #[test]
    fn the_writer_checkpoints_a_wal_that_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        fill(&writer, MAX_WAL_PAGES);
        checkpoints.run_if_due(&writer);
        fill(&writer, 1);
        assert!(logged(&checkpoints) < 10);
    }

    #[test]
    fn pages_that_a_reader_needs_stay_in_the_wal() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        let reader = open(&folder);
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        fill(&writer, MAX_WAL_PAGES);
        checkpoints.run_if_due(&writer);
        let count = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count(&reader), count(&writer)), (0, i64::from(MAX_WAL_PAGES)));
        fill(&writer, 1);
        assert!(logged(&checkpoints) > MAX_WAL_PAGES);
        reader.execute_batch("COMMIT").unwrap();
        checkpoints.run_if_due(&writer);
        fill(&writer, 1);
        assert!(logged(&checkpoints) < 10);
    }

    #[test]
    fn a_slow_thread_is_signalled_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        fill(&writer, CHECKPOINT_PAGES + 1);
        checkpoints.run_if_due(&writer);
        let next = checkpoints.signal_at;
        assert!(next >= CHECKPOINT_PAGES + CHECKPOINT_STEP_PAGES, "{next}");
        fill(&writer, 1);
        checkpoints.run_if_due(&writer);
        assert_eq!(checkpoints.signal_at, next, "a commit more is no reason");
        fill(&writer, CHECKPOINT_STEP_PAGES);
        checkpoints.run_if_due(&writer);
        assert!(checkpoints.signal_at > next);
    }
}
