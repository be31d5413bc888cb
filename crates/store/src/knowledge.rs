//! Documents: their bytes and their indexing progress.

use model::{
    DocumentId, Timestamp, WorkspaceId,
    knowledge::{Document, DocumentStatus},
};

use bytes::Bytes;

use crate::{
    FromRow, Row, SystemTx, Topic, Tx,
    blobs::{self, BlobName, BlobSuffix},
    error::{Error, Result},
    memory,
    sql::{Columns, Insert, columns},
    turns,
    vault::DataKey,
};

columns!(Document {
    id, name, kind = type, status, last_error = reason, chunk_count, chunks_done, size, sha256 = hash, created_at, updated_at,
});

const COLUMNS: &str = Document::COLUMNS;

/// A document with its bytes, sealed; without them when they are in the blob store.
#[derive(Clone, Debug)]
pub struct DocumentWithContent {
    /// The document.
    pub document: Document,
    /// Its bytes.
    pub content: Option<Vec<u8>>,
    blob_suffix: Option<String>,
}

impl FromRow for DocumentWithContent {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { document: Document::from_row(row)?, content: row.next()?, blob_suffix: row.next()? })
    }
}

impl DocumentWithContent {
    /// The name of its bytes in the blob store, if they are there.
    pub fn blob(&self) -> Result<BlobName> {
        Ok(BlobName::of_row(&self.document.sha256, self.blob_suffix.as_deref())?)
    }
}

/// Compresses and seals the bytes of a document for its row.
pub fn seal(key: &DataKey, id: &DocumentId, bytes: &[u8]) -> Result<Vec<u8>> {
    Ok(key.seal(&purpose(id), &blobs::frame(bytes))?)
}

/// Opens the bytes of a document from its row.
pub fn open(key: &DataKey, id: &DocumentId, sealed: &[u8]) -> Result<Bytes> {
    let framed = key.open(&purpose(id), sealed)?;
    blobs::unframe(framed).ok_or_else(|| Error::Corrupt(format!("document {id} is damaged").into()))
}

fn purpose(id: &DocumentId) -> String {
    format!("document {id}")
}

/// Compresses and seals the text pieces of a document while they are indexed.
pub fn seal_pieces(key: &DataKey, id: &DocumentId, pieces: &[String]) -> Result<Vec<u8>> {
    let plain = serde_json::to_vec(pieces).map_err(|error| Error::Internal(error.into()))?;
    Ok(key.seal(&purpose_of_pieces(id), &blobs::frame(&plain))?)
}

/// Opens the text pieces of a document.
pub fn open_pieces(key: &DataKey, id: &DocumentId, sealed: &[u8]) -> Result<Vec<String>> {
    let damaged = || Error::Corrupt(format!("the pieces of document {id} are damaged").into());
    let plain = blobs::unframe(key.open(&purpose_of_pieces(id), sealed)?).ok_or_else(damaged)?;
    serde_json::from_slice(&plain).map_err(|_| damaged())
}

fn purpose_of_pieces(id: &DocumentId) -> String {
    format!("pieces of document {id}")
}

/// The documents of the workspace before the given one, the newest first.
pub async fn list(tx: &mut Tx, before: Option<&DocumentId>, most: i64) -> Result<Vec<Document>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM document WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
    );
    // Greater than every id.
    let before = before.map_or("e", DocumentId::as_str);
    tx.all(&sql, &[before.into(), most.into()]).await
}

/// Finds a document.
pub async fn find(tx: &mut Tx, id: &DocumentId) -> Result<Option<Document>> {
    tx.one(&format!("SELECT {COLUMNS} FROM document WHERE workspace_id = $1 AND id = $2"), &[id.into()]).await
}

/// Finds a document with its bytes.
pub async fn find_with_content(tx: &mut Tx, id: &DocumentId) -> Result<Option<DocumentWithContent>> {
    let sql =
        format!("SELECT {COLUMNS}, content, blob_suffix FROM document WHERE workspace_id = $1 AND id = $2");
    tx.one(&sql, &[id.into()]).await
}

/// The sealed pieces of a document that is being indexed, and how many of them are done. No pieces when its text was
/// not extracted yet; `None` when there is nothing to do.
pub async fn find_pieces(tx: &mut Tx, id: &DocumentId) -> Result<Option<(Option<Vec<u8>>, i64)>> {
    tx.one(
        "SELECT pieces, chunks_done FROM document WHERE workspace_id = $1 AND id = $2 AND status = 'indexing'",
        &[id.into()],
    )
    .await
}

/// Where the bytes of a new document are: sealed for its row, or in the blob store, with the suffix of their name.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "see above")]
pub enum NewContent {
    InRow(Vec<u8>),
    Blob(Option<BlobSuffix>),
}

/// Adds a document, and wakes the indexers.
pub async fn insert(tx: &mut Tx, document: &Document, content: &NewContent) -> Result<()> {
    let (in_row, suffix) = match content {
        NewContent::InRow(sealed) => (Some(sealed.as_slice()), None),
        NewContent::Blob(suffix) => (None, suffix.as_ref().map(BlobSuffix::as_str)),
    };
    Insert::into("document")
        .record(document)
        .column("content", in_row)
        .column("blob_suffix", suffix)
        .column("claimed_until", 0_i64)
        .run(tx)
        .await?;
    memory::add_bytes(tx, document.size).await?;
    tx.wake(Topic::Document, None);
    Ok(())
}

/// Deletes a document with its passages. False when there is none.
pub async fn delete(tx: &mut Tx, id: &DocumentId) -> Result<bool> {
    memory::lock(tx).await?;
    let found: Option<(i64,)> = tx
        .one("DELETE FROM document WHERE workspace_id = $1 AND id = $2 RETURNING size", &[id.into()])
        .await?;
    let Some((size,)) = found else { return Ok(false) };
    memory::add_bytes(tx, -size).await?;
    Ok(true)
}

