//! Bringing the index of a workspace up to date with the store.

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

/// Passages that are read from the store at once.
const STEP: i64 = 5000;
/// About what a passage takes in memory, for bounding one index.
const PASSAGE_BYTES: usize = 800;

impl Indexes {
    /// The index of a workspace as the store has it now.
    pub(crate) async fn get(&self, app: &App, workspace: &WorkspaceId) -> Result<Arc<WorkspaceIndex>> {
        let embedder = passages::embedder(app)?;
        let fresh = || Arc::new(WorkspaceIndex::new(embedder.dimension(), embedder.model()));
        let held = {
            let mut all = lock(&self.held);
            let held = all.entry(workspace.clone()).or_insert_with(fresh);
            // What is gone takes room and time.
            if held.read(|inner| inner.index.is_sparse()) {
                *held = fresh();
            }
            held.clone()
        };
        held.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.refresh(app, workspace, &held).await?;
        self.make_room(app.settings().memory.cache_bytes, workspace);
        Ok(held)
    }

    async fn refresh(&self, app: &App, workspace: &WorkspaceId, held: &Arc<WorkspaceIndex>) -> Result<()> {
        let last =
            app.db().read(workspace, async |tx| memory::last_number(tx).await).await.map_err(Error::from)?;
        if held.read(|inner| inner.version.is_some_and(|version| version >= last)) {
            return Ok(());
        }
        let _alone = held.refreshing.lock().await;
        let most = i64::try_from(app.settings().memory.cache_bytes / 2 / PASSAGE_BYTES).unwrap_or(i64::MAX);
        let mut after = match held.read(|inner| inner.version) {
            Some(version) => version,
            // More than fits is not looked at: the newest count.
            None => app.db().read(workspace, async move |tx| memory::start_of_latest(tx, most).await).await?,
        };
        while after < last {
            let rows = app
                .db()
                .read(workspace, async move |tx| memory::changes_after(tx, after, STEP).await)
                .await?;
            let Some(newest) = rows.last().map(|row| row.version) else { break };
            after = newest;
            let held = held.clone();
            let add = move || held.change(|inner| rows.iter().for_each(|row| inner.add(row)));
            tokio::task::spawn_blocking(add).await.map_err(Error::internal)?;
        }
        // Numbers may have no row any more.
        held.change(|inner| inner.version = Some(after.max(last)));
        Ok(())
    }
}
