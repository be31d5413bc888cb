//! Routes of addresses, remembered for a moment: a sender with many mails asks for the same one again and again.
//!
//! What was remembered is forgotten with the next write of this process that could change a route, so nobody sees an old
//! one who was told of the change. What another process writes beside this one counts after half a second, as it does
//! for callers. Where several nodes write, nothing is remembered.

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

const REMEMBERED: Duration = Duration::from_millis(500);
/// Routes in memory; beyond that remembering starts anew.
const CAPACITY: usize = 1000;
/// Patterns of a policy that is remembered, so that all of them together stay small.
const MAX_PATTERNS: usize = 20;
/// Bytes that a workspace must have left: deliveries change what it stores, and nothing is forgotten because of them.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// Routes that were found a moment ago, by their addresses.
#[derive(Default)]
pub(crate) struct Routes(Mutex<HashMap<String, CachedRoute>>);

struct CachedRoute {
    route: Arc<Route>,
    /// When it was looked for.
    since: Instant,
    /// The number of writes before that.
    changes: u64,
}

impl Routes {
    /// The mailbox that an address leads to. `most` is what a plan lets a workspace store.
    pub(crate) async fn find(
        &self,
        db: &Db,
        address: &str,
        most: impl FnOnce(&Route) -> Option<u64>,
    ) -> Result<Option<Arc<Route>>> {
        let (changes, since) = (db.changes(), Instant::now());
        if let Some(changes) = changes
            && let Some(found) = lock(&self.0).get(address)
            && found.changes == changes
            && found.since.elapsed() < REMEMBERED
        {
            return Ok(Some(found.route.clone()));
        }
        let wanted = address.to_owned();
        let route = db.system_read(async move |tx| system::route(tx, &wanted).await).await?;
        let Some(route) = route.map(Arc::new) else { return Ok(None) };
        if let Some(changes) = changes
            && is_small(&route)
            && has_room(&route, most(&route))
        {
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
