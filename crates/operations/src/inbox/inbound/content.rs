//! The content of a message, sealed with the data key of one workspace.
//!
//! Small parts are stored in the row of the content, large ones in the blob store.

use std::sync::Arc;

use bytes::Bytes;
use model::WorkspaceId;
use store::{
    contents::{self, ContentRecord, MAX_IN_ROW_BYTES, Part, StoredPart},
    vault::DataKey,
};

use super::prepare::PreparedMessage;
use crate::core::{
    app::App,
    error::{Error, Result},
};

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

    /// Seals a parsed message for one workspace.
    pub(crate) async fn seal(
        app: &App,
        workspace: &WorkspaceId,
        prepared: &Arc<PreparedMessage>,
        raw: &Bytes,
    ) -> Result<Self> {
        let key = app.data_key(workspace).await?;
        let (content, bytes) = (prepared.clone(), raw.clone());
        let sealed = tokio::task::spawn_blocking(move || SealedContent::new(key, &content, &bytes));
        let sealed = sealed.await.map_err(Error::internal)??;
        Self::store(app, workspace, prepared, raw, sealed).await
    }

    /// Puts large parts into the blob store, before the transaction that refers to them.
    pub(super) async fn store(
        app: &App,
        workspace: &WorkspaceId,
        prepared: &PreparedMessage,
        raw: &Bytes,
        sealed: SealedContent,
    ) -> Result<Self> {
        let key = sealed.key;
        let size = i64::try_from(raw.len()).unwrap_or(i64::MAX);
        let raw = store_part(app, workspace, &key, sealed.raw, raw).await?;
        let body = store_part(app, workspace, &key, sealed.body, prepared.body.as_bytes()).await?;
        let safe = match sealed.safe {
            Some(safe) => Some(store_part(app, workspace, &key, safe, prepared.safe().as_bytes()).await?),
            None => None,
        };
        let record =
            ContentRecord { id: prepared.hash.clone(), size, raw, headers: Some(sealed.headers), body, safe };
        Ok(Self { record, key })
    }
}

/// The parts of a message, sealed for one workspace.
pub(super) struct SealedContent {
    key: Arc<DataKey>,
    raw: Vec<u8>,
    headers: Vec<u8>,
    body: Vec<u8>,
    safe: Option<Vec<u8>>,
}

impl SealedContent {
    /// Seals all parts; this takes CPU time in proportion to their size.
    pub(super) fn new(key: Arc<DataKey>, prepared: &PreparedMessage, raw: &[u8]) -> Result<Self> {
        let seal = |part, bytes: &[u8]| contents::seal(&key, &prepared.hash, part, bytes);
        let raw = seal(Part::Raw, raw)?;
        // On their own, so that who reads the message needs neither fetch nor open all of it.
        let headers = seal(Part::Headers, prepared.message.headers.as_bytes())?;
        let body = seal(Part::Body, prepared.body.as_bytes())?;
        let safe = prepared.safe.as_ref().map(|safe| seal(Part::Safe, safe.as_bytes())).transpose()?;
        Ok(Self { key, raw, headers, body, safe })
    }
}

/// Returns a small part for the row, and puts a large one into the blob store.
async fn store_part(
    app: &App,
    workspace: &WorkspaceId,
    key: &DataKey,
    sealed: Vec<u8>,
    plain: &[u8],
) -> Result<StoredPart> {
    if sealed.len() <= MAX_IN_ROW_BYTES {
        return Ok(StoredPart::InRow(sealed));
    }
    let blob = app.blobs().put(workspace.as_str(), key, plain).await.map_err(store::Error::from)?;
    Ok(StoredPart::Blob(blob.hash))
}
