//! Memories of a workspace, and the passages of memories, documents and emails that recall searches.
//!
//! Numbers of passages and of their changes come from one counter per workspace, whose row is locked until the
//! commit: a reader that has read up to a number has seen every change before it. Words in `passage_index` are keyed
//! hashes, so the store holds no readable text; vectors are stored in plain form.

mod intake;

use model::{DocumentId, EmailId, MailboxId, MemoryId, Timestamp, WorkspaceId, knowledge::DocumentType};

pub use self::intake::{
    claim_mailbox, cursor, emails_after, lock_email, mailboxes_behind, move_cursor, release_claims,
};
use crate::{
    FromRow, Param, Row, SystemTx, Tx,
    error::Result,
    sql::{Columns, columns, row},
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// The owner of a passage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Of a memory.
    Memory(MemoryId),
    /// Of a document.
    Document(DocumentId),
    /// Of an email.
    Email(MailboxId, EmailId),
}

impl Owner {
    fn columns(&self) -> [Param<'_>; 4] {
        match self {
            Self::Memory(id) => [id.into(), Param::Null, Param::Null, Param::Null],
            Self::Document(id) => [Param::Null, id.into(), Param::Null, Param::Null],
            Self::Email(mailbox, id) => [Param::Null, Param::Null, mailbox.into(), id.into()],
        }
    }

    fn scope(&self) -> &str {
        match self {
            Self::Memory(_) => MEMORY_SCOPE,
            Self::Document(_) => DOCUMENT_SCOPE,
            Self::Email(mailbox, _) => mailbox.as_str(),
        }
    }
}

/// The scope of memories in the index; the scope of emails is their mailbox.
pub const MEMORY_SCOPE: &str = "memory";
/// The scope of documents.
pub const DOCUMENT_SCOPE: &str = "document";

/// A passage to be added.
#[derive(Clone, Debug)]
pub struct NewPassage {
    /// Its position in its owner.
    pub position: i64,
    /// Its text, sealed.
    pub text: Vec<u8>,
    /// Its vector.
    pub embedding: Embedding,
    /// Keyed hashes of its words.
    pub words: Vec<u8>,
}

/// A vector as it is stored.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// The model that made it.
    pub model: String,
    /// Its dimension.
    pub dimension: i64,
    /// The numbers as 32-bit floats.
    pub exact: Vec<u8>,
    /// The numbers quantised to 8 bits.
    pub code: Vec<u8>,
}

/// Allocates so many numbers and returns the last one. The row stays locked until the end of the transaction.
async fn allocate_numbers(tx: &mut Tx, count: i64) -> Result<i64> {
    let found = tx
        .one(
            "INSERT INTO memory_counter (workspace_id, last, stored_bytes) VALUES ($1, $2, 0)
             ON CONFLICT (workspace_id) DO UPDATE SET last = memory_counter.last + $2 RETURNING last",
            &[count.into()],
        )
        .await?;
    Ok(found.map_or(count, |(last,)| last))
}

/// Locks the counter until the end of the transaction. Transactions that delete or change passages lock it first, as
/// those that add passages do, so that they cannot deadlock.
pub(crate) async fn lock(tx: &mut Tx) -> Result<()> {
    let sql = format!("SELECT last FROM memory_counter WHERE workspace_id = $1{}", tx.for_update());
    tx.one::<(i64,)>(&sql, &[]).await?;
    Ok(())
}

/// The number of the last change; 0 when there was none.
pub async fn last_number(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT last FROM memory_counter WHERE workspace_id = $1", &[]).await?;
    Ok(found.map_or(0, |(last,)| last))
}

/// Bytes of memories and documents.
pub async fn stored_bytes(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT stored_bytes FROM memory_counter WHERE workspace_id = $1", &[]).await?;
    Ok(found.map_or(0, |(bytes,)| bytes))
}

/// Adds to the bytes of memories and documents; negative to subtract.
pub async fn add_bytes(tx: &mut Tx, bytes: i64) -> Result<()> {
    tx.run(
        "INSERT INTO memory_counter (workspace_id, last, stored_bytes) VALUES ($1, 0, $2)
         ON CONFLICT (workspace_id) DO UPDATE SET stored_bytes = memory_counter.stored_bytes + $2",
        &[bytes.into()],
    )
    .await?;
    Ok(())
}

/// Adds passages.
pub async fn insert_passages(tx: &mut Tx, owner: &Owner, passages: &[NewPassage]) -> Result<()> {
    let count = i64::try_from(passages.len()).unwrap_or(i64::MAX);
    let last = allocate_numbers(tx, count).await?;
    for (number, passage) in (last - count + 1..).zip(passages) {
        let [memory, document, mailbox, email] = owner.columns();
        tx.pipeline(
            "INSERT INTO passage (workspace_id, number, memory_id, document_id, mailbox_id, email_id, position, text, vector)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &[
                number.into(),
                memory,
                document,
                mailbox,
                email,
                passage.position.into(),
                (&passage.text).into(),
                (&passage.embedding.exact).into(),
            ],
        )
        .await?;
        insert_index(tx, number, number, owner.scope(), &passage.embedding, &passage.words).await?;
    }
    Ok(())
}

