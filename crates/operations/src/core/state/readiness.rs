//! What is known about the stores and the shutdown of the process.

use std::{sync::Mutex, time::Instant};

use tokio::sync::watch;

/// What is known about the stores.
#[derive(Default)]
pub(crate) struct Readiness {
    /// The last known fault of the blob store.
    pub(crate) blob_fault: Mutex<Option<String>>,
    /// When the last write probe ran, and whether it succeeded. Locked during a probe: others wait for its outcome.
    pub(crate) written: tokio::sync::Mutex<Option<(Instant, bool)>>,
    /// Whether the process is about to stop.
    pub(crate) ending: watch::Sender<bool>,
}
