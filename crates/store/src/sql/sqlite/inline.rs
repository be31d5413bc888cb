//! Short reads on the calling thread.
//!
//! To hand a read to a reader thread and back takes about as long as a short read itself: two wake-ups, and pages that
//! another core has in its cache. But a thread that serves connections must not wait for a disk. So there is a connection
//! less than threads that serve, and after a slow read all reads go to the reader threads for ten times as long as it took:
//! whatever the disk does, one thread goes on serving, and the others wait for at most a tenth of the time.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::polling::{idle, in_snapshot};
use crate::sql::{scope::Scope, transaction::SystemTx, work::Work};

/// A read that takes longer was waiting for the disk, or is not short. On a busy machine a thread may lose its core for a few
/// milliseconds; that is no reason.
const MAX_DURATION: Duration = Duration::from_millis(10);
/// How much longer than a slow read the pause after it is.
const PAUSE_FACTOR: u32 = 10;

/// The connections for short reads.
pub(super) struct InlineReaders {
    idle: Mutex<Vec<SystemTx>>,
    start: Instant,
    /// The end of the last pause, in microseconds from the start.
    paused_until: AtomicU64,
}

impl InlineReaders {
    pub(super) fn new(connections: Vec<Connection>) -> Self {
        let idle = Mutex::new(connections.into_iter().map(idle).collect());
        Self { idle, start: Instant::now(), paused_until: AtomicU64::new(0) }
    }

    /// How many connections are right where so many threads serve.
    pub(super) const fn count(threads: usize) -> usize {
        threads.saturating_sub(1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SystemTx>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self, time: Instant) -> u64 {
        u64::try_from(time.duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }

    /// Runs a read here. False, without having run it, if it has to go to a reader thread.
    pub(super) fn run(&self, scope: &Scope, work: &mut dyn Work) -> bool {
        let start = Instant::now();
        if self.micros(start) < self.paused_until.load(Ordering::Relaxed) {
            return false;
        }
        let Some(mut tx) = self.lock().pop() else { return false };
        tx.enter(&scope.workspace());
        in_snapshot(&mut tx, work);
        self.lock().push(tx);
        let end = Instant::now();
        let duration = end - start;
        if duration > MAX_DURATION {
            self.paused_until.store(self.micros(end + duration * PAUSE_FACTOR), Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use model::WorkspaceId;

    use super::*;
    use crate::{Error, Tx, sql::work::SingleRunWork};

    fn readers(threads: usize) -> InlineReaders {
        let open = |_| Connection::open_in_memory().unwrap();
        InlineReaders::new((0..InlineReaders::count(threads)).map(open).collect())
    }

    /// Runs a read that takes so long; whether it ran here.
    fn run(readers: &InlineReaders, duration: Duration) -> bool {
        let body = async move |_: &mut Tx| {
            std::thread::sleep(duration);
            Ok::<_, Error>(())
        };
        let mut work = SingleRunWork::new(body);
        readers.run(&Scope::Workspace(WorkspaceId::from("ws_1")), &mut work)
    }

    #[test]
    fn a_slow_read_sends_the_next_ones_to_the_reader_threads() {
        let readers = readers(2);
        assert!(run(&readers, MAX_DURATION * 2));
        assert!(!run(&readers, Duration::ZERO));
        readers.paused_until.store(0, Ordering::Relaxed);
        assert!(run(&readers, Duration::ZERO), "the pause is over");
    }

    #[test]
    fn the_last_thread_never_reads() {
        assert!(!run(&readers(1), Duration::ZERO));
        let two = readers(2);
        let taken = two.lock().pop();
        assert!(!run(&two, Duration::ZERO), "another thread reads");
        two.lock().extend(taken);
        assert!(run(&two, Duration::ZERO));
    }
}
