//! Routes of addresses, [cached briefly](super::recent).

use std::sync::Arc;

use store::{
    Db, addresses,
    system::{self, Route},
};

use super::recent::{Moment, Recent};
use crate::core::error::Result;

/// Maximum patterns of a cached policy, so that the cache stays small.
const MAX_PATTERNS: usize = 20;
/// Free bytes that a workspace must have: deliveries change its usage without invalidating the cache.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// Recently used routes, by address.
#[derive(Default)]
pub(crate) struct Routes {
    mailboxes: Recent<Arc<Route>>,
    foreign: Recent<bool>,
}

impl Routes {
    /// The mailbox that an address leads to. `most` is the storage limit of the workspace's plan.
    pub(crate) async fn find(
        &self,
        db: &Db,
        address: &str,
        most: impl FnOnce(&Route) -> Option<u64>,
    ) -> Result<Option<Arc<Route>>> {
        let now = Moment::now(db);
        if let Some(found) = self.mailboxes.find(now, address) {
            return Ok(Some(found));
        }
        let wanted = address.to_owned();
        let route = db.system_read(async move |tx| system::route(tx, &wanted).await).await?;
        let Some(route) = route.map(Arc::new) else { return Ok(None) };
        if is_small(&route) && has_room(&route, most(&route)) {
            self.mailboxes.keep(now, address, route.clone());
        }
        Ok(Some(route))
    }

    /// Whether an address, without its tag, certainly belongs to another server.
    pub(crate) async fn is_foreign(&self, db: &Db, address: &str, domain: &str) -> Result<bool> {
        let now = Moment::now(db);
        if let Some(found) = self.foreign.find(now, address) {
            return Ok(found);
        }
        let (bare, domain) = (address.to_owned(), domain.to_owned());
        let read = db.system_read(async move |tx| addresses::is_foreign(tx, &bare, &domain).await);
        let is_foreign = read.await?;
        self.foreign.keep(now, address, is_foreign);
        Ok(is_foreign)
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