async fn insert_index(
    tx: &mut Tx,
    version: i64,
    number: i64,
    scope: &str,
    embedding: &Embedding,
    words: &[u8],
) -> Result<()> {
    tx.pipeline(
        "INSERT INTO passage_index (workspace_id, version, number, scope, model, dimension, code, words)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            version.into(),
            number.into(),
            scope.into(),
            (&embedding.model).into(),
            embedding.dimension.into(),
            (&embedding.code).into(),
            words.into(),
        ],
    )
    .await
}

/// A passage for the in-memory index.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct IndexRow {
    pub version: i64,
    pub number: i64,
    pub scope: String,
    pub model: String,
    pub code: Vec<u8>,
    pub words: Vec<u8>,
}

columns!(IndexRow { version, number, scope, model, code, words });

/// Changes of passages after a number, in order.
pub async fn changes_after(tx: &mut Tx, after: i64, most: i64) -> Result<Vec<IndexRow>> {
    tx.all(
        &format!(
            "SELECT {} FROM passage_index
         WHERE workspace_id = $1 AND version > $2 ORDER BY version LIMIT $3",
            IndexRow::COLUMNS
        ),
        &[after.into(), most.into()],
    )
    .await
}

/// The number after which the latest `most` changes come.
pub async fn start_of_latest(tx: &mut Tx, most: i64) -> Result<i64> {
    let found = tx
        .one(
            "SELECT version FROM passage_index WHERE workspace_id = $1 ORDER BY version DESC LIMIT 1 OFFSET $2",
            &[most.into()],
        )
        .await?;
    Ok(found.map_or(0, |(version,)| version))
}

/// How many passages there are, and how many of them have vectors of another model.
pub async fn count(tx: &mut Tx, model: &str) -> Result<(i64, i64)> {
    let found = tx
        .one(
            "SELECT count(*), CAST(coalesce(sum(CASE WHEN model = $2 THEN 0 ELSE 1 END), 0) AS BIGINT)
             FROM passage_index WHERE workspace_id = $1",
            &[model.into()],
        )
        .await?;
    Ok(found.unwrap_or_default())
}

/// A passage that may answer a query, with its source.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the tables")]
pub struct Candidate {
    pub number: i64,
    pub owner: Owner,
    pub position: i64,
    pub text: Vec<u8>,
    pub vector: Vec<u8>,
    /// The model of the vector.
    pub model: String,
    /// The document's name and type.
    pub document: Option<(String, DocumentType)>,
    /// The mailbox's address.
    pub mailbox_email: Option<String>,
    /// The memory's whole text and its metadata, sealed.
    pub memory: Option<(Vec<u8>, Option<Vec<u8>>)>,
    pub created_at: Timestamp,
    /// Whether it may be shown now: an email must be clean, not held, and neither in Trash nor in Spam.
    pub is_visible: bool,
}

impl FromRow for Candidate {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let number = row.next()?;
        let (memory_id, document_id): (Option<MemoryId>, Option<DocumentId>) = (row.next()?, row.next()?);
        let (mailbox, email): (Option<MailboxId>, Option<EmailId>) = (row.next()?, row.next()?);
        let owner = match (memory_id, document_id, mailbox.zip(email)) {
            (Some(id), _, _) => Owner::Memory(id),
            (None, Some(id), _) => Owner::Document(id),
            (None, None, Some((mailbox, email))) => Owner::Email(mailbox, email),
            (None, None, None) => {
                return Err(crate::Error::Corrupt(format!("passage {number} belongs to nothing").into()));
            }
        };
        let (position, text, vector, model) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (memory_text, metadata): (Option<Vec<u8>>, _) = (row.next()?, row.next()?);
        let (name, kind): (Option<String>, Option<String>) = (row.next()?, row.next()?);
        let kind = kind
            .map(|kind| kind.parse().map_err(|error: String| crate::Error::Corrupt(error.into())))
            .transpose()?;
        Ok(Self {
            number,
            owner,
            position,
            text,
            vector,
            model,
            memory: memory_text.map(|text| (text, metadata)),
            document: name.zip(kind),
            mailbox_email: row.next()?,
            created_at: row.next()?,
            is_visible: row.next()?,
        })
    }
}

