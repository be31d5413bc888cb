//! Routing for a domain: its mail servers in the order to try them (RFC 5321, section 5.1), and their addresses.
//!
//! The owner of a domain controls where we connect to. So only addresses that the caller allows are returned, by
//! default those of the public internet, and never our own, which would cause a mail loop.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;

use crate::dns::{Dns, Unavailable};
use crate::net::is_public;

/// Mail servers of a domain that are tried, the most preferred first.
const MAX_HOSTS: usize = 10;

/// Addresses of one server that are returned.
const MAX_ADDRESSES: usize = 8;

/// Timeout for all lookups of one domain.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// A mail server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, in lower case without a dot at its end.
    pub name: String,
    /// Where it can be reached, in the order to try; at least one.
    pub addresses: Vec<IpAddr>,
}

/// Why there is nowhere to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRoute {
    /// The domain accepts no mail (null MX, RFC 7505).
    #[error("The domain takes no mail.")]
    NullMx,
    /// There is no such domain, or it has no mail server.
    #[error("The domain has no mail server.")]
    NoServer,
    /// All servers have addresses that may not be connected to.
    #[error("The domain's mail servers are not in the public internet.")]
    NotPublic,
    /// This server is the most preferred one.
    #[error("The domain's mail comes back to this server.")]
    Loop,
    /// DNS is not available now.
    #[error("The domain's mail servers cannot be found out now.")]
    Unavailable,
}

impl NoRoute {
    /// Whether a retry would give the same result.
    pub fn is_permanent(self) -> bool {
        self != Self::Unavailable
    }

    /// The status code for a report (RFC 3463).
    pub fn status(self) -> &'static str {
        match self {
            Self::NullMx => "5.1.10",
            Self::NoServer => "5.1.2",
            Self::NotPublic => "5.4.4",
            Self::Loop => "5.4.6",
            Self::Unavailable => "4.4.3",
        }
    }
}

impl From<Unavailable> for NoRoute {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

/// Finds the mail servers of domains.
#[derive(Clone)]
pub struct Router {
    dns: Dns,
    own_names: Vec<String>,
    own_addresses: Vec<IpAddr>,
    may_connect: fn(IpAddr) -> bool,
}

impl Router {
    /// A router that knows the names and addresses of this server.
    pub fn new(dns: Dns, own_names: &[String], own_addresses: &[IpAddr]) -> Self {
        let own_names = own_names.iter().map(|name| normalised(name)).collect();
        Self { dns, own_names, own_addresses: own_addresses.to_vec(), may_connect: is_public }
    }

    /// The same router with another rule for which addresses may be connected to, such as those of a private network.
    pub fn with_rule(mut self, may_connect: fn(IpAddr) -> bool) -> Self {
        self.may_connect = may_connect;
        self
    }

    /// The servers for a domain's mail in the order to try them; at least one. Servers of the same rank are shuffled by
    /// `seed`, so that each gets its share.
    pub async fn route(&self, domain: &str, seed: u64) -> Result<Vec<Host>, NoRoute> {
        timeout(CHECK_TIMEOUT, self.find(domain, seed)).await.unwrap_or(Err(NoRoute::Unavailable))
    }

    async fn find(&self, domain: &str, seed: u64) -> Result<Vec<Host>, NoRoute> {
        let mut servers: Vec<(u16, String)> =
            self.dns.mx(domain).await?.into_iter().map(|(rank, name)| (rank, normalised(&name))).collect();
        if servers.is_empty() {
            // Without MX records the domain itself is the mail server (implicit MX).
            servers.push((0, normalised(domain)));
        } else {
            servers.retain(|(_, name)| !name.is_empty());
            if servers.is_empty() {
                return Err(NoRoute::NullMx);
            }
        }
        servers.sort_by_key(|(rank, name)| (*rank, shuffle(seed, name)));
        servers.dedup_by(|later, earlier| later.1 == earlier.1);
        servers.truncate(MAX_HOSTS);
        self.resolve(servers, seed).await
    }

    /// Resolves servers up to this one: less preferred ones would only send the message back to us.
    async fn resolve(&self, servers: Vec<(u16, String)>, seed: u64) -> Result<Vec<Host>, NoRoute> {
        let mut found: Vec<(u16, Host)> = Vec::new();
        let mut own_rank = None;
        let mut failure = NoRoute::NoServer;
        for (rank, name) in servers {
            if own_rank.is_some_and(|own| rank >= own) {
                break;
            }
            if self.own_names.contains(&name) {
                own_rank = Some(rank);
                continue;
            }
            match self.addresses(&name).await {
                Ok(addresses) if addresses.iter().any(|one| self.own_addresses.contains(one)) => {
                    own_rank = Some(rank);
                }
                Ok(addresses) if addresses.is_empty() => {}
                Ok(addresses) => match self.allowed(addresses, seed) {
                    allowed if allowed.is_empty() => failure = failure.or(NoRoute::NotPublic),
                    addresses => found.push((rank, Host { name, addresses })),
                },
                Err(Unavailable) => failure = failure.or(NoRoute::Unavailable),
            }
        }
        if let Some(own) = own_rank {
            found.retain(|(rank, _)| *rank < own);
            failure = failure.or(NoRoute::Loop);
        }
        if found.is_empty() { Err(failure) } else { Ok(found.into_iter().map(|(_, host)| host).collect()) }
    }

    /// The addresses of a name. One family is enough when the other lookup fails.
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unavailable> {
        let (v6, v4) = tokio::join!(self.dns.ipv6(name), self.dns.ipv4(name));
        let mut addresses: Vec<IpAddr> = Vec::new();
        addresses.extend(v6.iter().flatten().copied().map(IpAddr::V6));
        addresses.extend(v4.iter().flatten().copied().map(IpAddr::V4));
        if addresses.is_empty() && (v6.is_err() || v4.is_err()) { Err(Unavailable) } else { Ok(addresses) }
    }

    /// Allowed addresses, alternating families so that a host without IPv6 or IPv4 loses little time.
    fn allowed(&self, mut addresses: Vec<IpAddr>, seed: u64) -> Vec<IpAddr> {
        addresses.retain(|address| (self.may_connect)(*address));
        addresses.sort_by_key(|address| shuffle(seed, address));
        let (v6, v4): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv6);
        let mut turns: Vec<(usize, Reverse<bool>, IpAddr)> = Vec::new();
        for kind in [v6, v4] {
            turns.extend(kind.into_iter().enumerate().map(|(turn, one)| (turn, Reverse(one.is_ipv6()), one)));
        }
        turns.sort_unstable_by_key(|(turn, kind, _)| (*turn, *kind));
        turns.into_iter().map(|(_, _, address)| address).take(MAX_ADDRESSES).collect()
    }
}

impl NoRoute {
    /// The less permanent of two reasons, so that a delivery is not given up too early.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unavailable, _) | (_, Self::Unavailable) => Self::Unavailable,
            (Self::NoServer, other) => other,
            (first, _) => first,
        }
    }
}

/// A sort key for a random order that depends on the seed only.
fn shuffle(seed: u64, value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, value).hash(&mut hasher);
    hasher.finish()
}

fn normalised(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}
