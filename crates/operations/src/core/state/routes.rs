//! Routes of addresses, cached briefly: a sender of many messages asks for the same one again and again.
//!
//! The cache is invalidated by the next write of this process that could change a route, so a caller never sees a
//! route older than its own change. Writes of another process take effect after half a second, as for callers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use store::{
    Db,
    system::{self, Route},
};
use tokio::time::Instant;

use crate::core::{error::Result, lock::lock};

const CACHE_TTL: Duration = Duration::from_millis(500);
/// Maximum cached routes; beyond it the cache is cleared.
const CAPACITY: usize = 1000;
/// Maximum patterns of a cached policy, so that the cache stays small.
const MAX_PATTERNS: usize = 20;
/// Free bytes that a workspace must have: deliveries change its usage without invalidating the cache.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// Recently used routes, by address.
#[derive(Default)]
pub(crate) struct Routes(Mutex<HashMap<String, CachedRoute>>);

struct CachedRoute {
    route: Arc<Route>,
    /// When it was looked up.
    since: Instant,
    /// The number of writes before that.
    changes: u64,
}

impl Routes {
    /// The mailbox that an address leads to. `most` is the storage limit of the workspace's plan.
    pub(crate) async fn find(
        &self,
        db: &Db,
        address: &str,
        most: impl FnOnce(&Route) -> Option<u64>,
    ) -> Result<Option<Arc<Route>>> {
        let (changes, since) = (db.changes(), Instant::now());
        if let Some(found) = lock(&self.0).get(address)
            && found.changes == changes
            && found.since.elapsed() < CACHE_TTL
        {
            return Ok(Some(found.route.clone()));
        }
        let wanted = address.to_owned();
        let route = db.system_read(async move |tx| system::route(tx, &wanted).await).await?;
        let Some(route) = route.map(Arc::new) else { return Ok(None) };
        if is_small(&route) && has_room(&route, most(&route)) {
            let mut all = lock(&self.0);
            if all.len() >= CAPACITY {
                all.clear();
            }
            all.insert(address.to_owned(), CachedRoute { route: route.clone(), since, changes });
        }
        Ok(Some(route))
    }
}

fn is_small(route: &Route) -> bool {
    let policy = &route.settings.sender_policy;
    policy.allow.len() + policy.block.len() <= MAX_PATTERNS
}

fn has_room(route: &Route, most: Option<u64>) -> bool {
    let stored = u64::try_from(route.stored_bytes).unwrap_or_default();
    most.is_none_or(|most| stored.saturating_add(MIN_FREE_BYTES) <= most)
}
