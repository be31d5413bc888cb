//! The runtime that a command runs on.

use std::time::Duration;

use crate::failure::{Failure, Result};

/// Blocking work is files and password hashes: more at once would only thrash.
const MAX_BLOCKING_THREADS: usize = 64;
/// How long a thread for blocking work is kept that has nothing to do.
const IDLE_THREAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs a command on a runtime of its own, which does not wait for what is left in the background at the end.
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
