//! The contents of messages: the raw message, the body for people, the text for agents.
//!
//! One row serves all mailboxes of a workspace that received the same message. Small parts are sealed in the row, so
//! that one commit makes everything durable; large parts are in the blob store, written there before the row.

mod around;
mod edits;

use std::collections::BTreeSet;

use bytes::Bytes;
use model::Timestamp;

pub use self::around::Around;
use self::edits::Edits;
use crate::{
    AnySelect, FromRow, Param, Row, Select, Tx,
    blobs::{self, BlobHash, BlobName, BlobSuffix, SealedBlob},
    error::{Error, Result},
    sql::{LIST_LENGTH, list_params, list_placeholders},
    vault::DataKey,
};

/// Contents up to this size, packed, live in the row.
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

/// Where a part is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// Sealed, in the row.
    InRow(Vec<u8>),
    /// In the blob store.
    Blob(BlobName),
}

impl StoredPart {
    fn bytes(&self) -> Option<&[u8]> {
        if let Self::InRow(bytes) = self { Some(bytes) } else { None }
    }
    fn name(&self) -> Option<&BlobName> {
        if let Self::Blob(name) = self { Some(name) } else { None }
    }
    fn hash(&self) -> Option<&str> {
        self.name().map(|name| name.hash.as_str())
    }
}

/// A part that is ready to be stored.
pub enum SealedPart {
    /// In the row.
    InRow(Vec<u8>),
    /// In the blob store, before the row.
    Blob(SealedBlob),
}

/// Packs and seals a part for the row.
pub fn seal(key: &DataKey, content: &str, part: Part, bytes: &[u8]) -> Result<Vec<u8>> {
    Ok(key.seal(&purpose(content, part), &framed(part, bytes))?)
}

/// Packs and seals a part for the row, or for the blobs of a space if it is large.
pub fn seal_part(key: &DataKey, space: &str, content: &str, part: Part, bytes: &[u8]) -> Result<SealedPart> {
    let framed = framed(part, bytes);
    if framed.len() <= MAX_IN_ROW_BYTES {
        return Ok(SealedPart::InRow(key.seal(&purpose(content, part), &framed)?));
    }
    // A content is named by its message.
    let name = if part == Part::Raw { hash(content)? } else { BlobHash::of(bytes) };
    Ok(SealedPart::Blob(SealedBlob::of_frame(space, key, name, bytes.len(), &framed)?))
}

/// Packs and seals a message, without its body if that is most of it and stored beside it.
pub fn seal_message(
    key: &DataKey,
    space: &str,
    content: &str,
    message: &[u8],
    body: &[u8],
) -> Result<SealedPart> {
    let around = Around::of(message, body).map(|around| around.framed());
    match around.filter(|framed| framed.len() <= MAX_IN_ROW_BYTES) {
        Some(framed) => Ok(SealedPart::InRow(key.seal(&purpose(content, Part::Raw), &framed)?)),
        None => seal_part(key, space, content, Part::Raw, message),
    }
}

/// Packs and seals the text for agents, or only what is different in it where that is little and the body is in the row.
pub fn seal_safe(
    key: &DataKey,
    space: &str,
    content: &str,
    safe: &[u8],
    (body, sealed_body): (&[u8], &SealedPart),
) -> Result<SealedPart> {
    let has_body = matches!(sealed_body, SealedPart::InRow(_));
    match Edits::framed(body, safe).filter(|_| has_body) {
        Some(framed) => Ok(SealedPart::InRow(key.seal(&purpose(content, Part::Safe), &framed)?)),
        None => seal_part(key, space, content, Part::Safe, safe),
    }
}

/// A message that came from the row.
pub enum OpenedMessage {
    /// All of it.
    Whole(Vec<u8>),
    /// Without its body.
    Around(Around),
}

/// Opens a message that came from the row.
pub fn open_message(key: &DataKey, content: &str, sealed: &[u8]) -> Result<OpenedMessage> {
    let frame = key.open(&purpose(content, Part::Raw), sealed)?;
    if Around::is_framed(&frame) {
        return Around::unframed(&frame).map(OpenedMessage::Around).ok_or_else(damaged);
    }
    opened(blobs::unframe(frame)).map(OpenedMessage::Whole)
}

