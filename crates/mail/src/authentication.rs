//! Sender authentication: SPF, DKIM, DMARC and ARC, evaluated by ourselves.
//!
//! Claims in the message itself, such as `Authentication-Results`, are ignored: only the peer's address, the SMTP
//! envelope, the signatures and DNS count. A verdict is never better than what was proven; a check that does not finish
//! in time is `unknown`.

mod author;
mod dkim;
mod dmarc;
mod evidence;
mod spf;
#[cfg(test)]
mod tests;
mod verdict;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::dns::Dns;
use author::Author;
use evidence::Evidence;

pub use crate::dns::ResolverError;
pub use verdict::Verdict;

pub(crate) use dkim::without_blank_lines;

/// Time limit for checking one message.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Share of that time for SPF and signatures, so that enough is left to look up the policy.
const EVIDENCE_SHARE: f64 = 0.7;

/// Messages checked at the same time; others wait, within their time limit.
const MAX_CONCURRENT_CHECKS: usize = 128;

/// What is known about a mail's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Authentication {
    /// Whether the domain of the From line stands behind the mail. This is the verdict to act on.
    ///
    /// It passes when DMARC does. Where the domain publishes no policy, it passes only when SPF or a signature passed
    /// for exactly that domain, and fails when SPF failed for exactly that domain.
    pub status: Verdict,
    /// Whether the sending host may use the domain of the envelope's sender, which need not be that of the From line.
    pub spf: Verdict,
    /// Whether any signature is valid; its domain need not be that of the From line.
    pub dkim: Verdict,
    /// Whether SPF or a signature passed for the domain of the From line, by the rules that this domain publishes.
    pub dmarc: Verdict,
    /// Whether the chain of forwarders (RFC 8617) is intact. No forwarder is trusted, so it changes no other verdict.
    #[serde(skip)]
    pub arc: Verdict,
}

/// Checks arriving messages. Has the resolver and its bounded cache; one per process is enough.
pub struct Authenticator {
    dns: Dns,
    permits: Semaphore,
    time_limit: Duration,
}

impl Authenticator {
    /// Asks the name servers that the system is configured with.
    pub fn from_system() -> Result<Self, ResolverError> {
        Ok(Self::new(Dns::from_system()?))
    }

    /// Asks the given name servers.
    pub fn with_servers(addresses: &[SocketAddr]) -> Result<Self, ResolverError> {
        Ok(Self::new(Dns::with_servers(addresses)?))
    }

    /// Uses a shared resolver.
    pub fn new(dns: Dns) -> Self {
        Self { dns, permits: Semaphore::new(MAX_CONCURRENT_CHECKS), time_limit: CHECK_TIMEOUT }
    }

    /// Checks a message that `peer` delivered, within ten seconds.
    ///
    /// `helo` is what the peer called itself, `our_host` our own name (for macros of SPF records) and `mail_from` the
    /// envelope's sender; nothing or an empty text is the null sender.
    pub async fn check(
        &self,
        peer: IpAddr,
        helo: &str,
        our_host: &str,
        mail_from: Option<&str>,
        raw: &[u8],
    ) -> Authentication {
        let started = Instant::now();
        let evidence_limit = started + self.time_limit.mul_f64(EVIDENCE_SHARE);
        let author = match author::read(raw) {
            Author::One(address) => address,
            // Two parsers could see two different senders, which is how senders are forged.
            Author::Ambiguous => {
                return Authentication {
                    status: Verdict::Fail,
                    dmarc: Verdict::Fail,
                    ..Authentication::default()
                };
            }
            Author::Unreadable => return Authentication::default(),
        };
        let Ok(Ok(_permit)) = timeout_at(evidence_limit, self.permits.acquire()).await else {
            return Authentication::default();
        };
        let envelope = spf::Envelope::new(peer, helo, our_host, mail_from);
        let (spf, signatures) = tokio::join!(
            timeout_at(evidence_limit, spf::check(&self.dns, &envelope)),
            timeout_at(evidence_limit, dkim::check(&self.dns, raw)),
        );
        let evidence = Evidence {
            spf: spf.unwrap_or(spf::Outcome::TempError),
            spf_domain: envelope.domain(),
            signatures: signatures.unwrap_or_else(|_| dkim::Signatures::undecided()),
        };
        let policy =
            timeout_at(started + self.time_limit, dmarc::check(&self.dns, author.domain(), &evidence))
                .await
                .unwrap_or(dmarc::Finding::Undecided);
        conclude(&evidence, author.domain(), policy)
    }
}

/// What the evidence and the policy of the author's domain say together.
fn conclude(evidence: &Evidence<'_>, author_domain: &str, policy: dmarc::Finding) -> Authentication {
    let dmarc = policy.verdict();
    let status = match policy {
        dmarc::Finding::NoPolicy => evidence.status_without_policy(author_domain),
        _ => dmarc,
    };
    Authentication {
        status,
        spf: evidence.spf.verdict(),
        dkim: evidence.signatures.verdict,
        dmarc,
        arc: evidence.signatures.arc,
    }
}
