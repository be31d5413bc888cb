//! Callers who were recognised, remembered for half a second, and those whose calls wait.
//!
//! The short memory is what makes a revocation take effect on every node within a second, without messages between
//! them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use model::{ApiKeyId, Timestamp, WorkspaceId};
use tokio::{sync::watch, time::Instant};

use crate::core::{
    caller::{Caller, SecretHash},
    lock::lock,
};

const REMEMBERED: Duration = Duration::from_millis(500);
/// Entries kept before the old ones are thrown out.
const CAPACITY: usize = 50_000;

/// Remembers callers for a moment.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) remembered: Mutex<HashMap<SecretHash, (Arc<Caller>, Instant)>>,
    pub(crate) used: Mutex<HashMap<(WorkspaceId, ApiKeyId), Timestamp>>,
    /// One look-up of a secret at a time: the others find what it found.
    pub(crate) turns: [tokio::sync::Mutex<()>; 32],
    pub(crate) waiting: WaitingCallers,
}

impl Credentials {
    pub(crate) fn recall(&self, hash: &[u8; 32]) -> Option<Arc<Caller>> {
        let remembered = lock(&self.remembered);
        let (caller, since) = remembered.get(hash)?;
        (since.elapsed() < REMEMBERED).then(|| caller.clone())
    }

    pub(crate) fn remember(&self, hash: [u8; 32], caller: Arc<Caller>, since: Instant) {
        let mut remembered = lock(&self.remembered);
        if remembered.len() >= CAPACITY {
            remembered.retain(|_, (_, since)| since.elapsed() < REMEMBERED);
            if remembered.len() >= CAPACITY {
                remembered.clear();
            }
        }
        remembered.insert(hash, (caller, since));
    }

    /// Forgets everybody, after a change on this node that must show at once.
    pub(crate) fn forget(&self) {
        lock(&self.remembered).clear();
    }

    pub(crate) fn note_use(&self, workspace: &WorkspaceId, key: &ApiKeyId, now: Timestamp) {
        let minute = now.minute();
        let mut used = lock(&self.used);
        if used.len() < CAPACITY {
            used.entry((workspace.clone(), key.clone())).and_modify(|at| *at = minute).or_insert(minute);
        }
    }
}

/// A credential in the workspace where somebody waits with it.
pub(crate) type WaitingCredential = (SecretHash, WorkspaceId);

/// Those who wait.
#[derive(Default)]
pub(crate) struct WaitingCallers(pub(crate) Mutex<WaitList>);

#[derive(Default)]
pub(crate) struct WaitList {
    pub(crate) places: HashMap<WaitingCredential, WaitingCaller>,
    /// Whether there is a task that looks after them.
    pub(crate) looking: bool,
}

pub(crate) struct WaitingCaller {
    pub(crate) caller: Arc<Caller>,
    pub(crate) over: watch::Sender<bool>,
}