fn framed(part: Part, bytes: &[u8]) -> Vec<u8> {
    match part {
        Part::Raw | Part::Headers => blobs::frame(bytes),
        Part::Body | Part::Safe => blobs::frame_text(bytes),
    }
}

/// Opens a part that came from the row.
pub fn open(key: &DataKey, content: &str, part: Part, sealed: &[u8]) -> Result<Vec<u8>> {
    opened(blobs::unframe(key.open(&purpose(content, part), sealed)?))
}

/// Opens the beginning of a text that came from the row: as much as is enough, or all of it.
pub fn open_start(
    key: &DataKey,
    content: &str,
    part: Part,
    sealed: &[u8],
    enough: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<Vec<u8>> {
    opened(blobs::unframe_start(key.open(&purpose(content, part), sealed)?, enough))
}

/// Opens the beginning of the text for agents: as much as is enough, or all of it. `None` if it is in the blob store.
pub fn open_safe_start(
    key: &DataKey,
    content: &str,
    (body, safe): (Option<&StoredPart>, Option<&StoredPart>),
    enough: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<Option<Vec<u8>>> {
    let Some(own) = safe else {
        let body = body.and_then(StoredPart::bytes);
        return body.map(|sealed| open_start(key, content, Part::Body, sealed, enough)).transpose();
    };
    let Some(sealed) = own.bytes() else { return Ok(None) };
    let frame = key.open(&purpose(content, Part::Safe), sealed)?;
    let Some(edits) = Edits::unframed(&frame) else {
        return opened(blobs::unframe_start(frame, enough)).map(Some);
    };
    let body = body.and_then(StoredPart::bytes).ok_or_else(damaged)?;
    let mut is_enough = |start: &[u8]| enough(&edits.apply(start));
    let start = open_start(key, content, Part::Body, body, &mut is_enough)?;
    Ok(Some(edits.apply(&start)))
}

fn opened(content: Option<Bytes>) -> Result<Vec<u8>> {
    content.map(Vec::from).ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::Corrupt("a sealed content is damaged".into())
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
    /// Its header block; `None` in contents from before it was always stored.
    pub headers: Option<Vec<u8>>,
    /// The body for people.
    pub body: StoredPart,
    /// The text for agents; `None` when it is the same as the body.
    pub safe: Option<StoredPart>,
}

impl ContentRecord {
    /// The names of its blobs, which share their suffix.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobName> {
        [Some(&self.raw), Some(&self.body), self.safe.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(StoredPart::name)
    }
}

impl FromRow for ContentRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (id, size): (String, _) = (row.next()?, row.next()?);
        let suffix: Option<String> = row.next()?;
        let suffix = suffix.as_deref();
        let raw = match row.next::<Option<Vec<u8>>>()? {
            Some(bytes) => StoredPart::InRow(bytes),
            None => StoredPart::Blob(BlobName::of_row(&id, suffix)?),
        };
        let headers = row.next()?;
        let body = kept(row, suffix)?;
        let body = body.ok_or_else(|| Error::Corrupt(format!("content {id} has no body").into()))?;
        Ok(Self { id, size, raw, headers, body, safe: kept(row, suffix)? })
    }
}

fn kept(row: &mut Row<'_>, suffix: Option<&str>) -> Result<Option<StoredPart>> {
    let (bytes, blob): (Option<Vec<u8>>, Option<String>) = (row.next()?, row.next()?);
    match (bytes, blob) {
        (Some(bytes), _) => Ok(Some(StoredPart::InRow(bytes))),
        (None, Some(hash)) => Ok(Some(StoredPart::Blob(BlobName::of_row(&hash, suffix)?))),
        (None, None) => Ok(None),
    }
}

fn hash(text: &str) -> Result<BlobHash> {
    Ok(BlobHash::parse(text)?)
}

/// Adds a content. An existing row is locked until the transaction ends, by an update that changes nothing: it cannot
/// be deleted with the last email that uses it.
pub async fn insert(tx: &mut Tx, content: &ContentRecord, now: Timestamp) -> Result<()> {
    insert_all(tx, &[(content, now)]).await
}

