//! Public addresses and those that only look so, at the edges of every special network.

use std::net::IpAddr;

use super::{NON_PUBLIC, is_public};

fn public(address: &str) -> bool {
    is_public(address.parse::<IpAddr>().unwrap())
}

#[test]
fn ordinary_addresses_are_public() {
    let addresses = [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "168.63.129.17",
        "199.36.153.3",
        "199.36.153.12",
        "161.25.255.255",
        "161.27.0.0",
        "166.7.255.255",
        "166.12.0.0",
        "2600:2d00:2:fff::1",
        "2600:2d00:2:2100::1",
        "2606:4700:4700::1111",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2a00:1450:4001:800::1a",
        "64:ff9b::8.8.8.8",
    ];
    for address in addresses {
        assert!(public(address), "{address}");
    }
}

#[test]
fn this_host_and_its_networks_are_not() {
    let addresses = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
    ];
    for address in addresses {
        assert!(!public(address), "{address}");
    }
}

#[test]
fn special_addresses_of_ipv6_are_not() {
    let addresses = [
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:53aa:64c::1",
        "2001:2::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];
    for address in addresses {
        assert!(!public(address), "{address}");
    }
}

/// What clouds keep for their own machines, in every form that leads there. Nothing here connects anywhere.
// rules: HOOK-4, SEND-14
#[test]
fn services_of_clouds_are_not() {
    let clouds = [
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.42.42",
        "169.254.0.23",
        "100.100.100.200",
        "192.0.0.192",
        "199.36.153.4",
        "199.36.153.11",
        "161.26.0.10",
        "166.8.0.1",
        "166.11.255.255",
    ];
    for address in clouds {
        assert!(!public(address), "{address}");
        assert!(!public(&format!("::ffff:{address}")), "{address} mapped");
        assert!(!public(&format!("::{address}")), "{address} compatible");
        assert!(!public(&format!("64:ff9b::{address}")), "{address} behind NAT64");
        assert!(!public(&format!("64:ff9b:1::{address}")), "{address} behind a NAT64 of one's own");
        let [a, b, c, d] = address.parse::<std::net::Ipv4Addr>().unwrap().octets();
        assert!(!public(&format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1")), "{address} by 6to4");
    }
    for address in [
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "fe80::a9fe:a9fe",
        "2600:2d00:2:1000::1",
        "2600:2d00:2:20ff::ffff",
    ] {
        assert!(!public(address), "{address}");
    }
}

#[test]
fn every_closed_network_is_one_and_says_why() {
    for non_public in NON_PUBLIC {
        assert!(!non_public.why.is_empty() && !non_public.source.is_empty(), "{}", non_public.network);
        assert!(non_public.contains(non_public.network), "{} has bits behind its length", non_public.network);
        assert!(!is_public(non_public.network), "{}", non_public.network);
    }
}
