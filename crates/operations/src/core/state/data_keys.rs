//! The data keys of workspaces, unwrapped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use model::WorkspaceId;
use store::vault::DataKey;

use crate::core::lock::lock;

/// Keys in memory; beyond that all are forgotten.
const CAPACITY: usize = 10_000;

/// The keys that were used lately.
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
