//! Indexes documents in the background: a slice of one document, then one of another workspace's, each step
//! committed, so that after a crash the next process continues where it stopped.
//!
//! The text of a document is extracted once and its chunks are stored until they are indexed. A document of another
//! workspace waits for a slice, not for the end of a long one.

use model::{DocumentId, WorkspaceId};
use store::{
    knowledge,
    memory::{self, Owner},
    vault::DataKey,
};
use tracing::Instrument;

use super::open;
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        ports::Urgency,
        supervisor::{ClaimGuard, isolate},
    },
    inbox::extract,
    recall::memory::passages,
};

/// Documents that are processed at the same time, each of another workspace: a slow one blocks no other.
pub const MAX_CONCURRENT: usize = 2;
/// The lease of a document until its first step, which comes after extracting the text, and from one step to the
/// next. A slower node loses it to another one, and nothing else.
const CLAIM_SECONDS: i64 = 60;
const STEP_SECONDS: i64 = 15;
/// The delay after the memory store was unavailable.
const RETRY_SECONDS: i64 = 15;
/// Chunks that are embedded between two commits.
const CHUNKS_PER_COMMIT: usize = 8;
/// Chunks that are embedded before it is another workspace's turn.
const CHUNKS_PER_SLICE: usize = 32;
/// Maximum chunks of a document.
const MAX_CHUNKS: usize = 2_000;

/// Claims the next pending document, and indexes a slice of it. False when there is none.
#[crate::boxed]
pub async fn index_next(app: &App) -> Result<bool> {
    if app.embedder().is_none() {
        return Ok(false);
    }
    let Some((workspace, id)) = claim_next(app).await? else { return Ok(false) };
    // Everything logged here carries the document's id.
    let span = tracing::error_span!("document", document = %id, %workspace);
    index_claimed(app, workspace, id).instrument(span).await?;
    Ok(true)
}

async fn index_claimed(app: &App, workspace: WorkspaceId, id: DocumentId) -> Result<()> {
    let abandoned = (app.clone(), workspace.clone(), id.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, id) = abandoned;
        app.indexing().lock().await.release(&workspace);
        let now = app.now();
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| knowledge::defer(tx, &id, now).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "document claim not released; it will expire");
        }
    });
    let indexed = isolate("documents", index(app, &workspace, &id)).await;
    app.indexing().lock().await.release(&workspace);
    claim.done();
    match indexed {
        Ok(()) => Ok(()),
        Err(error) if is_temporary(&error) => {
            tracing::warn!(%error, "document indexing failed; retrying");
            let until = app.now().plus_seconds(RETRY_SECONDS);
            Ok(app.db().write(&workspace, async move |tx| knowledge::defer(tx, &id, until).await).await?)
        }
        Err(error) => {
            tracing::error!(%error, "document indexing failed; giving up");
            fail(app, &workspace, &id, "The stored document cannot be read.".to_owned()).await
        }
    }
}

/// Claims a document of the workspace whose turn it is.
async fn claim_next(app: &App) -> Result<Option<(WorkspaceId, DocumentId)>> {
    // Locked until the turn is recorded.
    let mut turns = app.indexing().lock().await;
    let now = app.now();
    let until = now.plus_seconds(CLAIM_SECONDS);
    let (after, busy) = (turns.after().to_owned(), turns.workspaces());
    let claim = app.db().system_write(async move |tx| knowledge::claim(tx, now, until, &after, &busy).await);
    let Some((workspace, id)) = claim.await.map_err(Error::from)? else { return Ok(None) };
    turns.serve(&workspace);
    Ok(Some((workspace, id)))
}

/// Releases the claims of a former process. For a store with one node, at start.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| memory::release_claims(tx).await).await?)
}

/// Whether a retry may help.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MemoryUnavailable | ErrorKind::StorageUnavailable | ErrorKind::Overloaded
    )
}

async fn fail(app: &App, workspace: &WorkspaceId, id: &DocumentId, reason: String) -> Result<()> {
    let (id, now) = (id.clone(), app.now());
    Ok(app.db().write(workspace, async move |tx| knowledge::fail(tx, &id, &reason, now).await).await?)
}

