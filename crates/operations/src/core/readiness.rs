//! Readiness and shutdown: whether the stores work, for load balancers and operators, and whether the process is
//! stopping, for calls that wait.

use std::time::{Duration, Instant};

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    lock::lock,
};

/// How long a probe's outcome is cached: anyone may ask, and a probe waits for the disk.
const PROBE_TTL: Duration = Duration::from_secs(2);

impl App {
    /// Checks that the relational store answers.
    #[crate::boxed]
    pub async fn ping(&self) -> Result<()> {
        Ok(self.db().system_read(async |tx| store::system::ping(tx).await).await?)
    }

    /// Checks that everything can be read and written.
    #[crate::boxed]
    pub async fn require_ready(&self) -> Result<()> {
        self.ping().await?;
        if self.blob_fault().is_some() || !self.can_write().await {
            return Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(PROBE_TTL.as_secs()));
        }
        Ok(())
    }

    /// Whether writes reach the disk; the outcome is cached.
    async fn can_write(&self) -> bool {
        let mut written = self.readiness().written.lock().await;
        if let Some((_, outcome)) = written.filter(|(at, _)| at.elapsed() < PROBE_TTL) {
            return outcome;
        }
        let outcome = self.try_writing().await;
        if let Err(error) = &outcome {
            tracing::warn!(%error, "store not writable; reporting not ready");
        }
        *written = Some((Instant::now(), outcome.is_ok()));
        outcome.is_ok()
    }

    async fn try_writing(&self) -> Result<()> {
        self.blobs().require_room().await.map_err(store::Error::from)?;
        Ok(self.db().system_write(async |tx| store::system::probe(tx).await).await?)
    }

    /// Makes waiting calls answer at once: the process is about to stop.
    pub fn end_waits(&self) {
        self.readiness().ending.send_replace(true);
    }

    /// Completes when the process is about to stop.
    #[crate::boxed]
    pub async fn ending(&self) {
        // The sender lives as long as the service.
        let _ = self.readiness().ending.subscribe().wait_for(|ending| *ending).await;
    }

    /// Probes the blob store and records what is wrong with it.
    #[crate::boxed]
    pub async fn check_blobs(&self) -> Result<()> {
        let outcome = self.blobs().probe().await;
        *lock(&self.readiness().blob_fault) =
            outcome.as_ref().err().map(store::blobs::BlobError::public_reason);
        Ok(outcome.map_err(store::Error::from)?)
    }

    /// The last known fault of the blob store.
    pub fn blob_fault(&self) -> Option<String> {
        lock(&self.readiness().blob_fault).clone()
    }
}
