//! Runs blocking work off the async threads.

use super::error::BlobError;

/// Runs work that blocks or computes for long on tokio's blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(BlobError::Interrupted))
}
