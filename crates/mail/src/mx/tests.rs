//! Domains with every kind of mail server, against a name server that runs inside the test.

use std::collections::HashSet;
use std::net::IpAddr;

use super::{Host, NoRoute, Router};
use crate::dns::Dns;
use crate::dns::name_server::NameServer;

async fn route_with(zone: &str, domain: &str, seed: u64) -> Result<Vec<Host>, NoRoute> {
    let server = NameServer::start(zone).await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let own_address: IpAddr = "9.9.9.9".parse().unwrap();
    Router::new(dns, &["MX.us.test.".to_owned()], &[own_address]).route(domain, seed).await
}

async fn route(zone: &str, domain: &str) -> Result<Vec<Host>, NoRoute> {
    route_with(zone, domain, 1).await
}

fn names(hosts: &[Host]) -> Vec<&str> {
    hosts.iter().map(|host| host.name.as_str()).collect()
}

#[tokio::test]
async fn servers_come_in_the_order_of_their_ranks() {
    let zone = "
        x.test MX 20 c.x.test
        x.test MX 5 A.x.test
        x.test MX 10 b.x.test
        a.x.test A 8.8.1.1
        a.x.test AAAA 2a00::1
        a.x.test A 8.8.1.2
        b.x.test A 8.8.2.1
        c.x.test AAAA 2a00::3";
    let hosts = route(zone, "x.test").await.unwrap();
    assert_eq!(names(&hosts), ["a.x.test", "b.x.test", "c.x.test"]);
    let addresses = &hosts[0].addresses;
    assert_eq!((addresses.len(), addresses[0].to_string()), (3, "2a00::1".to_owned()));
    assert!(addresses[1].is_ipv4() && addresses[2].is_ipv4());
}

#[tokio::test]
async fn servers_of_one_rank_take_turns() {
    let zone = "
        x.test MX 10 a.x.test
        x.test MX 10 b.x.test
        x.test MX 10 c.x.test
        x.test MX 20 last.x.test
        a.x.test A 8.8.1.1
        b.x.test A 8.8.1.2
        c.x.test A 8.8.1.3
        last.x.test A 8.8.1.4";
    let mut orders = HashSet::new();
    for seed in 0..40 {
        let hosts = route_with(zone, "x.test", seed).await.unwrap();
        assert_eq!(hosts[3].name, "last.x.test");
        orders.insert(names(&hosts).join(" "));
    }
    assert_eq!(orders.len(), 6);
    assert_eq!(route_with(zone, "x.test", 7).await, route_with(zone, "x.test", 7).await);
}

#[tokio::test]
async fn a_domain_without_mx_takes_mail_itself() {
    let hosts = route("x.test A 8.8.4.4", "X.test").await.unwrap();
    assert_eq!(hosts, [Host { name: "x.test".to_owned(), addresses: vec!["8.8.4.4".parse().unwrap()] }]);
    assert_eq!(route("y.test A 8.8.4.4", "x.test").await, Err(NoRoute::NoServer));
    assert_eq!(route("x.test MX 10 gone.x.test", "x.test").await, Err(NoRoute::NoServer));
}

#[tokio::test]
async fn a_domain_may_take_no_mail() {
    let found = route("x.test MX 0 .\nx.test A 8.8.4.4", "x.test").await;
    assert_eq!(found, Err(NoRoute::NullMx));
    assert!(NoRoute::NullMx.is_permanent() && NoRoute::NullMx.status() == "5.1.10");
    let both = route("x.test MX 0 .\nx.test MX 10 a.x.test\na.x.test A 8.8.4.4", "x.test").await.unwrap();
    assert_eq!(names(&both), ["a.x.test"]);
}

// rules: SEND-14
#[tokio::test]
async fn nobody_leads_us_into_our_own_network() {
    for address in
        ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"]
    {
        let zone = format!("x.test MX 10 a.x.test\na.x.test A {address}");
        assert_eq!(route(&zone, "x.test").await, Err(NoRoute::NotPublic), "{address}");
    }
    for address in ["::1", "::ffff:10.0.0.1", "fe80::1", "fd00::1", "2002:7f00:1::1"] {
        let zone = format!("x.test MX 10 a.x.test\na.x.test AAAA {address}");
        assert_eq!(route(&zone, "x.test").await, Err(NoRoute::NotPublic), "{address}");
    }
    let mixed = "x.test MX 10 a.x.test\nx.test MX 20 b.x.test\na.x.test A 127.0.0.1\na.x.test A 8.8.1.1\nb.x.test A 10.0.0.1";
    let hosts = route(mixed, "x.test").await.unwrap();
    assert_eq!(hosts, [Host { name: "a.x.test".to_owned(), addresses: vec!["8.8.1.1".parse().unwrap()] }]);
}

#[tokio::test]
async fn a_private_network_can_be_allowed() {
    let server = NameServer::start("x.test MX 10 a.x.test\na.x.test A 127.0.0.1").await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let router = Router::new(dns, &[], &[]).with_rule(|_| true);
    assert_eq!(router.route("x.test", 1).await.unwrap()[0].addresses[0].to_string(), "127.0.0.1");
}

#[tokio::test]
async fn mail_does_not_go_in_circles() {
    let by_name = "x.test MX 10 mx.us.test\nx.test MX 20 b.x.test\nmx.us.test A 8.8.1.1\nb.x.test A 8.8.1.2";
    assert_eq!(route(by_name, "x.test").await, Err(NoRoute::Loop));
    let by_address = "x.test MX 10 other.test\nother.test A 9.9.9.9";
    assert_eq!(route(by_address, "x.test").await, Err(NoRoute::Loop));
    assert_eq!(route("us.test A 9.9.9.9", "us.test").await, Err(NoRoute::Loop));
    let better = "
        x.test MX 5 a.x.test
        x.test MX 10 b.x.test
        x.test MX 10 mx.us.test
        x.test MX 20 c.x.test
        a.x.test A 8.8.1.1
        b.x.test A 8.8.1.2
        c.x.test A 8.8.1.3";
    for seed in 0..10 {
        assert_eq!(names(&route_with(better, "x.test", seed).await.unwrap()), ["a.x.test"]);
    }
}

#[tokio::test]
async fn what_cannot_be_found_out_may_be_found_out_later() {
    assert_eq!(route("x.test SERVFAIL", "x.test").await, Err(NoRoute::Unavailable));
    assert!(!NoRoute::Unavailable.is_permanent());
    let zone = "x.test MX 10 a.x.test\na.x.test SERVFAIL";
    assert_eq!(route(zone, "x.test").await, Err(NoRoute::Unavailable));
    let other = format!("{zone}\nx.test MX 20 b.x.test\nb.x.test A 8.8.1.2");
    assert_eq!(names(&route(&other, "x.test").await.unwrap()), ["b.x.test"]);
    let private = format!("{zone}\nx.test MX 20 b.x.test\nb.x.test A 10.0.0.1");
    assert_eq!(route(&private, "x.test").await, Err(NoRoute::Unavailable));
}

#[tokio::test]
async fn a_domain_with_many_servers_costs_little() {
    let lines: Vec<String> =
        (0..25).map(|n| format!("x.test MX {n} h{n}.x.test\nh{n}.x.test A 8.8.1.{n}\n")).collect();
    let zone = lines.concat();
    let server = NameServer::start(&zone).await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let hosts = Router::new(dns, &[], &[]).route("x.test", 1).await.unwrap();
    assert_eq!((hosts.len(), hosts[0].name.as_str()), (10, "h0.x.test"));
    assert!(server.questions() <= 1 + 2 * 10);
}
