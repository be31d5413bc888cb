//! Whether a host may send for a domain (SPF, RFC 7208).
//!
//! The records are read by mail-auth, but evaluated here: its own evaluation knows no limit on empty answers and takes
//! the first of several records where the standard sees an error.

mod syntax;

use std::net::IpAddr;

use mail_auth::common::parse::TxtRecordParser;
use mail_auth::spf::{Macro, Mechanism, Qualifier, Spf, Variables};

use super::verdict::Verdict;
use crate::address::Address;
use crate::dns::{Dns, Unavailable};

/// Terms of a record that ask DNS (RFC 7208, section 4.6.4).
const MAX_LOOKUPS: usize = 10;

/// Lookups that may return no records (RFC 7208, section 4.6.4).
const MAX_VOID_LOOKUPS: usize = 2;

/// Mail servers of one `mx` term, and PTR names of one address, that are checked.
const MAX_NAMES: usize = 10;

/// The longest name that can be looked up in DNS.
const MAX_DOMAIN_BYTES: usize = 253;

/// What SPF says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Pass,
    Fail,
    SoftFail,
    Neutral,
    None,
    TempError,
    PermError,
}

impl Outcome {
    /// The verdict: a soft failure still says that the host is not one of the domain's.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Pass => Verdict::Pass,
            Self::Fail | Self::SoftFail => Verdict::Fail,
            Self::Neutral | Self::None | Self::TempError | Self::PermError => Verdict::Unknown,
        }
    }
}

/// What is known about a delivery before the message itself.
pub(super) struct Envelope<'a> {
    peer: IpAddr,
    helo: &'a str,
    our_host: &'a str,
    /// The address whose domain is checked: the envelope sender, or postmaster at the HELO name for the null sender.
    sender: Option<Sender>,
}

/// An address whose local part matters only to macros.
struct Sender {
    local: String,
    domain: String,
}

impl Sender {
    /// Splits an address; routes and anything else with a second `@` outside quotation marks are refused.
    fn parse(text: &str) -> Option<Self> {
        let (local, host) = text.rsplit_once('@')?;
        let quoted = local.starts_with('"') && local.ends_with('"');
        let domain = Address::parse(&format!("postmaster@{host}")).ok()?.domain().to_owned();
        let named = if local.is_empty() { "postmaster" } else { local };
        (quoted || !local.contains(['@', ':', ','])).then(|| Self { local: named.to_owned(), domain })
    }
}

impl<'a> Envelope<'a> {
    pub(super) fn new(peer: IpAddr, helo: &'a str, our_host: &'a str, mail_from: Option<&str>) -> Self {
        // The peer's own name counts only for the null sender; otherwise it could lend its record to another domain.
        let sender = match mail_from.filter(|sender| !sender.is_empty()) {
            Some(sender) => Sender::parse(sender),
            None => Sender::parse(&format!("postmaster@{helo}")),
        };
        Self { peer: peer.to_canonical(), helo, our_host, sender }
    }

    /// The domain that SPF speaks about.
    pub(super) fn domain(&self) -> Option<&str> {
        self.sender.as_ref().map(|sender| sender.domain.as_str())
    }
}

/// Asks whether the peer may send for the envelope's sender.
pub(super) async fn check(dns: &Dns, envelope: &Envelope<'_>) -> Outcome {
    let Some(sender) = &envelope.sender else { return Outcome::None };
    let mut evaluation = Evaluation { dns, envelope, sender, lookups: 0, void_lookups: 0, host_name: None };
    let outcome = evaluation.check_host(sender.domain.clone()).await;
    outcome.unwrap_or_else(Outcome::from)
}

/// Why an evaluation ends early.
#[derive(Clone, Copy, Debug)]
enum EarlyResult {
    Temporary,
    Permanent,
}

impl From<EarlyResult> for Outcome {
    fn from(stop: EarlyResult) -> Self {
        match stop {
            EarlyResult::Temporary => Self::TempError,
            EarlyResult::Permanent => Self::PermError,
        }
    }
}

impl From<Unavailable> for EarlyResult {
    fn from(_: Unavailable) -> Self {
        Self::Temporary
    }
}

impl From<&Qualifier> for Outcome {
    fn from(qualifier: &Qualifier) -> Self {
        match qualifier {
            Qualifier::Pass => Self::Pass,
            Qualifier::Fail => Self::Fail,
            Qualifier::SoftFail => Self::SoftFail,
            Qualifier::Neutral => Self::Neutral,
        }
    }
}

