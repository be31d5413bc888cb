//! The idempotency keys whose calls run on this node.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use model::WorkspaceId;

use crate::core::lock::lock;

type Entry = (WorkspaceId, String);

/// The running keys.
#[derive(Default)]
pub(crate) struct RunningKeys(Mutex<HashSet<Entry>>);

impl RunningKeys {
    /// Marks a key as running until the guard is dropped. `None` when it runs already.
    pub(crate) fn begin(self: &Arc<Self>, workspace: &WorkspaceId, key: &str) -> Option<RunningKey> {
        let entry = (workspace.clone(), key.to_owned());
        lock(&self.0).insert(entry.clone()).then(|| RunningKey { all: self.clone(), entry })
    }
}

/// An idempotency key that runs on this node.
pub struct RunningKey {
    all: Arc<RunningKeys>,
    entry: Entry,
}

impl Drop for RunningKey {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.entry);
    }
}
