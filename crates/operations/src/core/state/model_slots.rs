//! The running model requests of each workspace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use model::WorkspaceId;
use tokio::sync::Semaphore;

use crate::core::lock::lock;

/// Maximum workspaces in memory; beyond it idle ones are dropped.
const CAPACITY: usize = 1_000;

/// The slots of each workspace.
#[derive(Default)]
pub(crate) struct ModelSlots(Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>);

impl ModelSlots {
    pub(crate) fn of(&self, workspace: &WorkspaceId, limit: usize) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        if all.len() >= CAPACITY {
            all.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        all.entry(workspace.clone()).or_insert_with(|| Arc::new(Semaphore::new(limit))).clone()
    }
}
