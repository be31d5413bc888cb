//! Authenticated callers, cached for half a second, and the callers of waiting calls. The short cache lifetime makes
//! a revocation take effect on every node within a second, without messages between nodes.

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

const CACHE_TTL: Duration = Duration::from_millis(500);
/// Maximum entries; beyond it old ones are evicted.
const CAPACITY: usize = 50_000;

/// Caches authenticated callers.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) cached: Mutex<HashMap<SecretHash, (Arc<Caller>, Instant)>>,
    pub(crate) used: Mutex<HashMap<(WorkspaceId, ApiKeyId), Timestamp>>,
    /// One look-up of a secret at a time: the others use its result.
    pub(crate) turns: [tokio::sync::Mutex<()>; 32],
    pub(crate) waiting: WaitingCallers,
}

impl Credentials {
    pub(crate) fn find(&self, hash: &[u8; 32]) -> Option<Arc<Caller>> {
        let cached = lock(&self.cached);
        let (caller, since) = cached.get(hash)?;
        (since.elapsed() < CACHE_TTL).then(|| caller.clone())
    }

    pub(crate) fn keep(&self, hash: [u8; 32], caller: Arc<Caller>, since: Instant) {
        let mut cached = lock(&self.cached);
        if cached.len() >= CAPACITY {
            cached.retain(|_, (_, since)| since.elapsed() < CACHE_TTL);
            if cached.len() >= CAPACITY {
                cached.clear();
            }
        }
        cached.insert(hash, (caller, since));
    }

    /// Clears the cache, after a change on this node that must take effect at once.
    pub(crate) fn forget(&self) {
        lock(&self.cached).clear();
    }

    pub(crate) fn note_use(&self, workspace: &WorkspaceId, key: &ApiKeyId, now: Timestamp) {
        let minute = now.minute();
        let mut used = lock(&self.used);
        if used.len() < CAPACITY {
            used.entry((workspace.clone(), key.clone())).and_modify(|at| *at = minute).or_insert(minute);
        }
    }
}

/// A credential in one of its states, and the workspace where a call waits.
pub(crate) type WaitingCredential = (SecretHash, WorkspaceId, i64);

/// Why a waiting call is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revocation {
    /// Its credential is no longer valid.
    Revoked,
    /// Its key may do less than before.
    Changed,
}

/// The callers of waiting calls.
#[derive(Default)]
pub(crate) struct WaitingCallers(pub(crate) Mutex<WaitList>);

#[derive(Default)]
pub(crate) struct WaitList {
    pub(crate) entries: HashMap<WaitingCredential, WaitingCaller>,
    /// Whether the polling task runs.
    pub(crate) polling: bool,
}

pub(crate) struct WaitingCaller {
    pub(crate) caller: Arc<Caller>,
    pub(crate) revoked: watch::Sender<Option<Revocation>>,
}
