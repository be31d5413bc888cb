//! Documents of a workspace: stored byte for byte, split into passages in the background.

pub mod worker;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use model::{
    DocumentId, Scope,
    knowledge::{
        Document, DocumentCheck, DocumentPage, DocumentQuery, DocumentStatus, DocumentType,
        MAX_DOCUMENT_BYTES, NewDocument,
    },
};
use serde::{Deserialize, Serialize};
use store::{
    blobs::BlobHash,
    contents::MAX_IN_ROW_BYTES,
    knowledge::{self, DocumentWithContent, NewContent},
    vault::DataKey,
};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
    },
    inbox::{attachments::Download, emails::require_room},
    recall::memory,
};

/// Lists the documents.
pub const LIST: Operation =
    Operation::read("listDocuments", "Lists the documents of the workspace, newest first.")
        .workspace()
        .errors(&[ErrorKind::InvalidCursor]);
/// Adds a document.
pub const ADD: Operation = Operation::ai_heavy(
    "addDocument",
    "Adds a document (text, Markdown, HTML, PDF or an email) of at most 10 MiB. It is indexed in the background.",
).scope(Scope::Agent).workspace()
.created()
.errors(&[ErrorKind::MemoryUnavailable, ErrorKind::QuotaExceeded, ErrorKind::PayloadTooLarge]);
/// Reads a document's state.
pub const GET: Operation = Operation::read("getDocument", "Returns a document's state.")
    .workspace()
    .tagged()
    .errors(&[ErrorKind::NotFound]);
/// Deletes a document.
pub const DELETE: Operation =
    Operation::write("deleteDocument", "Deletes a document and everything that memory keeps of it.")
        .scope(Scope::Agent)
        .workspace()
        .empty()
        .errors(&[ErrorKind::NotFound]);
/// Downloads a document.
pub const DOWNLOAD: Operation = Operation::read("downloadDocument", "Downloads a document, byte for byte.")
    .workspace()
    .errors(&[ErrorKind::NotFound]);
/// Checks a document.
pub const VERIFY: Operation = Operation::write(
    "verifyDocument",
    "Checks that a document's stored bytes and indexed passages are intact.",
)
.scope(Scope::Agent)
.workspace()
.errors(&[ErrorKind::NotFound, ErrorKind::MemoryUnavailable]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &ADD, &GET, &DELETE, &DOWNLOAD, &VERIFY];

/// Passages per read of a check.
const BATCH: i64 = 500;

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct DocumentPosition {
    before: DocumentId,
}

/// Lists the documents.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: DocumentQuery) -> Result<DocumentPage> {
    let key = app.data_key(&call.workspace).await?;
    let about = LIST.id;
    let position: Option<DocumentPosition> =
        query.cursor.as_deref().map(|text| cursor::open(&key, about, text)).transpose()?;
    let limit = query.limit;
    let mut documents = app
        .read(call, async move |tx| {
            Ok(knowledge::list(tx, position.as_ref().map(|position| &position.before), limit + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut documents, limit);
    let last = documents.last().filter(|_| has_more);
    let next_cursor = last
        .map(|last| cursor::seal(&key, about, &DocumentPosition { before: last.id.clone() }))
        .transpose()?;
    Ok(DocumentPage { documents, has_more, next_cursor })
}

/// Adds a document.
#[crate::boxed]
pub async fn add(app: &App, call: &Call, input: NewDocument) -> Result<Document> {
    let key = memory::require(app, &call.workspace).await?;
    let name = clean_name("name", &input.name)?;
    let bytes = bytes_of(&input)?;
    require_room(app, &call.workspace, call.plan, bytes.len()).await?;
    let id: DocumentId = app.new_id();
    let document = Document {
        id: id.clone(),
        name,
        kind: input.kind,
        status: DocumentStatus::Indexing,
        last_error: None,
        chunk_count: 0,
        chunks_done: 0,
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        sha256: BlobHash::of(&bytes).as_str().to_owned(),
        created_at: call.now,
        updated_at: call.now,
    };
    let content = store_bytes(app, call, &key, &id, bytes).await?;
    let of = app.clone();
    app.write(call, async move |tx| {
        if let NewContent::Blob(suffix) = &content {
            of.require_new(suffix)?;
        }
        knowledge::insert(tx, &document, &content).await?;
        tx.audit().about("document", &document.id);
        Ok(document)
    })
    .await
}

/// The bytes that came with the request.
fn bytes_of(input: &NewDocument) -> Result<Vec<u8>> {
    let bytes = match (&input.content, &input.text) {
        (Some(_), Some(_)) => return Err(Error::invalid("text", "send content or text, not both")),
        (None, None) => return Err(Error::invalid("content", "is required, unless there is text")),
        (None, Some(_)) if input.kind == DocumentType::Pdf => {
            return Err(Error::invalid("text", "send a PDF as base64 in content"));
        }
        (None, Some(text)) => text.clone().into_bytes(),
        (Some(content), None) => {
            if content.len() / 4 * 3 > MAX_DOCUMENT_BYTES * 2 {
                return Err(Error::new(ErrorKind::PayloadTooLarge));
            }
            let dense: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let message = "expected the bytes of the document in base64, not a path, a URL or a data: URL";
            STANDARD.decode(dense).map_err(|_| Error::invalid("content", message))?
        }
    };
    if bytes.is_empty() {
        let field = if input.text.is_some() { "text" } else { "content" };
        return Err(Error::invalid(field, "must not be empty"));
    }
    if bytes.len() > MAX_DOCUMENT_BYTES {
        let error = Error::with_message(ErrorKind::PayloadTooLarge, "A document has at most 10 MiB.");
        return Err(error);
    }
    Ok(bytes)
}

/// Stores the bytes of a document: sealed in its row, or in the blob store when they are large.
async fn store_bytes(
    app: &App,
    call: &Call,
    key: &DataKey,
    id: &DocumentId,
    bytes: Vec<u8>,
) -> Result<NewContent> {
    let sealed = knowledge::seal(key, id, &bytes)?;
    if sealed.len() <= MAX_IN_ROW_BYTES {
        return Ok(NewContent::InRow(sealed));
    }
    let suffix = app.new_blob_suffix().await?;
    let put = app.blobs().put_with(call.workspace.as_str(), key, &bytes, suffix.as_ref());
    put.await.map_err(store::Error::from)?;
    Ok(NewContent::Blob(suffix))
}

/// The bytes of a document.
async fn open(
    app: &App,
    workspace: &model::WorkspaceId,
    key: &DataKey,
    found: &DocumentWithContent,
) -> Result<Bytes> {
    let Some(sealed) = &found.content else {
        let bytes = app.blobs().get(workspace.as_str(), key, found.blob()?).await;
        return Ok(bytes.map_err(store::Error::from)?);
    };
    Ok(knowledge::open(key, &found.document.id, sealed)?)
}

/// Reads a document's state.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, id: DocumentId) -> Result<Document> {
    app.read(call, async move |tx| knowledge::find(tx, &id).await?.ok_or_else(missing)).await
}

/// Deletes a document.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, id: DocumentId) -> Result<()> {
    app.write(call, async move |tx| {
        tx.audit().about("document", &id);
        // Its blob is swept when nothing uses it any more.
        if knowledge::delete(tx, &id).await? { Ok(()) } else { Err(missing()) }
    })
    .await
}

