//! Networks that are not public, with the reason and its source.
//!
//! IANA's registries list special-purpose networks. Cloud providers put metadata services into these networks, and some
//! into ordinary addresses: what answers there trusts every request from the machine itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network that must not be connected to.
pub(super) struct NonPublicNetwork {
    pub(super) network: IpAddr,
    pub(super) length: u32,
    #[cfg_attr(not(test), expect(dead_code, reason = "for those who read the table, and for its test"))]
    pub(super) why: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for those who read the table, and for its test"))]
    pub(super) source: &'static str,
}

const V4: &str = "IANA IPv4 Special-Purpose Address Registry";
const V6: &str = "IANA IPv6 Special-Purpose Address Registry";

const fn v4(address: [u8; 4], length: u32, why: &'static str, source: &'static str) -> NonPublicNetwork {
    let [a, b, c, d] = address;
    NonPublicNetwork { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length, why, source }
}

const fn v6(address: [u16; 4], length: u32, why: &'static str, source: &'static str) -> NonPublicNetwork {
    let [a, b, c, d] = address;
    NonPublicNetwork { network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), length, why, source }
}

/// All of them. Of IPv6 only networks within global unicast: everything else is not public anyway, including
/// `fd00:ec2::254` (AWS), `fd20:ce::254` (Google Cloud), `fd00:c1::a9fe:a9fe` (Oracle) and `fd00:42::42` (Scaleway),
/// which are unique local addresses.
pub(super) const NON_PUBLIC: &[NonPublicNetwork] = &[
    v4([0, 0, 0, 0], 8, "this network", V4),
    v4([10, 0, 0, 0], 8, "private use", V4),
    // Within it 100.100.100.200, the metadata of Alibaba Cloud (its documentation, "View instance metadata").
    v4([100, 64, 0, 0], 10, "shared by carriers", V4),
    v4([127, 0, 0, 0], 8, "loopback", V4),
    // Within it the metadata of most clouds, 169.254.169.254, and the credentials of containers, 169.254.170.2 and
    // 169.254.170.23 (AWS documentation, "Task metadata" of ECS and "Pod Identity" of EKS).
    v4([169, 254, 0, 0], 16, "link-local", V4),
    v4([172, 16, 0, 0], 12, "private use", V4),
    // Within it 192.0.0.192, the metadata of Oracle Cloud Infrastructure Classic (its documentation, "Instance
    // metadata").
    v4([192, 0, 0, 0], 24, "assignments of protocols", V4),
    v4([192, 0, 2, 0], 24, "documentation", V4),
    v4([192, 88, 99, 0], 24, "6to4 relays of the past", V4),
    v4([192, 168, 0, 0], 16, "private use", V4),
    v4([198, 18, 0, 0], 15, "benchmarks", V4),
    v4([198, 51, 100, 0], 24, "documentation", V4),
    v4([203, 0, 113, 0], 24, "documentation", V4),
    v4([224, 0, 0, 0], 4, "multicast", "IANA IPv4 Multicast Address Space Registry"),
    v4([240, 0, 0, 0], 4, "reserved, and broadcast", V4),
    v4(
        [168, 63, 129, 16],
        32,
        "the platform of Azure: DNS, agents and health of virtual machines",
        "Microsoft Azure documentation, What is IP address 168.63.129.16?",
    ),
    v4(
        [199, 36, 153, 4],
        30,
        "Google's interfaces as they are reached from inside a network (restricted.googleapis.com)",
        "Google Cloud documentation, Configure Private Google Access",
    ),
    v4(
        [199, 36, 153, 8],
        30,
        "Google's interfaces as they are reached from inside a network (private.googleapis.com)",
        "Google Cloud documentation, Configure Private Google Access",
    ),
    v4(
        [161, 26, 0, 0],
        16,
        "services of IBM Cloud for its own machines: DNS, time, packages, storage",
        "IBM Cloud documentation, Service endpoints of VPC",
    ),
    v4(
        [166, 8, 0, 0],
        14,
        "services of IBM Cloud for its own machines",
        "IBM Cloud documentation, Service endpoints of VPC",
    ),
    v6([0x2001, 0, 0, 0], 23, "assignments of protocols, Teredo", V6),
    v6([0x2001, 0xdb8, 0, 0], 32, "documentation", V6),
    v6([0x2002, 0, 0, 0], 16, "6to4, which leads to any IPv4 address", V6),
    v6([0x3fff, 0, 0, 0], 20, "documentation", V6),
    v6(
        [0x2600, 0x2d00, 2, 0x1000],
        56,
        "Google's interfaces as they are reached from inside a network (restricted.googleapis.com)",
        "Google Cloud documentation, Configure Private Google Access",
    ),
    v6(
        [0x2600, 0x2d00, 2, 0x2000],
        56,
        "Google's interfaces as they are reached from inside a network (private.googleapis.com)",
        "Google Cloud documentation, Configure Private Google Access",
    ),
];
