//! Connection limits: in total, per address, and per address and minute.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::shares::{Share, Shares, lock, network};

/// Maximum addresses remembered per minute; above that counting starts over instead of growing.
const WINDOW_CAPACITY: usize = 100_000;
const MINUTE: Duration = Duration::from_mins(1);
const TOO_MANY_OPEN: &str = "421 4.7.0 Too many open connections from your address; close one first\r\n";

/// The permits for connections, and each address's recent and open ones.
pub(super) struct Gate {
    permits: Arc<Semaphore>,
    per_minute: u32,
    window: Mutex<Window>,
    shares: Shares,
}

/// Limits for one address.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Connections per minute.
    pub(super) per_minute: u32,
    /// Open connections.
    pub(super) max_open: u32,
}

/// A permit for one connection, released when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

struct Window {
    since: Instant,
    counts: HashMap<IpAddr, u32>,
}

impl Gate {
    pub(super) fn new(connections: usize, limits: Limits) -> Self {
        let Limits { per_minute, max_open } = limits;
        Self {
            permits: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            per_minute,
            window: Mutex::new(Window { since: Instant::now(), counts: HashMap::new() }),
            shares: Shares::new(max_open),
        }
    }

    /// A permit for a connection, counted for an address if one is given; or the reply that refuses it.
    pub(super) fn admit(
        &self,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Result<ConnectionPermit, &'static str> {
        if address.is_some_and(|address| self.count(address, now) > self.per_minute) {
            return Err("421 4.7.0 Too many connections from your address; try again in a minute\r\n");
        }
        let permit = self.permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| "421 4.3.2 Too many connections; try again later\r\n")?;
        // Programs on this machine share one address, and are trusted.
        let share = match address.filter(|address| !address.is_loopback()) {
            Some(address) => Some(self.shares.take(address).ok_or(TOO_MANY_OPEN)?),
            None => None,
        };
        Ok(ConnectionPermit { _permit: permit, _share: share })
    }

    fn count(&self, address: IpAddr, now: Instant) -> u32 {
        let mut window = lock(&self.window);
        if now.saturating_duration_since(window.since) >= MINUTE || window.counts.len() >= WINDOW_CAPACITY {
            *window = Window { since: now, counts: HashMap::new() };
        }
        let count = window.counts.entry(network(address)).or_default();
        *count = count.saturating_add(1);
        *count
    }
}
