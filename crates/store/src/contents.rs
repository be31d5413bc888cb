//! What mails consist of: the message as it came, the body for people, the text for agents.
//!
//! One row serves all mailboxes of a workspace that got the same message. What is small lies sealed in the row, since
//! a commit then makes it durable together with everything else; what is large lies in the blob store, where it was
//! put before the row is written.

use model::Timestamp;

use crate::{
    FromRow, Param, Row, Tx,
    blobs::{self, BlobHash},
    error::{Error, Result},
    sql::{LIST, list_places, listed},
    vault::DataKey,
};

/// Contents up to this size, packed and sealed, live in the row.
pub const MAX_IN_ROW_BYTES: usize = 128 * 1024;

/// A part of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The message as it came.
    Raw,
    /// Its header block.
    Headers,
    /// The body for people.
    Body,
    /// The text for agents.
    Safe,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Headers => "headers",
            Self::Body => "body",
            Self::Safe => "safe",
        }
    }
}

/// Where a part lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// Sealed, in the row.
    InRow(Vec<u8>),
    /// In the blob store.
    Blob(BlobHash),
}

impl StoredPart {
    fn bytes(&self) -> Option<&[u8]> {
        if let Self::InRow(bytes) = self { Some(bytes) } else { None }
    }
    fn hash(&self) -> Option<&str> {
        if let Self::Blob(hash) = self { Some(hash.as_str()) } else { None }
    }
}

/// Packs and seals a part for the row.
pub fn seal(key: &DataKey, content: &str, part: Part, bytes: &[u8]) -> Result<Vec<u8>> {
    Ok(key.seal(&purpose(content, part), &blobs::frame(bytes))?)
}

/// Opens a part that came from the row.
pub fn open(key: &DataKey, content: &str, part: Part, sealed: &[u8]) -> Result<Vec<u8>> {
    let framed = key.open(&purpose(content, part), sealed)?;
    let opened =
        blobs::unframe(framed).ok_or_else(|| Error::Corrupt("a sealed content is damaged".into()))?;
    Ok(opened.into())
}

fn purpose(content: &str, part: Part) -> String {
    format!("content {} {content}", part.name())
}

/// A content as it is stored.
#[derive(Clone, Debug)]
pub struct ContentRecord {
    /// The SHA-256 of the message as it came.
    pub id: String,
    /// Bytes of the message as it came.
    pub size: i64,
    /// The message.
    pub raw: StoredPart,
    /// Its header block, when the message is not in the row.
    pub headers: Option<Vec<u8>>,
    /// The body for people.
    pub body: StoredPart,
    /// The text for agents; nothing when it is the same as the body.
    pub safe: Option<StoredPart>,
}

impl FromRow for ContentRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let id: String = row.next()?;
        let size = row.next()?;
        let raw = match row.next::<Option<Vec<u8>>>()? {
            Some(bytes) => StoredPart::InRow(bytes),
            None => StoredPart::Blob(hash(&id)?),
        };
        let headers = row.next()?;
        let body = kept(row)?.ok_or_else(|| Error::Corrupt(format!("content {id} has no body").into()))?;
        Ok(Self { id, size, raw, headers, body, safe: kept(row)? })
    }
}

fn kept(row: &mut Row<'_>) -> Result<Option<StoredPart>> {
    let (bytes, blob): (Option<Vec<u8>>, Option<String>) = (row.next()?, row.next()?);
    match (bytes, blob) {
        (Some(bytes), _) => Ok(Some(StoredPart::InRow(bytes))),
        (None, Some(text)) => Ok(Some(StoredPart::Blob(hash(&text)?))),
        (None, None) => Ok(None),
    }
}

fn hash(text: &str) -> Result<BlobHash> {
    Ok(BlobHash::parse(text)?)
}

/// Adds a content. One that is there already is kept from going before the transaction ends: the change that changes
/// nothing holds its row, also when the last mail that consists of it is deleted at this moment.
pub async fn insert(tx: &mut Tx, content: &ContentRecord, now: Timestamp) -> Result<()> {
    tx.later(
        "INSERT INTO content (workspace_id, id, size, raw, headers, body, body_blob, safe, safe_blob, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (workspace_id, id) DO UPDATE SET size = excluded.size",
        &[
            (&content.id).into(),
            content.size.into(),
            content.raw.bytes().into(),
            content.headers.as_ref().into(),
            content.body.bytes().into(),
            content.body.hash().into(),
            content.safe.as_ref().and_then(StoredPart::bytes).into(),
            content.safe.as_ref().and_then(StoredPart::hash).into(),
            now.into(),
        ],
    )
    .await
}

