//! Work that would hold up everything else on its thread, and so gets another one.

use super::error::BlobError;

/// Runs work that blocks or computes for long on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(BlobError::Interrupted))
}
