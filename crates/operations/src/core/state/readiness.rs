//! What is known about the stores and the end of the process.

use std::{sync::Mutex, time::Instant};

use tokio::sync::watch;

/// What is known about the stores.
#[derive(Default)]
pub(crate) struct Readiness {
    /// What was wrong with the blob store when it was last tried.
    pub(crate) blob_fault: Mutex<Option<String>>,
    /// When something was last written for trial, and whether that worked. Held during the trial: others wait for it.
    pub(crate) written: tokio::sync::Mutex<Option<(Instant, bool)>>,
    /// Whether the process is about to end.
    pub(crate) ending: watch::Sender<bool>,
}
