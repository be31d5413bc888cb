//! Writing SQLite's log back into the database, beside the writer.
//!
//! SQLite does it inside a commit, so that somebody's mail waits for that of many others to be written a second time. Here
//! a thread with a connection of its own does it while the writer goes on. The log starts anew as soon as it was caught
//! up with; the writer lends a hand only where commits come faster than that.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
    mpsc::{SyncSender, sync_channel},
};

use rusqlite::{Connection, ErrorCode, wal::CheckpointMode};

use crate::error::Result;

/// Pages in the log from which it is written back, 16 MB: those that change with every mail are then written once for many.
const LONG: u32 = 4_000;
/// Pages from which the writer does it itself.
const TOO_LONG: u32 = 4 * LONG;
/// How many more pages there are before the thread is asked once more.
const STEP: u32 = LONG / 4;
/// How often the thread tries to catch up with the writer before it lets it go on.
const ROUNDS: u32 = 4;

/// The writer's side of it. The thread ends when this is dropped.
pub(super) struct Checkpoints {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    ask: SyncSender<()>,
    /// At how many pages the thread is asked.
    ask_at: u32,
}

impl Checkpoints {
    /// Begins to count what the writer logs, and gives the thread's work.
    pub(super) fn new(
        writer: &mut Connection,
        own: Connection,
    ) -> Result<(Self, impl FnOnce() + Send + use<>)> {
        let pages = Arc::<AtomicU32>::default();
        let (counted, seen) = (pages.clone(), pages.clone());
        // In the place of SQLite's own, which would write the log back at once.
        writer.wal_hook(Some(move |_: &mut _, logged| {
            counted.store(u32::try_from(logged).unwrap_or_default(), Ordering::Release);
            Ok(())
        }))?;
        let (ask, asked) = sync_channel(1);
        let work = move || {
            while asked.recv().is_ok() {
                catch_up(&own, &seen);
            }
        };
        Ok((Self { pages, ask, ask_at: LONG }, work))
    }

    /// Has the log written back if it is long. To be called after a commit, when nobody waits for it any more.
    pub(super) fn look(&mut self, writer: &Connection) {
        match self.pages.load(Ordering::Acquire) {
            ..LONG => self.ask_at = LONG,
            TOO_LONG.. => _ = write_back(writer),
            pages if pages >= self.ask_at => {
                // Where commits come faster than it can write back, it would otherwise flush for each of them.
                self.ask_at = pages + STEP;
                // Who was asked before has not begun yet, which is as good.
                let _ = self.ask.try_send(());
            }
            _ => {}
        }
    }
}

fn catch_up(connection: &Connection, pages: &AtomicU32) {
    for _ in 0..ROUNDS {
        match write_back(connection) {
            Some(written) if written < pages.load(Ordering::Acquire) => {}
            _ => return,
        }
    }
}

/// Writes back what no reader needs in the log, and tells how many of its pages are by then.
fn write_back(connection: &Connection) -> Option<u32> {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((_, written)) => u32::try_from(written).ok(),
        // Somebody else is at it.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => None,
        Err(error) => {
            // Nothing is lost: the log has it all, and the next one who looks tries again.
            tracing::warn!(%error, "SQLite's log grows: it cannot be written back");
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

    /// A writer with a table to fill, and the work of the thread beside it, which runs only when it is called.
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
    fn a_long_log_starts_anew_without_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, work) = start(&folder);
        fill(&writer, LONG / 2);
        checkpoints.look(&writer);
        fill(&writer, LONG / 2);
        assert!(logged(&checkpoints) > LONG, "short logs are left alone");
        checkpoints.look(&writer);
        let pages = checkpoints.pages.clone();
        drop(checkpoints);
        work();
        fill(&writer, 1);
        assert!(pages.load(Ordering::Acquire) < 10, "what was asked for is done");
    }

    #[test]
    fn the_writer_helps_when_a_log_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        fill(&writer, TOO_LONG);
        checkpoints.look(&writer);
        fill(&writer, 1);
        assert!(logged(&checkpoints) < 10);
    }

    #[test]
    fn what_a_reader_needs_stays_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        let reader = open(&folder);
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        fill(&writer, TOO_LONG);
        checkpoints.look(&writer);
        let count = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count(&reader), count(&writer)), (0, i64::from(TOO_LONG)));
        fill(&writer, 1);
        assert!(logged(&checkpoints) > TOO_LONG);
        reader.execute_batch("COMMIT").unwrap();
        checkpoints.look(&writer);
        fill(&writer, 1);
        assert!(logged(&checkpoints) < 10);
    }

    #[test]
    fn who_cannot_keep_up_is_asked_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut checkpoints, _never_run) = start(&folder);
        fill(&writer, LONG + 1);
        checkpoints.look(&writer);
        let next = checkpoints.ask_at;
        assert!(next >= LONG + STEP, "{next}");
        fill(&writer, 1);
        checkpoints.look(&writer);
        assert_eq!(checkpoints.ask_at, next, "a commit more is no reason");
        fill(&writer, STEP);
        checkpoints.look(&writer);
        assert!(checkpoints.ask_at > next);
    }
}