/// Adds contents, each once.
pub async fn insert_all(tx: &mut Tx, contents: &[(&ContentRecord, Timestamp)]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let different = contents.iter().filter(|(content, _)| seen.insert(&content.id));
    let rows = different.map(|(content, now)| insert_params(content, *now)).collect();
    tx.pipeline_rows(
        "INSERT INTO content (workspace_id, id, size, message, headers, body, body_blob, safe, safe_blob, created_at,
           blob_suffix)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (workspace_id, id) DO UPDATE SET size = excluded.size",
        rows,
    )
    .await
}

fn insert_params(content: &ContentRecord, now: Timestamp) -> Vec<Param<'_>> {
    vec![
        (&content.id).into(),
        content.size.into(),
        content.raw.bytes().into(),
        content.headers.as_ref().into(),
        content.body.bytes().into(),
        content.body.hash().into(),
        content.safe.as_ref().and_then(StoredPart::bytes).into(),
        content.safe.as_ref().and_then(StoredPart::hash).into(),
        now.into(),
        content.blobs().find_map(|name| name.suffix.as_ref()).map(BlobSuffix::as_str).into(),
    ]
}

/// Finds a content with all parts.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<ContentRecord>> {
    find_view(tx, id).await
}

/// A content as people read it: the body and the header block, without the message.
#[derive(Clone, Debug)]
pub struct ReadableContent {
    /// The content.
    pub id: String,
    /// The body.
    pub body: StoredPart,
    /// The header block, or else the message to take it from.
    pub headers: HeaderSource,
}

/// Where a header block comes from.
#[derive(Clone, Debug)]
pub enum HeaderSource {
    /// Sealed on its own.
    Sealed(Vec<u8>),
    /// It is the first part of the message.
    Message(StoredPart),
}

impl FromRow for ReadableContent {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (id, suffix): (String, Option<String>) = (row.next()?, row.next()?);
        let suffix = suffix.as_deref();
        let (headers, message): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.next()?, row.next()?);
        let headers = match (headers, message) {
            (Some(headers), _) => HeaderSource::Sealed(headers),
            (None, Some(message)) => HeaderSource::Message(StoredPart::InRow(message)),
            (None, None) => HeaderSource::Message(StoredPart::Blob(BlobName::of_row(&id, suffix)?)),
        };
        let body = kept(row, suffix)?;
        let body = body.ok_or_else(|| Error::Corrupt(format!("content {id} has no body").into()))?;
        Ok(Self { id, body, headers })
    }
}

impl ContentView for ReadableContent {
    const COLUMNS: &'static str = "content.id, content.blob_suffix, content.headers,
        CASE WHEN content.headers IS NULL THEN coalesce(content.message, content.raw) END, content.body, content.body_blob";
}

/// What somebody needs of a content.
pub trait ContentView: FromRow {
    /// Its columns, from the table called `content`.
    const COLUMNS: &'static str;
}

/// Finds a content.
pub async fn find_view<T: ContentView>(tx: &mut Tx, id: &str) -> Result<Option<T>> {
    let sql = format!("SELECT {} FROM content WHERE workspace_id = $1 AND id = $2", T::COLUMNS);
    tx.one(&sql, &[id.into()]).await
}

/// Finds contents, in no order.
pub async fn find_views<T: ContentView>(tx: &mut Tx, ids: &[&str]) -> Result<Vec<T>> {
    let mut selects = select_views(ids);
    tx.select(&mut selects.iter_mut().map(|select| select as &mut dyn AnySelect<'_>).collect::<Vec<_>>())
        .await?;
    Ok(selects.into_iter().flat_map(Select::rows).collect())
}

/// Selects contents, in no order.
pub fn select_views<'a, T: ContentView>(ids: &[&'a str]) -> Vec<Select<'a, T>> {
    let (columns, list) = (T::COLUMNS, list_placeholders(2));
    let sql = format!("SELECT {columns} FROM content WHERE workspace_id = $1 AND id IN ({list})");
    let lists = ids.chunks(LIST_LENGTH).map(|some| list_params(some.iter().copied(), "").collect());
    lists.map(|params| Select::new(sql.clone(), params)).collect()
}

