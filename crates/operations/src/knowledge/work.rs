//! Indexes documents in the background: one at a time in a process, some pieces at a time, each step durable, so that
//! whatever ends the process loses nothing and the next one goes on where it was.

use model::{DocumentId, WorkspaceId};
use store::{
    knowledge,
    memory::{self, Owner},
};

use super::{extract, open};
use crate::{App, Error, ErrorKind, Result, memory::passages, outside::Urgency};

/// How long a document is taken on for until its first step, which comes after all of it was read, and from one step to the
/// next. A node that is slower than that loses it to another one, and nothing else.
const CLAIM_SECONDS: i64 = 60;
const STEP_SECONDS: i64 = 15;
/// How long a document waits after the memory store could not be used.
const PAUSE_SECONDS: i64 = 15;
/// Pieces that are embedded between two commits.
const STEP: usize = 8;
/// Pieces of a document: more than ten megabytes of text give.
const MOST_PIECES: usize = 100_000;

/// Takes on a document that waits, and indexes it to its end. False when none waits.
pub async fn index_next(app: &App) -> Result<bool> {
    if app.embedder().is_none() {
        return Ok(false);
    }
    let now = app.now();
    let until = now.plus_seconds(CLAIM_SECONDS);
    let claim = app.db().system_write(async move |tx| knowledge::claim(tx, now, until).await);
    let Some((workspace, id)) = claim.await.map_err(Error::from)? else { return Ok(false) };
    match index(app, &workspace, &id).await {
        Ok(()) => {}
        Err(error) if is_passing(&error) => {
            tracing::warn!(%workspace, document = %id, %error, "a document will be indexed later");
            let until = app.now().plus_seconds(PAUSE_SECONDS);
            app.db().write(&workspace, async move |tx| knowledge::put_off(tx, &id, until).await).await?;
        }
        Err(error) => {
            tracing::error!(%workspace, document = %id, %error, "a document cannot be indexed");
            fail(app, &workspace, &id, "The stored document cannot be read.".to_owned()).await?;
        }
    }
    Ok(true)
}

/// Gives back what this process had taken on before it ended. For a store with one node, when it starts.
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

async fn index(app: &App, workspace: &WorkspaceId, id: &DocumentId) -> Result<()> {
    let wanted = id.clone();
    let read = app.db().read(workspace, async move |tx| knowledge::find_with_content(tx, &wanted).await);
    let Some(found) = read.await.map_err(Error::from)? else { return Ok(()) };
    let key = app.data_key(workspace).await?;
    let bytes = open(app, workspace, &key, &found).await?;
    let kind = found.document.kind;
    let extracted = tokio::task::spawn_blocking(move || extract::text(kind, &bytes)).await;
    // What panicked here was a parser.
    let text = match extracted.unwrap_or_else(|_| Err("The document is damaged.".to_owned())) {
        Ok(text) => text,
        Err(reason) => return fail(app, workspace, id, reason).await,
    };
    let pieces = passages::cut(app, text, MOST_PIECES).await?;
    if pieces.is_empty() {
        return fail(app, workspace, id, "There is no text in this document.".to_owned()).await;
    }
    let (wanted, count, now) = (id.clone(), i64::try_from(pieces.len()).unwrap_or(i64::MAX), app.now());
    let begun =
        app.db().write(workspace, async move |tx| knowledge::begin(tx, &wanted, count, now).await).await?;
    let Some(done) = begun else { return Ok(()) };
    let mut done = usize::try_from(done).unwrap_or_default();
    while done < pieces.len() {
        let some = &pieces[done..pieces.len().min(done + STEP)];
        if !index_some(app, workspace, id, done, some).await? {
            // It was deleted, or somebody else took it over.
            return Ok(());
        }
        done += some.len();
    }
    Ok(())
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