/// The columns of a content, whole.
const WHOLE: &str = "id, size, raw, headers, body, body_blob, safe, safe_blob";

/// Finds a content whole.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<ContentRecord>> {
    let sql = format!("SELECT {WHOLE} FROM content WHERE workspace_id = $1 AND id = $2");
    tx.one(&sql, &[id.into()]).await
}

/// Finds contents whole, in no order.
pub async fn find_all(tx: &mut Tx, ids: &[&str]) -> Result<Vec<ContentRecord>> {
    select(tx, WHOLE, ids).await
}

async fn select<T: FromRow>(tx: &mut Tx, columns: &str, ids: &[&str]) -> Result<Vec<T>> {
    let sql = format!("SELECT {columns} FROM content WHERE workspace_id = $1 AND id IN ({})", list_places(2));
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(LIST) {
        let params: Vec<Param<'_>> = listed(some.iter().copied(), "").collect();
        found.extend(tx.all::<T>(&sql, &params).await?);
    }
    Ok(found)
}

/// The texts of a content, without the message.
#[derive(Clone, Debug)]
pub struct Texts {
    /// The content.
    pub id: String,
    /// The body for people.
    pub body: Option<StoredPart>,
    /// The text for agents; nothing when it is the same as the body.
    pub safe: Option<StoredPart>,
}

impl FromRow for Texts {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { id: row.next()?, body: kept(row)?, safe: kept(row)? })
    }
}

/// The columns of the text for agents: the body comes with it only where it is the same.
const SAFE: &str =
    "id, CASE WHEN safe IS NULL AND safe_blob IS NULL THEN body END, body_blob, safe, safe_blob";

/// The text for agents of a content.
pub async fn find_safe(tx: &mut Tx, id: &str) -> Result<Option<Texts>> {
    let sql = format!("SELECT {SAFE} FROM content WHERE workspace_id = $1 AND id = $2");
    tx.one(&sql, &[id.into()]).await
}

/// The texts for agents of contents, in no order.
pub async fn find_all_safe(tx: &mut Tx, ids: &[&str]) -> Result<Vec<Texts>> {
    select(tx, SAFE, ids).await
}

/// Drops contents that no email and nothing in the queue consists of any more, of the given ones.
///
/// The row is held first: a mail that arrives with the same content at this moment either is seen, or finds the row
/// gone and writes its own.
///
/// The workspace's next number of events is held before, as it is by those who add contents: who holds it can hold many of
/// them in any order without ever waiting for each other in a circle.
pub async fn release(tx: &mut Tx, ids: &[String]) -> Result<()> {
    crate::events::lock(tx).await?;
    for id in ids {
        let sql = format!("SELECT id FROM content WHERE workspace_id = $1 AND id = $2{}", tx.for_delete());
        tx.one::<(String,)>(&sql, &[id.into()]).await?;
        tx.run(
            "DELETE FROM content WHERE workspace_id = $1 AND id = $2 AND NOT EXISTS
             (SELECT 1 FROM email WHERE email.workspace_id = $1 AND email.content_id = content.id) AND NOT EXISTS
             (SELECT 1 FROM outbound WHERE outbound.workspace_id = $1 AND outbound.content_id = content.id)",
            &[id.into()],
        )
        .await?;
    }
    Ok(())
}

/// Which of these blobs some content of the workspace lies in.
pub async fn uses_blob(tx: &mut Tx, hash: &BlobHash) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM content WHERE workspace_id = $1
             AND ((id = $2 AND raw IS NULL) OR body_blob = $2 OR safe_blob = $2)",
            &[hash.as_str().into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Contents after the given one, by rising id: for a scrubber.
pub async fn list_after(tx: &mut Tx, after: &str, most: i64) -> Result<Vec<ContentRecord>> {
    let sql = format!("SELECT {WHOLE} FROM content WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3");
    tx.all(&sql, &[after.into(), most.into()]).await
}
