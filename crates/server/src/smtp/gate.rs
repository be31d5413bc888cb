//! Who may connect: so many at once, of them so many of one address, and so many of one address in a minute.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Addresses remembered in a minute; beyond that counting starts anew rather than grow.
const CAPACITY: usize = 100_000;
const MINUTE: Duration = Duration::from_mins(1);

/// The places for connections, how often each address has come, and how many it has open.
pub(super) struct Gate {
    room: Arc<Semaphore>,
    limits: Limits,
    window: Mutex<Window>,
    /// As many entries at most as there are places.
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// How much of the gate is for one address.
pub(super) struct Limits {
    /// Connections that it may open in a minute.
    pub(super) per_minute: u32,
    /// Connections that it may have at a time.
    pub(super) at_once: u32,
}

/// A place for a connection; dropping it makes room for another one.
#[derive(Debug)]
pub(super) struct Place {
    _room: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// An open connection among those of its address.
#[derive(Debug)]
struct Share {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    address: IpAddr,
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = lock(&self.open).entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

struct Window {
    since: Instant,
    counts: HashMap<IpAddr, u32>,
}

impl Gate {
    pub(super) fn new(connections: usize, limits: Limits) -> Self {
        Self {
            room: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            limits,
            window: Mutex::new(Window { since: Instant::now(), counts: HashMap::new() }),
            open: Arc::default(),
        }
    }

    /// A place for a connection, of an address if that is to be counted; or the line that refuses it.
    pub(super) fn admit(&self, address: Option<IpAddr>, now: Instant) -> Result<Place, &'static str> {
        if address.is_some_and(|address| self.count(address, now) > self.limits.per_minute) {
            return Err("421 4.7.0 Too many connections from your address; try again in a minute\r\n");
        }
        let room = self.room.clone().try_acquire_owned();
        let room = room.map_err(|_| "421 4.3.2 Too many connections; try again later\r\n")?;
        // The programs of this machine share one address, and none of them is a stranger.
        let share = match address.filter(|address| !address.is_loopback()) {
            Some(address) => Some(self.share(network(address))?),
            None => None,
        };
        Ok(Place { _room: room, _share: share })
    }

    fn share(&self, address: IpAddr) -> Result<Share, &'static str> {
        let mut open = lock(&self.open);
        let count = open.entry(address).or_default();
        if *count >= self.limits.at_once {
            return Err("421 4.7.0 Too many open connections from your address; close one first\r\n");
        }
        *count += 1;
        Ok(Share { open: self.open.clone(), address })
    }

    fn count(&self, address: IpAddr, now: Instant) -> u32 {
        let mut window = lock(&self.window);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
