//! Cache of the unwrapped data keys of workspaces.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use model::WorkspaceId;
use store::vault::DataKey;

use crate::core::lock::lock;

/// Maximum cached keys; beyond it the cache is cleared.
const CAPACITY: usize = 10_000;

/// Recently used keys.
#[derive(Default)]
pub(crate) struct DataKeys(Mutex<HashMap<WorkspaceId, Arc<DataKey>>>);

impl DataKeys {
    pub(crate) fn find(&self, workspace: &WorkspaceId) -> Option<Arc<DataKey>> {
        lock(&self.0).get(workspace).cloned()
    }

    pub(crate) fn keep(&self, workspace: &WorkspaceId, key: Arc<DataKey>) {
        let mut keys = lock(&self.0);
        if keys.len() >= CAPACITY {
            keys.clear();
        }
        keys.insert(workspace.clone(), key);
    }
}
