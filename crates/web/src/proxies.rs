//! The client's address behind reverse proxies.
//!
//! Each proxy appends the address that called it to `X-Forwarded-For` or `Forwarded` (RFC 7239). Earlier entries
//! were written by the caller, so the lists are read from the right, and only as far as a trusted proxy wrote them.

#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies in front of the service that are trusted to name the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxies {
    /// None: forwarding headers are ignored.
    #[default]
    None,
    /// This many in a chain. The connecting peer is the last of them.
    Count(u32),
    /// Those with an address in one of these networks.
    Networks(Vec<Network>),
}

impl Proxies {
    /// Whether an address is one of a proxy.
    pub fn include(&self, address: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::Count(count) => *count > 0,
            Self::Networks(networks) => networks.iter().any(|network| network.contains(address)),
        }
    }

    /// The right-most address that is not one of a trusted proxy.
    ///
    /// If both headers are present and disagree, one of them is not the proxy's own, and both are ignored.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.include(peer) {
            return peer;
        }
        let lines = |name: HeaderName| headers.get_all(name).iter().rev();
        let listed = lines(X_FORWARDED_FOR).flat_map(|line| {
            let items = line.as_bytes().rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            items.filter(|item| !item.is_empty()).map(|item| node(str::from_utf8(item).ok()?))
        });
        let standard = lines(header::FORWARDED).flat_map(forwarded);
        match (self.walk(listed, peer), self.walk(standard, peer)) {
            (Some(one), Some(other)) if one != other => peer,
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => peer,
        }
    }

    /// Walks from the connection back to the client, hop by hop, while the hop that reports is trusted and its
    /// entry is valid. `None` if there are no entries.
    fn walk(&self, hops: impl Iterator<Item = Option<IpAddr>>, peer: IpAddr) -> Option<IpAddr> {
        let mut hops = hops.peekable();
        hops.peek()?;
        let mut client = peer;
        for (number, hop) in (0..).zip(hops) {
            let trusted = match self {
                Self::None => false,
                Self::Count(count) => number < *count,
                Self::Networks(_) => self.include(client),
            };
            match hop {
                Some(address) if trusted => client = address,
                _ => break,
            }
        }
        Some(client)
    }
}

/// The hops of one `Forwarded` line, last first. A malformed line is one unknown hop: a quote that a client left
/// open must not swallow what the proxy appended.
fn forwarded(line: &HeaderValue) -> Vec<Option<IpAddr>> {
    let elements = line.to_str().ok().and_then(|text| Line(text).elements());
    let mut hops = elements.unwrap_or_else(|| vec![None]);
    hops.reverse();
    hops
}

/// The unread rest of a line.
struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    /// The `for` of each element; `None` when the line is malformed.
    fn elements(mut self) -> Option<Vec<Option<IpAddr>>> {
        let mut elements = Vec::new();
        loop {
            self.skip_blanks();
            let (mut about, mut pairs) = (None, 0);
            while !self.0.is_empty() && !self.0.starts_with(',') {
                let (name, value) = self.pair()?;
                if name.eq_ignore_ascii_case("for") && about.replace(value).is_some() {
                    return None;
                }
                pairs += 1;
                self.skip_blanks();
                if self.take(';') {
                    self.skip_blanks();
                } else if !self.0.is_empty() && !self.0.starts_with(',') {
                    return None;
                }
            }
            if pairs > 0 {
                elements.push(about.and_then(|text| node(&text)));
            }
            if !self.take(',') {
                return Some(elements);
            }
        }
    }

    fn pair(&mut self) -> Option<(&'a str, String)> {
        let name = self.run(|char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char))?;
        if !self.take('=') {
            return None;
        }
        if self.take('"') {
            return Some((name, self.quoted()?));
        }
        // Wider than the standard's token, since many proxies write addresses without quotes.
        let value = self.run(|char| char.is_ascii_graphic() && !"\",;\\".contains(char))?;
        Some((name, value.to_owned()))
    }

    /// The rest of a quoted string.
    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        loop {
            match chars.next()? {
                (at, '"') => {
                    self.0 = &self.0[at + 1..];
                    return Some(text);
                }
                (_, '\\') => text.push(chars.next()?.1),
                (_, char) => text.push(char),
            }
        }
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> Option<&'a str> {
        let end = self.0.find(|char| !belongs(char)).unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        (!run.is_empty()).then_some(run)
    }

    fn take(&mut self, char: char) -> bool {
        let rest = self.0.strip_prefix(char);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }
}

/// An address with or without a port; IPv6 with or without brackets. `None` for an obfuscated or unknown one.
fn node(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let (address, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        (IpAddr::V6(host.parse().ok()?), port)
    } else {
        let (host, _) = text.split_once(':')?;
        (IpAddr::V4(host.parse().ok()?), &text[host.len()..])
    };
    let is_port = |port: &str| {
        let plain = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
        plain || port.starts_with('_')
    };
    let fits = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    fits.then(|| address.to_canonical())
}

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether it contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == Some(self.first)
            && address.to_canonical().is_ipv4() == self.first.is_ipv4()
    }
}

/// The first address of a network; `None` when the prefix is too long.
fn masked(address: IpAddr, bits: u32) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    })
}

impl FromStr for Network {
    type Err = String;

    /// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network such as 10.0.0.0/8 or 2001:db8::/32");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => (address, Some(bits)),
            Some(_) => return Err(wrong()),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        let first = masked(address, bits).ok_or_else(wrong)?;
        if first != address {
            return Err(format!("{text:?} names an address within its network; its first one is {first}"));
        }
        Ok(Self { first, bits })
    }
}
