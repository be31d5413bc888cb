//! The tokio runtime of a command.

use std::time::Duration;

use crate::failure::{Failure, Result};

/// Blocking work is files and password hashes: more threads would only thrash.
const MAX_BLOCKING_THREADS: usize = 64;
/// How long an idle blocking thread is kept.
const IDLE_THREAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a command on a runtime of its own, and does not wait for background tasks at the end.
pub(super) fn in_runtime<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(IDLE_THREAD_TIMEOUT)
        .build()
        .map_err(|error| Failure::new(format!("Cannot start: {error}")))?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}