/// Stores the sealed text pieces of a document, and restarts when their number changed. Returns how many are done;
/// nothing when there is nothing left to do.
pub async fn begin(
    tx: &mut Tx,
    id: &DocumentId,
    (chunks, pieces): (i64, &[u8]),
    now: Timestamp,
) -> Result<Option<i64>> {
    memory::lock(tx).await?;
    let sql = format!(
        "SELECT chunk_count, chunks_done FROM document WHERE workspace_id = $1 AND id = $2 AND status = 'indexing'{}",
        tx.for_update()
    );
    let found: Option<(i64, i64)> = tx.one(&sql, &[id.into()]).await?;
    let Some((count, done)) = found else { return Ok(None) };
    let done = if count == chunks { done } else { 0 };
    if done == 0 {
        tx.run("DELETE FROM passage WHERE workspace_id = $1 AND document_id = $2", &[id.into()]).await?;
    }
    tx.run(
        "UPDATE document SET chunk_count = $3, chunks_done = $4, pieces = $5, updated_at = $6
         WHERE workspace_id = $1 AND id = $2",
        &[id.into(), chunks.into(), done.into(), pieces.into(), now.into()],
    )
    .await?;
    Ok(Some(done))
}

/// Records progress, if the document is still at the position that the caller knows.
pub async fn advance(
    tx: &mut Tx,
    id: &DocumentId,
    (from, to): (i64, i64),
    (now, until): (Timestamp, Timestamp),
) -> Result<bool> {
    memory::lock(tx).await?;
    let changed = tx
        .run(
            "UPDATE document SET chunks_done = $4, status = CASE WHEN chunk_count = $4 THEN 'ready' ELSE status END,
               pieces = CASE WHEN chunk_count = $4 THEN NULL ELSE pieces END, updated_at = $5, claimed_until = $6
             WHERE workspace_id = $1 AND id = $2 AND chunks_done = $3 AND status = 'indexing'",
            &[id.into(), from.into(), to.into(), now.into(), until.into()],
        )
        .await?;
    Ok(changed == 1)
}

/// Records why a document cannot be indexed.
pub async fn fail(tx: &mut Tx, id: &DocumentId, reason: &str, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE document SET status = $3, reason = $4, pieces = NULL, updated_at = $5
         WHERE workspace_id = $1 AND id = $2 AND status = 'indexing'",
        &[id.into(), DocumentStatus::Failed.into(), reason.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Defers a document until a time, when it is retried.
pub async fn defer(tx: &mut Tx, id: &DocumentId, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE document SET claimed_until = $3 WHERE workspace_id = $1 AND id = $2 AND status = 'indexing'",
        &[id.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// How many pieces of a document are indexed, and how many of those have vectors of another model.
pub async fn indexed(tx: &mut Tx, id: &DocumentId, model: &str) -> Result<(i64, i64)> {
    let found = tx
        .one(
            "SELECT count(*), CAST(coalesce(sum(CASE WHEN i.model = $3 THEN 0 ELSE 1 END), 0) AS BIGINT)
             FROM passage p JOIN passage_index i ON i.workspace_id = $1 AND i.number = p.number
             WHERE p.workspace_id = $1 AND p.document_id = $2",
            &[id.into(), model.into()],
        )
        .await?;
    Ok(found.unwrap_or_default())
}

/// The sealed texts of a document's passages, in their order, after a position.
pub async fn texts_after(tx: &mut Tx, id: &DocumentId, after: i64, most: i64) -> Result<Vec<(i64, Vec<u8>)>> {
    tx.all(
        "SELECT position, text FROM passage WHERE workspace_id = $1 AND document_id = $2 AND position > $3
         ORDER BY position LIMIT $4",
        &[id.into(), after.into(), most.into()],
    )
    .await
}

/// Whether the bytes of a document of the workspace are stored in a blob.
pub async fn uses_blob(tx: &mut Tx, name: &BlobName) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM document WHERE workspace_id = $1 AND hash = $2 AND content IS NULL
             AND coalesce(blob_suffix, '') = $3",
            &[name.hash.as_str().into(), name.suffix.as_ref().map_or("", BlobSuffix::as_str).into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Claims a document to index: the oldest one of the next workspace that has one, after the workspace served last and
/// other than those being served now.
pub async fn claim(
    tx: &mut SystemTx,
    now: Timestamp,
    until: Timestamp,
    after: &str,
    served: &[WorkspaceId],
) -> Result<Option<(WorkspaceId, DocumentId)>> {
    let waiting = "SELECT workspace_id FROM document WHERE status = 'indexing' AND claimed_until <= $1
        AND workspace_id > $2 ORDER BY workspace_id LIMIT 1";
    let workspaces = turns::next_workspaces(tx, waiting, now, after, served.len() + 1).await?;
    let oldest = format!(
        "SELECT id FROM document WHERE workspace_id = $1 AND status = 'indexing' AND claimed_until <= $2
         ORDER BY id LIMIT 1{}",
        tx.skip_locked()
    );
    for workspace in workspaces.into_iter().filter(|workspace| !served.contains(workspace)) {
        let found: Option<(DocumentId,)> = tx.one(&oldest, &[(&workspace).into(), now.into()]).await?;
        // Another node may have claimed it.
        let Some((id,)) = found else { continue };
        tx.run(
            "UPDATE document SET claimed_until = $3 WHERE workspace_id = $1 AND id = $2",
            &[(&workspace).into(), (&id).into(), until.into()],
        )
        .await?;
        return Ok(Some((workspace, id)));
    }
    Ok(None)
}
