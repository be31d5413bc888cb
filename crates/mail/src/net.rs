//! Which IP addresses are public.
//!
//! Untrusted names (the MX of a recipient's domain, the URL of a webhook) must not make us connect to this machine or
//! its networks. The address that is connected to is checked, never the name.

mod non_public;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use self::non_public::{NON_PUBLIC, NonPublicNetwork};

/// IPv6 global unicast; loopback, mapped, local and multicast addresses are outside.
const GLOBAL_UNICAST_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The prefix under which a network with IPv6 alone reaches IPv4 (RFC 6052).
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is public, so that an untrusted name may lead to it.
///
/// Not public are this host and its networks (loopback, private, link-local, shared by carriers), multicast, addresses
/// for documentation and tests, everything reserved, what clouds keep for their own machines, and every form of IPv6
/// that stands for an IPv4 address, except that of a translator to a public one.
pub fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(address) if within_v6(address, NAT64) => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::from([a, b, c, d])
        }
        IpAddr::V6(address) if !within_v6(address, GLOBAL_UNICAST_V6) => return false,
        address => address,
    };
    !NON_PUBLIC.iter().any(|non_public| non_public.contains(address))
}

impl NonPublicNetwork {
    /// Whether an address lies in the network.
    fn contains(&self, address: IpAddr) -> bool {
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
