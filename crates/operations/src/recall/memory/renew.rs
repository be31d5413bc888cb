//! Re-embeds passages of another model, after the configuration was changed.

use model::WorkspaceId;
use store::memory;

use super::passages;
use crate::core::{app::App, error::Result, ports::Urgency};

/// Passages that are embedded between two commits.
const BATCH: i64 = 8;
/// Workspaces per round.
const MAX_WORKSPACES: i64 = 100;

/// Re-embeds some passages, and returns how many.
#[crate::boxed]
pub async fn re_embed_some(app: &App) -> Result<u64> {
    let Some(model) = app.embedder().map(|embedder| embedder.model().to_owned()) else { return Ok(0) };
    let current = model.clone();
    let (workspaces, waiting) = app
        .db()
        .system_read(async move |tx| {
            let workspaces = memory::outdated_workspaces(tx, &current, MAX_WORKSPACES).await?;
            let waiting =
                if workspaces.is_empty() { 0 } else { memory::count_outdated(tx, &current).await? };
            Ok::<_, store::Error>((workspaces, waiting))
        })
        .await?;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    metrics::gauge!("memory_passages_waiting").set(waiting as f64);
    let mut renewed = 0;
    for workspace in workspaces {
        renewed += re_embed_in(app, &workspace, &model).await?;
    }
    Ok(renewed)
}

async fn re_embed_in(app: &App, workspace: &WorkspaceId, model: &str) -> Result<u64> {
    let model = model.to_owned();
    let old = app.db().read(workspace, async move |tx| memory::outdated(tx, &model, BATCH).await).await?;
    if old.is_empty() {
        return Ok(0);
    }
    let key = app.data_key(workspace).await?;
    let texts = old
        .iter()
        .map(|old| passages::open(&key, passages::PURPOSE, &old.text))
        .collect::<Result<Vec<_>>>()?;
    let vectors = passages::embed(app, texts, Urgency::Idle).await?;
    let count = old.len() as u64;
    let mut ready = Vec::with_capacity(old.len());
    for (old, vector) in old.into_iter().zip(&vectors) {
        ready.push((old, passages::stored(app, vector)?));
    }
    app.db()
        .write(workspace, async move |tx| {
            for (old, embedding) in &ready {
                memory::replace_vector(tx, old, embedding).await?;
            }
            Ok::<_, store::Error>(())
        })
        .await?;
    metrics::counter!("memory_passages_renewed_total").increment(count);
    Ok(count)
}
