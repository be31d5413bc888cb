//! The data keys of workspaces.

use std::sync::Arc;

use model::WorkspaceId;
use store::vault::DataKey;

use super::App;
use crate::core::error::{Error, Result};

impl App {
    /// The data key of a workspace.
    #[crate::boxed]
    pub async fn data_key(&self, workspace: &WorkspaceId) -> Result<Arc<DataKey>> {
        if let Some(key) = self.0.data_keys.find(workspace) {
            return Ok(key);
        }
        let found = self.db().read(workspace, async |tx| store::workspaces::find(tx).await).await?;
        let record = found.ok_or_else(|| Error::not_found("Workspace not found"))?;
        let key =
            self.master_key().unwrap_key(workspace.as_str(), &record.data_key).map_err(store::Error::from)?;
        let key = Arc::new(key);
        self.0.data_keys.keep(workspace, key.clone());
        Ok(key)
    }
}
