//! Open connections by client.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts open connections by client address. There are at most as many entries as connections.
#[derive(Debug)]
pub struct Shares {
    most: u32,
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// An open connection of a client, until it is dropped.
#[derive(Debug)]
pub struct Share {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    client: IpAddr,
}

impl Shares {
    /// A limit for each client.
    pub fn new(most: u32) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Counts another connection, unless the client is at its limit.
    pub fn take(&self, address: IpAddr) -> Option<Share> {
        let client = network(address);
        let mut open = lock(&self.open);
        let count = open.entry(client).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share { open: self.open.clone(), client })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = lock(&self.open).entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// What counts as one client. A host with IPv6 has a /64; counting single addresses would not limit it at all. IPv4
/// may arrive as a mapped address on a dual-stack socket.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rules: HTTP-20
    #[test]
    fn each_client_has_its_share() {
        let shares = Shares::new(2);
        let take = |address: &str| shares.take(address.parse().unwrap());
        let first = (take("198.51.100.7").unwrap(), take("::ffff:198.51.100.7").unwrap());
        assert!(take("198.51.100.7").is_none());
        let others =
            [take("198.51.100.8"), take("2001:db8::1"), take("2001:db8::ffff:1"), take("2001:db8:0:1::1")];
        assert!(others.iter().all(Option::is_some));
        assert!(take("2001:db8::7").is_none(), "a host has a whole network of its own");
        drop(first);
        assert!(take("198.51.100.7").is_some());
        drop(others);
        assert!(lock(&shares.open).is_empty(), "nobody is remembered who has gone");
    }
}
