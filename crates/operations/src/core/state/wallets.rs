//! Wallets that showed themselves, remembered for half a second as other callers are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use model::WorkspaceId;
use pay::Address;
use tokio::time::Instant;

use crate::core::lock::lock;

const REMEMBERED: Duration = Duration::from_millis(500);
/// Wallets remembered before all are forgotten.
const CAPACITY: usize = 20_000;

/// A wallet that showed itself.
#[derive(Clone)]
pub struct Wallet {
    /// Its address.
    pub address: Address,
    /// Its workspace, once it has one.
    pub workspace: Option<WorkspaceId>,
    /// Its mailboxes that are read with a sign-in only, by all their names.
    pub(crate) siwx_only: Arc<Vec<[String; 3]>>,
}

/// Remembers wallets for a moment.
#[derive(Default)]
pub struct Wallets {
    remembered: Mutex<HashMap<Address, (Wallet, Instant)>>,
}

impl Wallets {
    /// Forgets everybody, after a change on this node that must show at once.
    pub(crate) fn forget(&self) {
        lock(&self.remembered).clear();
    }

    pub(crate) fn recall(&self, address: Address) -> Option<Wallet> {
        let remembered = lock(&self.remembered);
        let (wallet, since) = remembered.get(&address)?;
        (since.elapsed() < REMEMBERED).then(|| wallet.clone())
    }

    pub(crate) fn remember(&self, wallet: Wallet, since: Instant) {
        let mut remembered = lock(&self.remembered);
        if remembered.len() >= CAPACITY {
            remembered.clear();
        }
        remembered.insert(wallet.address, (wallet, since));
    }
}