/// One evaluation and the lookups it has used so far.
struct Evaluation<'a> {
    dns: &'a Dns,
    envelope: &'a Envelope<'a>,
    sender: &'a Sender,
    lookups: usize,
    void_lookups: usize,
    /// The validated name of the peer, once a macro needs it.
    host_name: Option<String>,
}

impl Evaluation<'_> {
    /// `check_host()` of the standard; it calls itself at most once per counted look-up.
    async fn check_host(&mut self, domain: String) -> Result<Outcome, EarlyResult> {
        if !is_domain(&domain) {
            return Ok(Outcome::None);
        }
        let Some(record) = self.record(&domain).await? else { return Ok(Outcome::None) };
        for directive in &record.directives {
            if self.matches(&directive.mechanism, &domain).await? {
                return Ok(Outcome::from(&directive.qualifier));
            }
        }
        let Some(redirect) = &record.redirect else { return Ok(Outcome::Neutral) };
        self.count_lookup()?;
        let target = self.expand(redirect, &domain).await?;
        match Box::pin(self.check_host(target)).await? {
            Outcome::None => Err(EarlyResult::Permanent),
            outcome => Ok(outcome),
        }
    }

    /// The one record of a domain; several, or one that cannot be read, are an error.
    async fn record(&self, domain: &str) -> Result<Option<Spf>, EarlyResult> {
        let texts = self.dns.txt(domain).await?;
        let mut records = texts.iter().filter(|text| is_record(text));
        match (records.next(), records.next()) {
            (None, _) => Ok(None),
            (Some(text), None) => {
                let terms = syntax::decisive(text).ok_or(EarlyResult::Permanent)?;
                Spf::parse(terms.as_bytes()).map(Some).map_err(|_| EarlyResult::Permanent)
            }
            (Some(_), Some(_)) => Err(EarlyResult::Permanent),
        }
    }

    async fn matches(&mut self, mechanism: &Mechanism, domain: &str) -> Result<bool, EarlyResult> {
        let peer = self.envelope.peer;
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Ip4 { addr, mask } => Ok(in_network(peer, (*addr).into(), *mask, 0)),
            Mechanism::Ip6 { addr, mask } => Ok(in_network(peer, (*addr).into(), 0, *mask)),
            Mechanism::A { macro_string, ip4_mask, ip6_mask } => {
                self.count_lookup()?;
                let target = self.expand(macro_string, domain).await?;
                self.has_address(&target, *ip4_mask, *ip6_mask).await
            }
            Mechanism::Mx { macro_string, ip4_mask, ip6_mask } => {
                self.count_lookup()?;
                let target = self.expand(macro_string, domain).await?;
                self.has_mail_server(&target, *ip4_mask, *ip6_mask).await
            }
            Mechanism::Include { macro_string } => {
                self.count_lookup()?;
                let target = self.expand(macro_string, domain).await?;
                match Box::pin(self.check_host(target)).await? {
                    Outcome::Pass => Ok(true),
                    Outcome::Fail | Outcome::SoftFail | Outcome::Neutral => Ok(false),
                    Outcome::TempError => Err(EarlyResult::Temporary),
                    Outcome::None | Outcome::PermError => Err(EarlyResult::Permanent),
                }
            }
            Mechanism::Ptr { macro_string } => {
                self.count_lookup()?;
                let target = self.expand(macro_string, domain).await?;
                Ok(self.proven_names().await.iter().any(|name| is_same_or_below(name, &target)))
            }
            Mechanism::Exists { macro_string } => {
                self.count_lookup()?;
                let target = self.expand(macro_string, domain).await?;
                let found = self.dns.ipv4(&target).await?;
                self.count_void(found.is_empty())?;
                Ok(!found.is_empty())
            }
        }
    }

    /// Whether one of the name's addresses, widened to its network, is the peer's.
    async fn has_address(&mut self, name: &str, ip4_mask: u32, ip6_mask: u128) -> Result<bool, EarlyResult> {
        let peer = self.envelope.peer;
        let addresses: Vec<IpAddr> = match peer {
            IpAddr::V4(_) => self.dns.ipv4(name).await?.into_iter().map(IpAddr::V4).collect(),
            IpAddr::V6(_) => self.dns.ipv6(name).await?.into_iter().map(IpAddr::V6).collect(),
        };
        self.count_void(addresses.is_empty())?;
        Ok(addresses.into_iter().any(|address| in_network(peer, address, ip4_mask, ip6_mask)))
    }

    async fn has_mail_server(
        &mut self,
        name: &str,
        ip4_mask: u32,
        ip6_mask: u128,
    ) -> Result<bool, EarlyResult> {
        let servers = self.dns.mx(name).await?;
        self.count_void(servers.is_empty())?;
        if servers.len() > MAX_NAMES {
            return Err(EarlyResult::Permanent);
        }
        for (_, server) in servers {
            if self.has_address(&server, ip4_mask, ip6_mask).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The PTR names of the peer that resolve back to its address. A DNS error here counts as none.
    async fn proven_names(&self) -> Vec<String> {
        let peer = self.envelope.peer;
        let mut proven = Vec::new();
        for name in self.dns.ptr(peer).await.unwrap_or_default().into_iter().take(MAX_NAMES) {
            let leads_back = match peer {
                IpAddr::V4(address) => self.dns.ipv4(&name).await.is_ok_and(|found| found.contains(&address)),
                IpAddr::V6(address) => self.dns.ipv6(&name).await.is_ok_and(|found| found.contains(&address)),
            };
            if leads_back {
                proven.push(name.trim_end_matches('.').to_owned());
            }
        }
        proven
    }

    /// The name that a term speaks of: the domain itself, or what its macros become.
    async fn expand(&mut self, text: &Macro, domain: &str) -> Result<String, EarlyResult> {
        if text.needs_ptr() && self.host_name.is_none() {
            self.count_lookup()?;
            let names = self.proven_names().await;
            let best = names.iter().find(|name| is_same_or_below(name, domain)).or(names.first());
            self.host_name = Some(best.cloned().unwrap_or_else(|| "unknown".to_owned()));
        }
        let mut variables = Variables::new();
        variables.set_ip(&self.envelope.peer);
        variables.set_sender(format!("{}@{}", self.sender.local, self.sender.domain).into_bytes());
        variables.set_domain(domain.as_bytes().to_vec());
        variables.set_helo_domain(self.envelope.helo.as_bytes().to_vec());
        variables.set_host_domain(self.envelope.our_host.as_bytes().to_vec());
        variables.set_validated_domain(self.host_name.clone().unwrap_or_default().into_bytes());
        let expanded = text.eval(&variables, domain, false);
        Ok(shorten(expanded.trim_end_matches('.')).to_owned())
    }

    fn count_lookup(&mut self) -> Result<(), EarlyResult> {
        self.lookups += 1;
        if self.lookups > MAX_LOOKUPS { Err(EarlyResult::Permanent) } else { Ok(()) }
    }

    fn count_void(&mut self, found_nothing: bool) -> Result<(), EarlyResult> {
        self.void_lookups += usize::from(found_nothing);
        if self.void_lookups > MAX_VOID_LOOKUPS { Err(EarlyResult::Permanent) } else { Ok(()) }
    }
}

/// Whether a TXT record is one of SPF: the version alone, or followed by a blank.
fn is_record(text: &[u8]) -> bool {
    text.get(..6).is_some_and(|version| version.eq_ignore_ascii_case(b"v=spf1"))
        && text.get(6).is_none_or(|next| *next == b' ')
}

/// Whether a name has at least two labels of permitted length.
fn is_domain(name: &str) -> bool {
    let labels = name.split('.');
    name.len() <= MAX_DOMAIN_BYTES
        && name.contains('.')
        && labels.into_iter().all(|label| (1..=63).contains(&label.len()))
}

/// Whether a name is the domain or a subdomain of it.
fn is_same_or_below(name: &str, domain: &str) -> bool {
    let head = name.len().checked_sub(domain.len()).and_then(|split| name.split_at_checked(split));
    head.is_some_and(|(head, tail)| {
        tail.eq_ignore_ascii_case(domain) && (head.is_empty() || head.ends_with('.'))
    })
}

/// Drops labels from the left until the name is short enough for DNS (RFC 7208, section 7.3).
fn shorten(name: &str) -> &str {
    let mut rest = name;
    while rest.len() > MAX_DOMAIN_BYTES {
        rest = rest.split_once('.').map_or("", |(_, tail)| tail);
    }
    rest
}

/// Whether two addresses of one family are in the same network.
fn in_network(peer: IpAddr, address: IpAddr, ip4_mask: u32, ip6_mask: u128) -> bool {
    match (peer, address) {
        (IpAddr::V4(peer), IpAddr::V4(address)) => peer.to_bits() & ip4_mask == address.to_bits() & ip4_mask,
        (IpAddr::V6(peer), IpAddr::V6(address)) => peer.to_bits() & ip6_mask == address.to_bits() & ip6_mask,
        _ => false,
    }
}