/// Downloads a document, byte for byte.
#[crate::boxed]
pub async fn download(app: &App, call: &Call, id: DocumentId) -> Result<Download> {
    let found = app
        .read(call, async move |tx| knowledge::find_with_content(tx, &id).await?.ok_or_else(missing))
        .await?;
    let key = app.data_key(&call.workspace).await?;
    let bytes = open(app, &call.workspace, &key, &found).await?;
    let media_type = found.document.kind.media_type().to_owned();
    Ok(Download { filename: found.document.name, media_type, bytes })
}

/// Checks the stored bytes and the index of a document.
#[crate::boxed]
pub async fn verify(app: &App, call: &Call, id: DocumentId) -> Result<DocumentCheck> {
    let key = memory::require(app, &call.workspace).await?;
    let model = memory::passages::embedder(app)?.model().to_owned();
    let wanted = id.clone();
    let (found, (indexed, waiting)) = app
        .read(call, async move |tx| {
            let found = knowledge::find_with_content(tx, &wanted).await?.ok_or_else(missing)?;
            let indexed = knowledge::indexed(tx, &wanted, &model).await?;
            Ok((found, indexed))
        })
        .await?;
    let document = &found.document;
    let mut problems = Vec::new();
    match open(app, &call.workspace, &key, &found).await {
        Ok(bytes) if BlobHash::of(&bytes).as_str() == document.sha256 => {}
        Ok(_) => problems.push("The stored bytes are others than those that were added.".to_owned()),
        Err(error) => {
            tracing::error!(document = %id, %error, "stored document unreadable; operator action needed");
            problems.push("The stored bytes cannot be read.".to_owned());
        }
    }
    let content_ok = problems.is_empty();
    let expected =
        if document.status == DocumentStatus::Ready { document.chunk_count } else { document.chunks_done };
    let readable = count_readable(app, call, &key, &id).await?;
    if indexed != expected || readable != expected {
        problems
            .push(format!("{expected} pieces are expected; {indexed} are indexed, {readable} can be read."));
    }
    let index_ok = problems.len() == usize::from(!content_ok);
    if document.status == DocumentStatus::Failed {
        problems.push(document.last_error.clone().unwrap_or_default());
    }
    let check = DocumentCheck { ok: problems.is_empty(), content_ok, index_ok, waiting, problems };
    app.write(call, async move |tx| {
        tx.audit().about("document", &id);
        Ok(check)
    })
    .await
}

/// How many passages of a document can be opened.
async fn count_readable(app: &App, call: &Call, key: &DataKey, id: &DocumentId) -> Result<i64> {
    let (mut readable, mut after) = (0, -1);
    loop {
        let id = id.clone();
        let texts =
            app.read(call, async move |tx| Ok(knowledge::texts_after(tx, &id, after, BATCH).await?)).await?;
        let Some((last, _)) = texts.last() else { return Ok(readable) };
        after = *last;
        let opened = texts
            .iter()
            .filter(|(_, text)| memory::passages::open(key, memory::passages::PURPOSE, text).is_ok());
        readable += i64::try_from(opened.count()).unwrap_or_default();
    }
}

/// The error for a missing document.
fn missing() -> Error {
    Error::not_found("Document not found")
}
