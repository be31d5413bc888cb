//! Rate limits for unauthenticated callers, by client address, and for wallets.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use model::Timestamp;
use operations::{Error, ErrorKind, Result};

/// Maximum addresses remembered per minute; above that the limiter starts over instead of growing.
const MAX_REMEMBERED_ADDRESSES: usize = 100_000;

/// Counts requests by client address.
pub(crate) struct AddressLimiter(Limiter<IpAddr>);

impl AddressLimiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Limiter::new(limit))
    }

    /// Refuses an address that is over its limit, without counting.
    pub(crate) fn check(&self, address: IpAddr, now: Timestamp) -> Result<()> {
        self.0.check(network(address), now)
    }

    /// Counts a request, and refuses it if the address is over its limit.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) -> Result<()> {
        self.0.count(network(address), now)
    }
}

/// Counts requests in fixed windows of one minute.
pub(crate) struct Limiter<K> {
    limit: u64,
    window: Mutex<(Timestamp, HashMap<K, u64>)>,
}

impl<K: Eq + Hash> Limiter<K> {
    /// A limiter for so many requests per minute.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, window: Mutex::new((Timestamp::from_micros(0), HashMap::new())) }
    }

    fn check(&self, caller: K, now: Timestamp) -> Result<()> {
        self.with_count(caller, now, |count| *count < self.limit)
    }

    /// Counts a request, and refuses it if the caller is over its limit.
    pub(crate) fn count(&self, caller: K, now: Timestamp) -> Result<()> {
        self.with_count(caller, now, |count| {
            *count += 1;
            *count <= self.limit
        })
    }

    fn with_count(&self, caller: K, now: Timestamp, allowed: impl FnOnce(&mut u64) -> bool) -> Result<()> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let began = now.minute();
        if window.0 != began || window.1.len() >= MAX_REMEMBERED_ADDRESSES {
            *window = (began, HashMap::new());
        }
        let count = window.1.entry(caller).or_default();
        if allowed(count) {
            return Ok(());
        }
        let seconds = now.seconds_until(began.plus_seconds(60)).max(1);
        Err(Error::new(ErrorKind::RateLimited).with_retry_after(seconds))
    }
}

/// A host with IPv6 has a /64; counting single addresses would not limit it at all.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => {
            let mut octets = v6.octets();
            octets[8..].fill(0);
            IpAddr::from(octets)
        }
        IpAddr::V4(_) => address,
    }
}
