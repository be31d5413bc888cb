//! DNS queries with the three results that matter: records, no records, or not available now.

#[cfg(any(test, feature = "name-server"))]
pub mod name_server;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Resolver, TokioResolver};
use mail_auth::MessageAuthenticator;

/// Timeout of one query to one server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Attempts for one query.
const MAX_QUERY_ATTEMPTS: usize = 2;

/// Maximum number of cached answers.
const MAX_CACHE_ENTRIES: u64 = 2048;

/// Upper bound for the TTL of cached answers.
const MAX_TTL: Duration = Duration::from_hours(1);

/// Upper bound for the TTL of cached negative answers.
const MAX_NEGATIVE_TTL: Duration = Duration::from_mins(5);

/// Records of one type that are read from an answer; the rest is ignored.
const MAX_RECORDS: usize = 200;

/// Why no resolver could be created.
#[derive(Debug, thiserror::Error)]
#[error("The name servers cannot be used.")]
pub struct ResolverError(#[source] NetError);

/// The query failed for now; a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The name servers do not answer.")]
pub struct Unavailable;

/// The resolver and its bounded cache. Clones share both; one per process is enough.
#[derive(Clone)]
pub struct Dns {
    inner: MessageAuthenticator,
}

impl Dns {
    /// Asks the name servers that the system is configured with.
    pub fn from_system() -> Result<Self, ResolverError> {
        let (config, options) = read_system_conf().map_err(ResolverError)?;
        Self::build(config, options, MAX_CACHE_ENTRIES)
    }

    /// Asks the given name servers.
    pub fn with_servers(addresses: &[SocketAddr]) -> Result<Self, ResolverError> {
        Self::build(config_for(addresses), ResolverOpts::default(), MAX_CACHE_ENTRIES)
    }

    /// Asks the given name servers, or the system's if there are none, without a cache: for callers that have just
    /// changed a record and want to see it.
    pub fn without_cache(addresses: &[SocketAddr]) -> Result<Self, ResolverError> {
        if addresses.is_empty() {
            let (config, options) = read_system_conf().map_err(ResolverError)?;
            return Self::build(config, options, 0);
        }
        Self::build(config_for(addresses), ResolverOpts::default(), 0)
    }

    fn build(
        config: ResolverConfig,
        mut options: ResolverOpts,
        remembered: u64,
    ) -> Result<Self, ResolverError> {
        options.timeout = QUERY_TIMEOUT;
        options.attempts = MAX_QUERY_ATTEMPTS;
        options.cache_size = remembered;
        options.positive_max_ttl = Some(MAX_TTL);
        options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
        options.edns0 = true;
        // The hosts file says nothing about what a domain publishes.
        options.use_hosts_file = ResolveHosts::Never;
        let builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver: TokioResolver = builder.with_options(options).build().map_err(ResolverError)?;
        Ok(Self { inner: MessageAuthenticator(resolver) })
    }

    /// The same resolver for mail-auth.
    pub(crate) fn for_signatures(&self) -> &MessageAuthenticator {
        &self.inner
    }

    /// The TXT records of a name, the strings of each joined.
    pub async fn txt(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.records(name, RecordType::TXT, |data| match data {
            RData::TXT(txt) => Some(txt.txt_data.concat()),
            _ => None,
        })
        .await
    }

    /// The IPv4 addresses of a name.
    pub async fn ipv4(&self, name: &str) -> Result<Vec<Ipv4Addr>, Unavailable> {
        self.records(name, RecordType::A, |data| match data {
            RData::A(address) => Some(address.0),
            _ => None,
        })
        .await
    }

    /// The IPv6 addresses of a name.
    pub async fn ipv6(&self, name: &str) -> Result<Vec<Ipv6Addr>, Unavailable> {
        self.records(name, RecordType::AAAA, |data| match data {
            RData::AAAA(address) => Some(address.0),
            _ => None,
        })
        .await
    }

    /// A domain's mail servers with their preferences, in no order; the name of the null MX is a dot.
    pub async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, Unavailable> {
        self.records(name, RecordType::MX, |data| match data {
            RData::MX(mx) => Some((mx.preference, mx.exchange.to_ascii())),
            _ => None,
        })
        .await
    }

    /// The PTR names of an address.
    pub async fn ptr(&self, address: IpAddr) -> Result<Vec<String>, Unavailable> {
        let name = Name::from(address);
        self.lookup(name, RecordType::PTR, |data| match data {
            RData::PTR(ptr) => Some(ptr.0.to_lowercase().to_ascii()),
            _ => None,
        })
        .await
    }

    async fn records<T>(
        &self,
        name: &str,
        kind: RecordType,
        pick: impl Fn(&RData) -> Option<T>,
    ) -> Result<Vec<T>, Unavailable> {
        // An invalid name has no records.
        let Ok(mut parsed) = Name::from_str_relaxed(name) else { return Ok(Vec::new()) };
        parsed.set_fqdn(true);
        self.lookup(parsed, kind, pick).await
    }

    async fn lookup<T>(
        &self,
        name: Name,
        kind: RecordType,
        pick: impl Fn(&RData) -> Option<T>,
    ) -> Result<Vec<T>, Unavailable> {
        match self.inner.0.lookup(name, kind).await {
            Ok(answer) => Ok(answer
                .answers()
                .iter()
                .filter_map(|record| pick(&record.data))
                .take(MAX_RECORDS)
                .collect()),
            Err(NetError::Dns(DnsError::NoRecordsFound(none)))
                if matches!(none.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
            {
                Ok(Vec::new())
            }
            Err(_) => Err(Unavailable),
        }
    }
}

fn config_for(addresses: &[SocketAddr]) -> ResolverConfig {
    let servers = addresses.iter().map(|address| {
        let mut server = NameServerConfig::udp_and_tcp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        server
    });
    ResolverConfig::from_name_servers(servers.collect())
}
