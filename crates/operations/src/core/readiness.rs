//! Whether the stores can be used, and whether the process is about to end: what is asked by whoever sends traffic here,
//! shown to operators, and of interest to calls that wait.

use std::time::{Duration, Instant};

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    lock::lock,
};

/// How long the outcome of a trial holds: anybody may ask, and a trial waits for the disk.
const HOLDS: Duration = Duration::from_secs(2);

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
            return Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(HOLDS.as_secs()));
        }
        Ok(())
    }

    /// Whether writes reach the disk, tried every now and then.
    async fn can_write(&self) -> bool {
        let mut written = self.readiness().written.lock().await;
        if let Some((_, outcome)) = written.filter(|(at, _)| at.elapsed() < HOLDS) {
            return outcome;
        }
        let outcome = self.try_writing().await;
        if let Err(error) = &outcome {
            tracing::warn!(%error, "the store takes no writes");
        }
        *written = Some((Instant::now(), outcome.is_ok()));
        outcome.is_ok()
    }

    async fn try_writing(&self) -> Result<()> {
        self.blobs().require_room().await.map_err(store::Error::from)?;
        Ok(self.db().system_write(async |tx| store::system::probe(tx).await).await?)
    }

    /// Lets calls that wait for something answer at once: the process is about to end.
    pub fn end_waits(&self) {
        self.readiness().ending.send_replace(true);
    }

    /// Comes back when the process is about to end.
    #[crate::boxed]
    pub async fn ending(&self) {
        // The sender lives as long as the service.
        let _ = self.readiness().ending.subscribe().wait_for(|ending| *ending).await;
    }

    /// Tries the blob store and remembers what was wrong with it.
    #[crate::boxed]
    pub async fn check_blobs(&self) -> Result<()> {
        let outcome = self.blobs().probe().await;
        *lock(&self.readiness().blob_fault) =
            outcome.as_ref().err().map(store::blobs::BlobError::public_reason);
        Ok(outcome.map_err(store::Error::from)?)
    }

    /// What was wrong with the blob store when it was last tried.
    pub fn blob_fault(&self) -> Option<String> {
        lock(&self.readiness().blob_fault).clone()
    }
}
