//! New names for the blobs of new contents, where the blobs are in a bucket.
//!
//! The sweeper finds that nothing uses an object, and deletes it a moment later, or much later if its node was stopped in
//! between. A content that is stored again meanwhile has another name by then. In a folder that is not needed: there a
//! file that was written again is not deleted.

use model::Timestamp;
use store::{
    blob_names::{self, FreshNames},
    blobs::BlobSuffix,
};

use super::App;
use crate::core::error::Result;

/// What is put but in no row yet must get into one within this time: the sweeper deletes it after twice as long.
const MAX_UNRECORDED_SECONDS: i64 = 12 * 3600;

impl App {
    /// The suffix of the names of a new content's blobs, if they get one.
    pub(crate) async fn new_blob_suffix(&self) -> Result<Option<BlobSuffix>> {
        if !self.blobs().is_bucket() || self.fresh_names_since().await?.is_none() {
            return Ok(None);
        }
        Ok(Some(BlobSuffix::of_id(self.new_uuid().as_bytes())))
    }

    /// Since when all new objects have names of their own; `None` while older programs may run that would not find them.
    pub(crate) async fn fresh_names_since(&self) -> Result<Option<Timestamp>> {
        if let Some(since) = self.0.known.fresh_names_since.get() {
            return Ok(Some(*since));
        }
        // Read from the store each time, so that no node goes on with old names after another one has begun.
        let now = self.now();
        let mut found = self.db().system_read(async move |tx| blob_names::find(tx, now).await).await?;
        if found == FreshNames::MayBegin {
            found = self.db().system_write(async move |tx| blob_names::begin(tx, now).await).await?;
        }
        let FreshNames::Since(since) = found else { return Ok(None) };
        Ok(Some(*self.0.known.fresh_names_since.get_or_init(|| since)))
    }

    /// Refuses to record blobs that were put long ago, as by a process that was stopped in between: they may be swept.
    pub(crate) fn require_new<'a>(&self, suffixes: impl IntoIterator<Item = &'a BlobSuffix>) -> Result<()> {
        let oldest = self.now().plus_seconds(-MAX_UNRECORDED_SECONDS).as_micros();
        if suffixes.into_iter().all(|suffix| suffix.made_at() >= oldest) {
            return Ok(());
        }
        let message = "the content was put into the bucket too long ago: it has to be stored again";
        Err(store::Error::Unavailable(message.into()).into())
    }
}
