//! Who may connect: so many at once, and so many of one address in a minute.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Addresses remembered in a minute; beyond that counting starts anew rather than grow.
const CAPACITY: usize = 100_000;
const MINUTE: Duration = Duration::from_mins(1);

/// The places for connections, and how often each address has come.
pub(super) struct Gate {
    room: Arc<Semaphore>,
    per_minute: u32,
    window: Mutex<Window>,
}

struct Window {
    since: Instant,
    counts: HashMap<IpAddr, u32>,
}

impl Gate {
    pub(super) fn new(connections: usize, per_minute: u32) -> Self {
        Self {
            room: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            per_minute,
            window: Mutex::new(Window { since: Instant::now(), counts: HashMap::new() }),
        }
    }

    /// A place for a connection, of an address if that is to be counted; or the line that refuses it.
    pub(super) fn admit(
        &self,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Result<OwnedSemaphorePermit, &'static str> {
        if address.is_some_and(|address| self.count(address, now) > self.per_minute) {
            return Err("421 4.7.0 Too many connections from your address; try again in a minute\r\n");
        }
        let place = self.room.clone().try_acquire_owned();
        place.map_err(|_| "421 4.3.2 Too many connections; try again later\r\n")
    }

    fn count(&self, address: IpAddr, now: Instant) -> u32 {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(window.since) >= MINUTE || window.counts.len() >= CAPACITY {
            *window = Window { since: now, counts: HashMap::new() };
        }
        let count = window.counts.entry(network(address)).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// A host with IPv6 owns a /64; counting single addresses would not count it at all.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
    }
}
