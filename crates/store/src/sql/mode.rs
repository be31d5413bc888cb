//! The ways to run a transaction: alone or in one commit with others, to write or only to read.

use std::sync::LazyLock;

use metrics::{Histogram, histogram};

/// How a transaction is run.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Write,
    /// Acknowledged before its commit is on disk, where that takes long.
    AsynchronousWrite,
    /// It never reads the counters that it adds to; on SQLite in one commit with others.
    SharedWrite,
    Read,
    /// Only a few rows, by key.
    ShortRead,
    /// All statements share one snapshot.
    Snapshot,
}

impl Mode {
    /// The duration of such transactions.
    pub(super) fn seconds(self) -> &'static Histogram {
        match self {
            Self::Write | Self::AsynchronousWrite | Self::SharedWrite => &SECONDS.write,
            Self::Read | Self::ShortRead => &SECONDS.read,
            Self::Snapshot => &SECONDS.snapshot,
        }
    }
}

struct Seconds {
    write: Histogram,
    read: Histogram,
    snapshot: Histogram,
}

/// Cached, because looking up a histogram costs more than recording to it. The recorder is installed before a store
/// opens.
static SECONDS: LazyLock<Seconds> = LazyLock::new(|| Seconds {
    write: histogram!("store_seconds", "kind" => "write"),
    read: histogram!("store_seconds", "kind" => "read"),
    snapshot: histogram!("store_seconds", "kind" => "snapshot"),
});
