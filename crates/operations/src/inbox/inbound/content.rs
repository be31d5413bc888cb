//! The content of a message, sealed with the data key of one workspace.
//!
//! Small parts are stored in the row of the content, large ones in the blob store.

use std::sync::Arc;

use bytes::Bytes;
use model::WorkspaceId;
use store::{
    blobs::{BlobName, BlobSuffix},
    contents::{self, ContentRecord, Part, SealedPart, StoredPart},
    vault::DataKey,
};

use super::prepare::PreparedMessage;
use crate::core::{app::App, compute::compute, error::Result};

/// A message sealed for one workspace.
pub(crate) struct Content {
    pub(crate) record: ContentRecord,
    pub(crate) key: Arc<DataKey>,
}

impl Content {
    /// The number of stored objects: the row and its blobs.
    pub(super) fn objects(&self) -> i64 {
        let blobs = |part: &StoredPart| i64::from(matches!(part, StoredPart::Blob(_)));
        1 + blobs(&self.record.body) + self.record.safe.as_ref().map_or(0, blobs)
    }

    /// Refuses a content whose blobs were put too long ago: called in the transaction that adds its row.
    pub(crate) fn require_new(&self, app: &App) -> Result<()> {
        app.require_new(self.record.blobs().filter_map(|name| name.suffix.as_ref()))
    }

    /// The bytes that are stored in its row.
    pub(crate) fn bytes_in_row(&self) -> usize {
        let in_row = |part: &StoredPart| if let StoredPart::InRow(bytes) = part { bytes.len() } else { 0 };
        in_row(&self.record.raw) + in_row(&self.record.body) + self.record.safe.as_ref().map_or(0, in_row)
    }

    /// Seals a parsed message for one workspace.
    pub(crate) async fn seal(
        app: &App,
        workspace: &WorkspaceId,
        prepared: &Arc<PreparedMessage>,
        raw: &Bytes,
    ) -> Result<Self> {
        let key = app.data_key(workspace).await?;
        let (content, bytes, space) = (prepared.clone(), raw.clone(), workspace.clone());
        let sealed = compute(raw.len(), move || SealedContent::new(key, &space, &content, &bytes));
        Self::store(app, sealed.await??).await
    }

    /// Puts large parts into the blob store, before the transaction that refers to them.
    pub(super) async fn store(app: &App, sealed: SealedContent) -> Result<Self> {
        let SealedContent { key, id, size, raw, headers, body, safe } = sealed;
        let is_large = |part: &SealedPart| matches!(part, SealedPart::Blob(_));
        let has_blobs = is_large(&raw) || is_large(&body) || safe.as_ref().is_some_and(is_large);
        let suffix = if has_blobs { app.new_blob_suffix().await? } else { None };
        let raw = store_part(app, &key, raw, suffix.as_ref()).await?;
        let body = store_part(app, &key, body, suffix.as_ref()).await?;
        let safe = match safe {
            Some(safe) => Some(store_part(app, &key, safe, suffix.as_ref()).await?),
            None => None,
        };
        let record = ContentRecord { id, size, raw, headers: Some(headers), body, safe };
        Ok(Self { record, key })
    }
}

/// The parts of a message, sealed for one workspace.
pub(super) struct SealedContent {
    key: Arc<DataKey>,
    id: String,
    size: i64,
    raw: SealedPart,
    headers: Vec<u8>,
    body: SealedPart,
    safe: Option<SealedPart>,
}

impl SealedContent {
    /// Seals all parts; this takes CPU time in proportion to their size.
    pub(super) fn new(
        key: Arc<DataKey>,
        workspace: &WorkspaceId,
        prepared: &PreparedMessage,
        raw: &[u8],
    ) -> Result<Self> {
        let id = prepared.hash.clone();
        let size = i64::try_from(raw.len()).unwrap_or(i64::MAX);
        let body = prepared.body.as_bytes();
        let raw = contents::seal_message(&key, workspace.as_str(), &id, raw, body)?;
        // On their own, so that who reads the message needs neither fetch nor open all of it.
        let headers = contents::seal(&key, &id, Part::Headers, prepared.message.headers.as_bytes())?;
        let sealed_body = contents::seal_part(&key, workspace.as_str(), &id, Part::Body, body)?;
        let seal_safe = |safe: &String| {
            contents::seal_safe(&key, workspace.as_str(), &id, safe.as_bytes(), (body, &sealed_body))
        };
        let safe = prepared.safe.as_ref().map(seal_safe).transpose()?;
        Ok(Self { key, id, size, raw, headers, body: sealed_body, safe })
    }
}

/// Puts a large part into the blob store; a small one is for the row.
async fn store_part(
    app: &App,
    key: &DataKey,
    part: SealedPart,
    suffix: Option<&BlobSuffix>,
) -> Result<StoredPart> {
    match part {
        SealedPart::InRow(sealed) => Ok(StoredPart::InRow(sealed)),
        SealedPart::Blob(blob) => {
            let stored = app.blobs().put_sealed(key, blob, suffix).await.map_err(store::Error::from)?;
            Ok(StoredPart::Blob(BlobName { hash: stored.hash, suffix: suffix.cloned() }))
        }
    }
}
