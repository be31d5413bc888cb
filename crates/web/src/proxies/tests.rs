use super::*;

const PEER: &str = "10.0.0.1";

fn networks(list: &[&str]) -> Proxies {
    Proxies::Networks(list.iter().map(|text| text.parse().unwrap()).collect())
}

/// The client of a request with these headers.
fn client(proxies: &Proxies, peer: &str, lines: &[(&str, &str)]) -> String {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    proxies.client(&headers, peer.parse().unwrap()).to_string()
}

fn list(lines: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    lines.iter().map(|line| ("x-forwarded-for", *line)).collect()
}

fn standard(lines: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    lines.iter().map(|line| ("forwarded", *line)).collect()
}

/// rules: HTTP-19
#[test]
fn one_proxy_is_believed_about_its_own_client_alone() {
    let one = Proxies::Count(1);
    for (lines, wanted) in [
        (vec![], PEER),
        (vec![""], PEER),
        (vec![" , ,"], PEER),
        (vec!["198.51.100.7"], "198.51.100.7"),
        (vec!["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        // The client sent a line of its own, and the proxy added another.
        (vec!["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
        (vec!["203.0.113.9", "203.0.113.8, 198.51.100.7"], "198.51.100.7"),
        (vec!["127.0.0.1", "10.0.0.1", "198.51.100.7"], "198.51.100.7"),
        (vec!["198.51.100.7,"], "198.51.100.7"),
        (vec![" 198.51.100.7\t"], "198.51.100.7"),
        (vec!["198.51.100.7:4711"], "198.51.100.7"),
        (vec!["2001:db8::7"], "2001:db8::7"),
        (vec!["[2001:db8::7]"], "2001:db8::7"),
        (vec!["[2001:db8::7]:4711"], "2001:db8::7"),
        (vec!["::ffff:198.51.100.7"], "198.51.100.7"),
        (vec!["[::ffff:198.51.100.7]:1"], "198.51.100.7"),
        // An invalid entry is no client, and entries before it are not read.
        (vec!["203.0.113.9, unknown"], PEER),
        (vec!["203.0.113.9, 198.51.100"], PEER),
        (vec!["203.0.113.9, 198.51.100.7:"], PEER),
        (vec!["203.0.113.9, 198.51.100.7:999999"], PEER),
        (vec!["203.0.113.9, 198.51.100.7 198.51.100.8"], PEER),
        (vec!["203.0.113.9, [2001:db8::7"], PEER),
        (vec!["203.0.113.9, [198.51.100.7]"], PEER),
        (vec!["203.0.113.9, 0x7f.1"], PEER),
        (vec!["203.0.113.9, 198.51.100.07"], PEER),
        (vec!["203.0.113.9, \u{fc}"], PEER),
        (vec!["203.0.113.9, \"198.51.100.7\""], PEER),
    ] {
        assert_eq!(client(&one, PEER, &list(&lines)), wanted, "{lines:?}");
        assert_eq!(client(&Proxies::None, PEER, &list(&lines)), PEER, "nobody is trusted: {lines:?}");
    }
}

/// rules: HTTP-19
#[test]
fn several_proxies_are_believed_as_far_as_they_are_trusted() {
    let two = Proxies::Count(2);
    let inner = networks(&["10.0.0.0/8", "2001:db8:1::/48"]);
    for (proxies, peer, lines, wanted) in [
        (&two, PEER, vec!["203.0.113.9, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        (&two, PEER, vec!["203.0.113.9", "198.51.100.7", "10.0.0.2"], "198.51.100.7"),
        (&two, PEER, vec!["203.0.113.9, junk, 10.0.0.2"], "10.0.0.2"),
        // A client called the inner proxy directly.
        (&two, PEER, vec!["198.51.100.7"], "198.51.100.7"),
        (&inner, PEER, vec!["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        (&inner, PEER, vec!["203.0.113.9, 198.51.100.7, 10.0.0.2, 10.9.9.9"], "198.51.100.7"),
        (&inner, PEER, vec!["203.0.113.9, 198.51.100.7", "2001:db8:1::2"], "198.51.100.7"),
        // A client pretends to be another one behind our proxy.
        (&inner, PEER, vec!["203.0.113.9, 10.0.0.3, 198.51.100.7"], "198.51.100.7"),
        // All of them are ours: the first one is the client.
        (&inner, PEER, vec!["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (&inner, PEER, vec!["203.0.113.9, what, 10.0.0.2"], "10.0.0.2"),
        // A peer from another network is not a proxy.
        (&inner, "198.51.100.8", vec!["203.0.113.9"], "198.51.100.8"),
        (&inner, "::ffff:10.0.0.1", vec!["198.51.100.7"], "198.51.100.7"),
        (&inner, "::ffff:198.51.100.8", vec!["203.0.113.9"], "198.51.100.8"),
        (&inner, "2001:db8:1::1", vec!["198.51.100.7"], "198.51.100.7"),
        (&inner, "2001:db8:2::1", vec!["198.51.100.7"], "2001:db8:2::1"),
    ] {
        assert_eq!(client(proxies, peer, &list(&lines)), wanted, "{proxies:?} {peer} {lines:?}");
    }
}

/// rules: HTTP-19
#[test]
fn the_standard_header_is_read_as_strictly_as_it_is_written() {
    let one = Proxies::Count(1);
    for (lines, wanted) in [
        (vec!["for=198.51.100.7"], "198.51.100.7"),
        (vec!["For=\"198.51.100.7\""], "198.51.100.7"),
        (vec!["proto=https;by=10.0.0.1;for=\"198.51.100.7:4711\";host=x"], "198.51.100.7"),
        (vec!["for=\"[2001:db8::7]:4711\""], "2001:db8::7"),
        (vec!["for=\"[2001:db8::7]:_hidden\""], "2001:db8::7"),
        (vec!["for=\"\\198.51.100.7\""], "198.51.100.7"),
        (vec!["for=203.0.113.9, for=198.51.100.7;proto=http"], "198.51.100.7"),
        (vec!["for=203.0.113.9", "for=198.51.100.7"], "198.51.100.7"),
        (vec!["for=\"203.0.113.9, for=203.0.113.8\", for=198.51.100.7"], "198.51.100.7"),
        (vec!["for=198.51.100.7, ,"], "198.51.100.7"),
        (vec!["for=198.51.100.7 ; proto=http"], "198.51.100.7"),
        (vec!["for=\"_secret\""], PEER),
        (vec!["for=203.0.113.9, for=unknown"], PEER),
        (vec!["for=203.0.113.9, proto=https"], PEER),
        (vec!["for=203.0.113.9;for=198.51.100.7"], PEER),
        (vec!["for=203.0.113.9, 198.51.100.7"], PEER),
        (vec!["for=203.0.113.9, for"], PEER),
        (vec!["for=203.0.113.9, for="], PEER),
        (vec!["for=203.0.113.9 for=198.51.100.7"], PEER),
        // A quote that the client opened, and what the proxy appended.
        (vec!["for=203.0.113.9;x=\", for=198.51.100.7"], PEER),
        (vec!["for=203.0.113.9;x=\", for=\"198.51.100.7\""], PEER),
        (vec!["for=203.0.113.9;x=\"\\\", for=\"198.51.100.7\";by=\"_a\""], PEER),
        (vec!["for=203.0.113.9;x=\"", "for=198.51.100.7"], "198.51.100.7"),
        (vec!["for=\u{fc}, for=198.51.100.7"], PEER),
    ] {
        assert_eq!(client(&one, PEER, &standard(&lines)), wanted, "{lines:?}");
    }
    let inner = networks(&["10.0.0.0/8"]);
    let chain = standard(&["for=203.0.113.9, for=198.51.100.7", "for=10.0.0.3", "for=\"10.0.0.2:80\""]);
    assert_eq!(client(&inner, PEER, &chain), "198.51.100.7");
    assert_eq!(client(&Proxies::Count(3), PEER, &chain), "198.51.100.7");
}

/// rules: HTTP-19
#[test]
fn headers_that_do_not_agree_are_both_not_believed() {
    let one = Proxies::Count(1);
    let (given, other) = (("x-forwarded-for", "198.51.100.7"), ("forwarded", "for=203.0.113.9"));
    let same = ("forwarded", "for=\"198.51.100.7:80\"");
    assert_eq!(client(&one, PEER, &[given, same]), "198.51.100.7");
    assert_eq!(client(&one, PEER, &[same, given]), "198.51.100.7");
    assert_eq!(client(&one, PEER, &[given, other]), PEER);
    assert_eq!(client(&one, PEER, &[other, given]), PEER);
    assert_eq!(client(&one, PEER, &[given, ("forwarded", "junk")]), PEER);
    assert_eq!(client(&one, PEER, &[given, ("forwarded", "")]), "198.51.100.7");
    assert_eq!(client(&one, PEER, &[("x-forwarded-for", "junk"), ("forwarded", "junk")]), PEER);
}

#[test]
fn networks_are_written_exactly() {
    for (text, inside, outside) in [
        ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("192.0.2.6/31", "192.0.2.7", "192.0.2.8"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "2001:db8::1", "10.0.0.1"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
        ("::1", "::1", "::2"),
    ] {
        let network: Network = text.parse().unwrap();
        assert!(network.contains(inside.parse().unwrap()), "{text} {inside}");
        assert!(!network.contains(outside.parse().unwrap()), "{text} {outside}");
    }
    for text in
        ["", "10.0.0.0/33", "10.0.0.1/8", "10/8", "::/129", "10.0.0.0/", "10.0.0.0/+8", "a/8", "10.0.0.0/8/8"]
    {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}