/// The passages with these numbers that still exist.
pub async fn candidates(tx: &mut Tx, numbers: &[i64], now: Timestamp) -> Result<Vec<Candidate>> {
    let sql = format!(
        "SELECT p.number, p.memory_id, p.document_id, p.mailbox_id, p.email_id, p.position, p.text, p.vector, i.model,
           m.text, m.metadata, d.name, d.type, b.email,
           coalesce(m.created_at, d.created_at, e.arrived_at, 0),
           CASE WHEN p.email_id IS NULL THEN 1
             WHEN e.listed = 1 AND (e.outgoing = 1 OR e.scan_status = 'clean') AND b.deleted_at IS NULL
               AND (e.held_until IS NULL OR e.held_until <= $2) THEN 1 ELSE 0 END
         FROM passage p JOIN passage_index i ON i.workspace_id = $1 AND i.number = p.number
         LEFT JOIN memory m ON m.workspace_id = $1 AND m.id = p.memory_id
         LEFT JOIN document d ON d.workspace_id = $1 AND d.id = p.document_id
         LEFT JOIN email e ON e.workspace_id = $1 AND e.mailbox_id = p.mailbox_id AND e.id = p.email_id
         LEFT JOIN mailbox b ON b.workspace_id = $1 AND b.id = p.mailbox_id
         WHERE p.workspace_id = $1 AND p.number IN ({})",
        list_placeholders(3)
    );
    let mut found = Vec::with_capacity(numbers.len());
    for some in numbers.chunks(LIST_LENGTH) {
        let mut params: Vec<Param<'_>> = vec![now.into()];
        // Numbers begin at 1.
        params.extend(list_params(some.iter().copied(), 0));
        found.extend(tx.all::<Candidate>(&sql, &params).await?);
    }
    Ok(found)
}

/// Adds a memory.
pub async fn insert(
    tx: &mut Tx,
    id: &MemoryId,
    size: i64,
    text: &[u8],
    metadata: Option<&[u8]>,
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO memory (workspace_id, id, size, text, metadata, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        &[id.into(), size.into(), text.into(), metadata.into(), now.into()],
    )
    .await?;
    add_bytes(tx, size).await
}

/// Deletes a memory with its passages. False when there is none.
pub async fn delete(tx: &mut Tx, id: &MemoryId) -> Result<bool> {
    lock(tx).await?;
    let found: Option<(i64,)> =
        tx.one("DELETE FROM memory WHERE workspace_id = $1 AND id = $2 RETURNING size", &[id.into()]).await?;
    let Some((size,)) = found else { return Ok(false) };
    add_bytes(tx, -size).await?;
    Ok(true)
}

/// Deletes the passages of an email. False when there are none.
pub async fn delete_email(tx: &mut Tx, email: &EmailId) -> Result<bool> {
    lock(tx).await?;
    let gone =
        tx.run("DELETE FROM passage WHERE workspace_id = $1 AND email_id = $2", &[email.into()]).await?;
    Ok(gone > 0)
}

/// A passage whose vector is of another model.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the tables")]
pub struct OutdatedPassage {
    pub version: i64,
    pub number: i64,
    pub scope: String,
    pub words: Vec<u8>,
    pub text: Vec<u8>,
}

row!(OutdatedPassage { version, number, scope, words, text });

/// Passages of the workspace whose vectors are of another model, oldest first.
pub async fn outdated(tx: &mut Tx, model: &str, most: i64) -> Result<Vec<OutdatedPassage>> {
    tx.all(
        "SELECT i.version, i.number, i.scope, i.words, p.text FROM passage_index i
         JOIN passage p ON p.workspace_id = $1 AND p.number = i.number
         WHERE i.workspace_id = $1 AND i.model <> $2 ORDER BY i.version LIMIT $3",
        &[model.into(), most.into()],
    )
    .await
}

/// Replaces the vector of a passage, unless the passage changed or was deleted meanwhile.
pub async fn replace_vector(tx: &mut Tx, old: &OutdatedPassage, embedding: &Embedding) -> Result<()> {
    let version = allocate_numbers(tx, 1).await?;
    let gone = tx
        .run(
            "DELETE FROM passage_index WHERE workspace_id = $1 AND version = $2 AND number = $3",
            &[old.version.into(), old.number.into()],
        )
        .await?;
    if gone == 0 {
        return Ok(());
    }
    tx.run(
        "UPDATE passage SET vector = $3 WHERE workspace_id = $1 AND number = $2",
        &[old.number.into(), (&embedding.exact).into()],
    )
    .await?;
    insert_index(tx, version, old.number, &old.scope, embedding, &old.words).await
}

/// Some workspaces that have vectors of another model.
pub async fn outdated_workspaces(tx: &mut SystemTx, model: &str, most: i64) -> Result<Vec<WorkspaceId>> {
    let mut found: Vec<(WorkspaceId,)> = Vec::new();
    for side in ["<", ">"] {
        let sql = format!("SELECT DISTINCT workspace_id FROM passage_index WHERE model {side} $1 LIMIT $2");
        found.extend(tx.all::<(WorkspaceId,)>(&sql, &[model.into(), most.into()]).await?);
    }
    Ok(found.into_iter().map(|(workspace,)| workspace).collect())
}

/// How many vectors of another model there are on the whole server.
pub async fn count_outdated(tx: &mut SystemTx, model: &str) -> Result<i64> {
    let found: Option<(i64,)> =
        tx.one("SELECT count(*) FROM passage_index WHERE model < $1 OR model > $1", &[model.into()]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// How many passages have another byte than this one at a certain place of their vector: a look at every vector, which
/// measurements compare an index with.
pub async fn count_codes_without(tx: &mut Tx, byte: u8) -> Result<i64> {
    let sql = "SELECT count(*) FROM passage_index WHERE workspace_id = $1 AND substr(code, 5, 1) <> $2";
    Ok(tx.one::<(i64,)>(sql, &[[byte].as_slice().into()]).await?.map_or(0, |(count,)| count))
}
