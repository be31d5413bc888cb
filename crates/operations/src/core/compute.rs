//! Work that only computes: short work runs where it is needed, long work on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::{Error, Result};

/// Work on texts and messages up to this size runs on the async thread: it takes a tenth of a millisecond, and less than one
/// in the worst case. To switch threads twice takes as long.
pub(crate) const MAX_INLINE_BYTES: usize = 16 * 1024;

/// Runs work on so many bytes, on a blocking thread if they are many. If it panics, only this work fails.
pub(crate) async fn compute<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if bytes <= MAX_INLINE_BYTES {
        return caught(work);
    }
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// Runs work such as a parser of untrusted input, so that a panic fails only that.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Error::internal("computing panicked"))
}