/// The texts of a content, without the message.
#[derive(Clone, Debug)]
pub struct Texts {
    /// The content.
    pub id: String,
    /// The body for people, if the text for agents is the same or edits of it.
    pub body: Option<StoredPart>,
    /// The text for agents; `None` when it is the same as the body.
    pub safe: Option<StoredPart>,
}

impl FromRow for Texts {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (id, suffix): (String, Option<String>) = (row.next()?, row.next()?);
        let suffix = suffix.as_deref();
        Ok(Self { id, body: kept(row, suffix)?, safe: kept(row, suffix)? })
    }
}

impl ContentView for Texts {
    // The body comes with the text for agents only where that is the same, or short enough for sealed edits of it.
    const COLUMNS: &'static str = "content.id, content.blob_suffix,
        CASE WHEN coalesce(length(content.safe), CASE WHEN content.safe_blob IS NULL THEN 0 END) <= 300
          THEN content.body END, content.body_blob, content.safe, content.safe_blob";
}

/// The texts of a content, with the body also where the text for agents is another.
#[derive(Clone, Debug)]
pub struct BothTexts(pub Texts);

impl FromRow for BothTexts {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Texts::from_row(row).map(Self)
    }
}

impl ContentView for BothTexts {
    const COLUMNS: &'static str =
        "content.id, content.blob_suffix, content.body, content.body_blob, content.safe, content.safe_blob";
}

impl ContentView for ContentRecord {
    const COLUMNS: &'static str =
        "content.id, content.size, content.blob_suffix, coalesce(content.message, content.raw), content.headers,
        content.body, content.body_blob, content.safe, content.safe_blob";
}

/// Deletes those of the given contents that no email and no queued message uses any more.
///
/// The row is locked first: a message that arrives with the same content at that moment is either seen, or finds the
/// row deleted and inserts its own.
///
/// The workspace's event counter is locked before, as in transactions that add contents. Its lock serialises them, so
/// they can lock contents in any order without a deadlock.
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

/// Whether a content of the workspace is stored in a blob.
pub async fn uses_blob(tx: &mut Tx, name: &BlobName) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM content WHERE workspace_id = $1 AND coalesce(blob_suffix, '') = $3
             AND ((id = $2 AND raw IS NULL AND message IS NULL) OR body_blob = $2 OR safe_blob = $2)",
            &[name.hash.as_str().into(), name.suffix.as_ref().map_or("", BlobSuffix::as_str).into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Contents after the given one, by rising id: for a scrubber.
pub async fn list_after(tx: &mut Tx, after: &str, most: i64) -> Result<Vec<ContentRecord>> {
    let columns = ContentRecord::COLUMNS;
    let sql =
        format!("SELECT {columns} FROM content WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3");
    tx.all(&sql, &[after.into(), most.into()]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_for_agents_is_stored_as_edits_of_the_body() {
        let key = DataKey::generate().unwrap();
        let body = "A line of a message. \n".repeat(2000);
        let (edited, other) = (body.trim_end(), "something else entirely");
        let sealed = |text: &str| seal_part(&key, "ws_a", "id", Part::Body, text.as_bytes()).unwrap();
        let in_row = |part: SealedPart| match part {
            SealedPart::InRow(bytes) => StoredPart::InRow(bytes),
            SealedPart::Blob(_) => panic!("it is small"),
        };
        for safe in [edited, other, ""] {
            let sealed_safe =
                seal_safe(&key, "ws_a", "id", safe.as_bytes(), (body.as_bytes(), &sealed(&body)));
            let (body, safe_part) = (in_row(sealed(&body)), in_row(sealed_safe.unwrap()));
            assert!(safe_part.bytes().is_some_and(|bytes| bytes.len() < 300), "it comes with its body");
            let parts = (Some(&body), Some(&safe_part));
            let all = open_safe_start(&key, "id", parts, &mut |_| false).unwrap();
            assert_eq!(all.as_deref(), Some(safe.as_bytes()));
            let start = open_safe_start(&key, "id", parts, &mut |start| start.len() > 100).unwrap().unwrap();
            assert!(safe.as_bytes().starts_with(&start) && start.len() < 10_000);
            let without_body = open_safe_start(&key, "id", (None, Some(&safe_part)), &mut |_| false);
            assert_eq!(without_body.is_ok(), safe == other);
        }
    }
}
