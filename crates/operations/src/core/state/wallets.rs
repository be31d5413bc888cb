//! Authenticated wallets, cached for half a second like other callers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use model::WorkspaceId;
use pay::Address;
use tokio::time::Instant;

use crate::core::lock::lock;

const CACHE_TTL: Duration = Duration::from_millis(500);
/// Maximum cached wallets; beyond it the cache is cleared.
const CAPACITY: usize = 20_000;

/// An authenticated wallet.
#[derive(Clone)]
pub struct Wallet {
    /// Its address.
    pub address: Address,
    /// Its workspace, once it has one.
    pub workspace: Option<WorkspaceId>,
    /// Its mailboxes that can be read with a sign-in only, under all their names.
    pub(crate) siwx_only: Arc<Vec<[String; 3]>>,
}

/// Caches authenticated wallets.
#[derive(Default)]
pub struct Wallets {
    cached: Mutex<HashMap<Address, (Wallet, Instant)>>,
}

impl Wallets {
    /// Clears the cache, after a change on this node that must take effect at once.
    pub(crate) fn forget(&self) {
        lock(&self.cached).clear();
    }

    pub(crate) fn find(&self, address: Address) -> Option<Wallet> {
        let cached = lock(&self.cached);
        let (wallet, since) = cached.get(&address)?;
        (since.elapsed() < CACHE_TTL).then(|| wallet.clone())
    }

    pub(crate) fn keep(&self, wallet: Wallet, since: Instant) {
        let mut cached = lock(&self.cached);
        if cached.len() >= CAPACITY {
            cached.clear();
        }
        cached.insert(wallet.address, (wallet, since));
    }
}
