//! Limits for callers without a credential, by client address, for wallets, and for guessing passwords.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use model::Timestamp;
use operations::{Error, ErrorKind, Result};

/// Addresses remembered in a minute; beyond that the limiter starts anew rather than grow.
const CAPACITY: usize = 100_000;

/// Counts calls of client addresses.
pub(crate) struct AddressLimiter(Limiter<IpAddr>);

impl AddressLimiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Limiter::new(limit))
    }

    /// Refuses an address that has had its calls, without counting another.
    pub(crate) fn check(&self, address: IpAddr, now: Timestamp) -> Result<()> {
        self.0.check(network(address), now)
    }

    /// Counts a call, refusing it when the address has had its calls.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) -> Result<()> {
        self.0.count(network(address), now)
    }
}

/// Counts wrong passwords of client addresses.
pub(crate) struct Guesses {
    of_minute: Limiter<IpAddr>,
    of_day: Limiter<IpAddr>,
}

impl Guesses {
    pub(crate) fn new() -> Self {
        Self { of_minute: Limiter::new(10), of_day: Limiter::within(86_400, 50) }
    }

    /// Refuses an address that has guessed too often, whatever it guesses now.
    pub(crate) fn check(&self, address: IpAddr, now: Timestamp) -> Result<()> {
        let address = network(address);
        self.of_day.check(address, now)?;
        self.of_minute.check(address, now)
    }

    /// Counts a wrong password.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) {
        let address = network(address);
        let _ = (self.of_minute.count(address, now), self.of_day.count(address, now));
    }
}

/// Counts calls in fixed windows.
pub(crate) struct Limiter<K> {
    limit: u64,
    /// The length of a window.
    seconds: i64,
    window: Mutex<(Timestamp, HashMap<K, u64>)>,
}

impl<K: Eq + Hash> Limiter<K> {
    /// So many calls a minute.
    pub(crate) fn new(limit: u64) -> Self {
        Self::within(60, limit)
    }

    fn within(seconds: i64, limit: u64) -> Self {
        Self { limit, seconds, window: Mutex::new((Timestamp::from_micros(0), HashMap::new())) }
    }

    fn check(&self, caller: K, now: Timestamp) -> Result<()> {
        self.with_count(caller, now, |count| *count < self.limit)
    }

    /// Counts a call, refusing it when the caller has had its calls.
    pub(crate) fn count(&self, caller: K, now: Timestamp) -> Result<()> {
        self.with_count(caller, now, |count| {
            *count += 1;
            *count <= self.limit
        })
    }

    fn with_count(&self, caller: K, now: Timestamp, allowed: impl FnOnce(&mut u64) -> bool) -> Result<()> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let length = self.seconds.saturating_mul(1_000_000);
        let began = Timestamp::from_micros(now.as_micros().div_euclid(length).saturating_mul(length));
        if window.0 != began || window.1.len() >= CAPACITY {
            *window = (began, HashMap::new());
        }
        let count = window.1.entry(caller).or_default();
        if allowed(count) {
            return Ok(());
        }
        let seconds = now.seconds_until(began.plus_seconds(self.seconds)).max(1);
        Err(Error::new(ErrorKind::RateLimited).with_retry_after(seconds))
    }
}

/// A host with IPv6 owns a /64; counting single addresses would not count it at all.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => {
            let mut octets = v6.octets();
            octets[8..].fill(0);
            IpAddr::from(octets)
        }
        IpAddr::V4(_) => address,
    }
}
