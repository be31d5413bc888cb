//! Indexes documents in the background: a slice of one document, then one of another workspace's, each step durable, so
//! that whatever ends the process loses nothing and the next one goes on where it was.
//!
//! The text of a document is read once and its pieces are kept until they are indexed. A document of another workspace
//! waits for a slice, not for the end of a long one.

use model::{DocumentId, WorkspaceId};
use store::{
    knowledge,
    memory::{self, Owner},
    vault::DataKey,
};
use tracing::Instrument;

use super::{extract, open};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        ports::Urgency,
        supervisor::{ClaimGuard, isolate},
    },
    recall::memory::passages,
};

/// Documents that are worked on at the same time, each of another workspace: one that takes long to read stops nobody.
pub const MAX_CONCURRENT: usize = 2;
/// How long a document is taken on for until its first step, which comes after all of it was read, and from one step to the
/// next. A node that is slower than that loses it to another one, and nothing else.
const CLAIM_SECONDS: i64 = 60;
const STEP_SECONDS: i64 = 15;
/// How long a document waits after the memory store could not be used.
const PAUSE_SECONDS: i64 = 15;
/// Pieces that are embedded between two commits.
const STEP: usize = 8;
/// Pieces that are embedded before it is another workspace's turn.
const SLICE: usize = 32;
/// Pieces of a document.
const MAX_PIECES: usize = 2_000;

/// Takes on the next document that waits, and indexes a slice of it. False when none waits.
#[crate::boxed]
pub async fn index_next(app: &App) -> Result<bool> {
    if app.embedder().is_none() {
        return Ok(false);
    }
    let Some((workspace, id)) = take_on(app).await? else { return Ok(false) };
    // Whatever is logged on the way stands under the document's id.
    let span = tracing::error_span!("document", document = %id, %workspace);
    work_on(app, workspace, id).instrument(span).await?;
    Ok(true)
}

async fn work_on(app: &App, workspace: WorkspaceId, id: DocumentId) -> Result<()> {
    let abandoned = (app.clone(), workspace.clone(), id.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, id) = abandoned;
        app.indexing().lock().await.release(&workspace);
        let now = app.now();
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| knowledge::put_off(tx, &id, now).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "claim on a document not released; it expires by itself");
        }
    });
    let indexed = isolate("documents", index(app, &workspace, &id)).await;
    app.indexing().lock().await.release(&workspace);
    claim.done();
    match indexed {
        Ok(()) => Ok(()),
        Err(error) if is_passing(&error) => {
            tracing::warn!(%error, "a document will be indexed later");
            let until = app.now().plus_seconds(PAUSE_SECONDS);
            Ok(app.db().write(&workspace, async move |tx| knowledge::put_off(tx, &id, until).await).await?)
        }
        Err(error) => {
            tracing::error!(%error, "a document cannot be indexed");
            fail(app, &workspace, &id, "The stored document cannot be read.".to_owned()).await
        }
    }
}

/// Takes on a document of the workspace whose turn it is.
async fn take_on(app: &App) -> Result<Option<(WorkspaceId, DocumentId)>> {
    // Held until it is known whose turn it was.
    let mut turns = app.indexing().lock().await;
    let now = app.now();
    let until = now.plus_seconds(CLAIM_SECONDS);
    let (after, served) = (turns.after().to_owned(), turns.served());
    let claim =
        app.db().system_write(async move |tx| knowledge::claim(tx, now, until, &after, &served).await);
    let Some((workspace, id)) = claim.await.map_err(Error::from)? else { return Ok(None) };
    turns.serve(&workspace);
    Ok(Some((workspace, id)))
}

/// Gives back what this process had taken on before it ended. For a store with one node, when it starts.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| memory::release_claims(tx).await).await?)
}

/// Whether something may work later.
fn is_passing(error: &Error) -> bool {
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
    let (pieces, done) = match sealed {
        Some(sealed) => (knowledge::open_pieces(&key, id, &sealed)?, done),
        None => match read_pieces(app, workspace, &key, id).await? {
            Some(begun) => begun,
            None => return Ok(()),
        },
    };
    let mut done = usize::try_from(done).unwrap_or_default();
    let end = pieces.len().min(done + SLICE);
    while done < end {
        let some = &pieces[done..end.min(done + STEP)];
        if !index_some(app, workspace, id, done, some).await? {
            // It was deleted, or somebody else took it over.
            return Ok(());
        }
        done += some.len();
    }
    if done < pieces.len() {
        let (id, now) = (id.clone(), app.now());
        app.db().write(workspace, async move |tx| knowledge::put_off(tx, &id, now).await).await?;
    }
    Ok(())
}

/// Reads the text of a document and keeps its pieces. Nothing when it has failed or is gone; else how many are done.
async fn read_pieces(
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
    // What panicked here was a parser.
    let text = match extracted.unwrap_or_else(|_| Err("The document is damaged.".to_owned())) {
        Ok(text) => text,
        Err(reason) => return fail(app, workspace, id, reason).await.map(|()| None),
    };
    let pieces = passages::cut(app, text, MAX_PIECES + 1).await?;
    let refused = match pieces.len() {
        0 => Some("There is no text in this document.".to_owned()),
        1..=MAX_PIECES => None,
        _ => Some(format!("The text of the document has more than {MAX_PIECES} pieces.")),
    };
    if let Some(reason) = refused {
        return fail(app, workspace, id, reason).await.map(|()| None);
    }
    let (id, now) = (id.clone(), app.now());
    let count = i64::try_from(pieces.len()).unwrap_or(i64::MAX);
    let sealed = knowledge::seal_pieces(key, &id, &pieces)?;
    let begun = app
        .db()
        .write(workspace, async move |tx| knowledge::begin(tx, &id, (count, &sealed), now).await)
        .await?;
    Ok(begun.map(|done| (pieces, done)))
}

/// Indexes some pieces of a document; false when it is not ours any more.
async fn index_some(
    app: &App,
    workspace: &WorkspaceId,
    id: &DocumentId,
    done: usize,
    pieces: &[String],
) -> Result<bool> {
    let key = app.data_key(workspace).await?;
    let first = i64::try_from(done).unwrap_or(i64::MAX);
    let passages = passages::make(app, &key, pieces.to_vec(), first, Urgency::Soon).await?;
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
    metrics::counter!("memory_chunks_total").increment(pieces.len() as u64);
    Ok(ours)
}
