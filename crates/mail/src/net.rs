//! Which network addresses are out in the public internet.
//!
//! Whoever names a server for us to connect to (by the MX of a recipient's domain, by the URL of a webhook) must not
//! reach this machine or its neighbours that way. What counts is the address that is connected to, never a name.

mod closed;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use self::closed::{CLOSED, Closed};

/// The part of IPv6 that is given out for ordinary use; loopback, mapped, local and multicast addresses lie outside.
const OPEN_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The prefix under which a network with IPv6 alone reaches IPv4 (RFC 6052).
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is one of the public internet, so that connecting to it on a stranger's word is harmless.
///
/// Not public are this host and its networks (loopback, private, link-local, shared by carriers), multicast, addresses
/// for documentation and tests, everything reserved, what clouds keep for their own machines, and every form of IPv6 that
/// stands for an IPv4 address, except that of a translator to a public one.
pub fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(address) if within_v6(address, NAT64) => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::from([a, b, c, d])
        }
        IpAddr::V6(address) if !within_v6(address, OPEN_V6) => return false,
        address => address,
    };
    !CLOSED.iter().any(|closed| closed.holds(address))
}

impl Closed {
    /// Whether an address lies in the network.
    fn holds(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => within_v4(address, (network, self.length)),
            (IpAddr::V6(network), IpAddr::V6(address)) => within_v6(address, (network, self.length)),
            _ => false,
        }
    }
}

fn within_v4(address: Ipv4Addr, (network, length): (Ipv4Addr, u32)) -> bool {
    let mask = u32::MAX << (32 - length);
    address.to_bits() & mask == network.to_bits()
}

fn within_v6(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    let mask = u128::MAX << (128 - length);
    address.to_bits() & mask == network.to_bits()
}
