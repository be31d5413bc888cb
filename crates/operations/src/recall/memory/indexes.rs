//! Refreshes the in-memory index of a workspace from the store.

use std::sync::{Arc, atomic::Ordering};

use model::WorkspaceId;
use store::memory;

use super::passages;
use crate::core::{
    app::App,
    error::{Error, Result},
    lock::lock,
    state::indexes::{Indexes, WorkspaceIndex},
};

/// Passages per read from the store.
const BATCH: i64 = 5000;
/// About what a passage takes in memory, to bound one index.
const PASSAGE_BYTES: usize = 800;

impl Indexes {
    /// The current index of a workspace.
    pub(crate) async fn get(&self, app: &App, workspace: &WorkspaceId) -> Result<Arc<WorkspaceIndex>> {
        let embedder = passages::embedder(app)?;
        let fresh = || Arc::new(WorkspaceIndex::new(embedder.dimension(), embedder.model()));
        let index = {
            let mut all = lock(&self.loaded);
            let index = all.entry(workspace.clone()).or_insert_with(fresh);
            // Deleted entries take space and time.
            if index.read(|inner| inner.index.is_sparse()) {
                *index = fresh();
            }
            index.clone()
        };
        index.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.refresh(app, workspace, &index).await?;
        self.evict(app.settings().memory.cache_bytes, workspace);
        Ok(index)
    }

    async fn refresh(&self, app: &App, workspace: &WorkspaceId, index: &Arc<WorkspaceIndex>) -> Result<()> {
        let last =
            app.db().read(workspace, async |tx| memory::last_number(tx).await).await.map_err(Error::from)?;
        if index.read(|inner| inner.version.is_some_and(|version| version >= last)) {
            return Ok(());
        }
        let _alone = index.refreshing.lock().await;
        let limit = i64::try_from(app.settings().memory.cache_bytes / 2 / PASSAGE_BYTES).unwrap_or(i64::MAX);
        let mut after = match index.read(|inner| inner.version) {
            Some(version) => version,
            // The oldest that do not fit are left out.
            None => {
                app.db().read(workspace, async move |tx| memory::start_of_latest(tx, limit).await).await?
            }
        };
        while after < last {
            let rows = app
                .db()
                .read(workspace, async move |tx| memory::changes_after(tx, after, BATCH).await)
                .await?;
            let Some(newest) = rows.last().map(|row| row.version) else { break };
            after = newest;
            let index = index.clone();
            let add = move || index.change(|inner| rows.iter().for_each(|row| inner.add(row)));
            tokio::task::spawn_blocking(add).await.map_err(Error::internal)?;
        }
        // Numbers may have no row any more.
        index.change(|inner| inner.version = Some(after.max(last)));
        Ok(())
    }
}