/// Indexes a slice of a document.
async fn index(app: &App, workspace: &WorkspaceId, id: &DocumentId) -> Result<()> {
    let wanted = id.clone();
    let read = app.db().read(workspace, async move |tx| knowledge::find_pieces(tx, &wanted).await);
    let Some((sealed, done)) = read.await.map_err(Error::from)? else { return Ok(()) };
    let key = app.data_key(workspace).await?;
    let (chunks, done) = match sealed {
        Some(sealed) => (knowledge::open_pieces(&key, id, &sealed)?, done),
        None => match extract_chunks(app, workspace, &key, id).await? {
            Some(begun) => begun,
            None => return Ok(()),
        },
    };
    let mut done = usize::try_from(done).unwrap_or_default();
    let end = chunks.len().min(done + CHUNKS_PER_SLICE);
    while done < end {
        let some = &chunks[done..end.min(done + CHUNKS_PER_COMMIT)];
        if !index_some(app, workspace, id, done, some).await? {
            // It was deleted, or another node took it over.
            return Ok(());
        }
        done += some.len();
    }
    if done < chunks.len() {
        let (id, now) = (id.clone(), app.now());
        app.db().write(workspace, async move |tx| knowledge::defer(tx, &id, now).await).await?;
    }
    Ok(())
}

/// Extracts the text of a document and stores its chunks. `None` when it failed or is gone; else how many are done.
async fn extract_chunks(
    app: &App,
    workspace: &WorkspaceId,
    key: &DataKey,
    id: &DocumentId,
) -> Result<Option<(Vec<String>, i64)>> {
    let wanted = id.clone();
    let read = app.db().read(workspace, async move |tx| knowledge::find_with_content(tx, &wanted).await);
    let Some(found) = read.await.map_err(Error::from)? else { return Ok(None) };
    let bytes = open(app, workspace, key, &found).await?;
    let kind = found.document.kind;
    let extracted = tokio::task::spawn_blocking(move || extract::text(kind, &bytes)).await;
    // A parser panicked.
    let text = match extracted.unwrap_or_else(|_| Err("The document is damaged.".to_owned())) {
        Ok(text) => text,
        Err(reason) => return fail(app, workspace, id, reason).await.map(|()| None),
    };
    let chunks = passages::cut(app, text, MAX_CHUNKS + 1).await?;
    let refused = match chunks.len() {
        0 => Some("This document has no text.".to_owned()),
        1..=MAX_CHUNKS => None,
        _ => Some(format!("The text of the document has more than {MAX_CHUNKS} pieces.")),
    };
    if let Some(reason) = refused {
        return fail(app, workspace, id, reason).await.map(|()| None);
    }
    let (id, now) = (id.clone(), app.now());
    let count = i64::try_from(chunks.len()).unwrap_or(i64::MAX);
    let sealed = knowledge::seal_pieces(key, &id, &chunks)?;
    let begun = app
        .db()
        .write(workspace, async move |tx| knowledge::begin(tx, &id, (count, &sealed), now).await)
        .await?;
    Ok(begun.map(|done| (chunks, done)))
}

/// Indexes some chunks of a document; false when this node has lost it.
async fn index_some(
    app: &App,
    workspace: &WorkspaceId,
    id: &DocumentId,
    done: usize,
    chunks: &[String],
) -> Result<bool> {
    let key = app.data_key(workspace).await?;
    let first = i64::try_from(done).unwrap_or(i64::MAX);
    let passages = passages::make(app, &key, chunks.to_vec(), first, Urgency::Soon).await?;
    let last = first + i64::try_from(passages.len()).unwrap_or_default();
    let (id, now) = (id.clone(), app.now());
    let until = now.plus_seconds(STEP_SECONDS);
    let ours = app
        .db()
        .write(workspace, async move |tx| {
            if !knowledge::advance(tx, &id, (first, last), (now, until)).await? {
                return Ok(false);
            }
            memory::insert_passages(tx, &Owner::Document(id), &passages).await?;
            Ok::<_, store::Error>(true)
        })
        .await?;
    metrics::counter!("memory_chunks_total").increment(chunks.len() as u64);
    Ok(ours)
}
