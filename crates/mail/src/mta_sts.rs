//! MTA-STS (RFC 8461): domains that require encryption and servers with a valid certificate.
//!
//! A domain publishes its policy as a file on its web server. The caller provides the HTTPS client; this module decides
//! when to fetch the policy, parses it, and keeps it for its lifetime even if it cannot be fetched any more.

mod policy;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use crate::dns::{Dns, Unavailable};

pub use policy::{MAX_POLICY_BYTES, Mode, Policy, PolicyError};

/// Maximum number of cached domains.
const MAX_DOMAINS: usize = 10_000;

/// How long a failed fetch is cached, in seconds.
const RETRY_SECONDS: i64 = 300;

/// Timeout for fetching a policy.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Fetches a policy over HTTPS.
///
/// The certificate must be valid for the host, redirects are not followed, only status 200 counts, the media type
/// should be `text/plain`, and no more than [`MAX_POLICY_BYTES`] need be read. The host is untrusted, so only public
/// addresses may be connected to.
pub trait Fetch: Send + Sync {
    /// The bytes of the file; nothing when it cannot be fetched.
    fn fetch(&self, url: &str) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Fetches and caches policies.
pub struct MtaSts<F> {
    dns: Dns,
    fetch: F,
    known: Mutex<HashMap<String, CachedPolicy>>,
}

/// The cached policy of a domain.
#[derive(Clone)]
struct CachedPolicy {
    /// The id in the domain's TXT record at the time of the fetch, successful or not.
    id: String,
    /// The policy, if the fetch succeeded.
    policy: Option<Arc<Policy>>,
    /// When the entry expires.
    until: i64,
}

impl<F: Fetch> MtaSts<F> {
    /// An empty cache.
    pub fn new(dns: Dns, fetch: F) -> Self {
        Self { dns, fetch, known: Mutex::new(HashMap::new()) }
    }

    /// The current policy of a domain, if it has one; `now` is the time in seconds since 1970.
    ///
    /// A policy stays valid for its lifetime even when its record or its file disappears: otherwise an attacker who can
    /// suppress those could suppress the encryption too.
    pub async fn policy(&self, domain: &str, now: i64) -> Option<Arc<Policy>> {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        let known = self.find_cached(&domain, now);
        let id = match record_id(&self.dns, &domain).await {
            Ok(Some(id)) => id,
            Ok(None) | Err(Unavailable) => return known.and_then(|known| known.policy),
        };
        if let Some(known) = &known
            && known.id == id
        {
            return known.policy.clone();
        }
        let fetched = timeout(FETCH_TIMEOUT, self.fetch.fetch(&policy_url(&domain))).await.ok().flatten();
        let fresh = fetched.and_then(|bytes| Policy::parse(&bytes).ok()).map(Arc::new);
        let next = match (fresh, known) {
            (Some(policy), _) => CachedPolicy {
                id,
                until: now.saturating_add(i64::from(policy.max_age)),
                policy: Some(policy),
            },
            // Keep the old policy; the new one is fetched again with the next message.
            (None, Some(old)) if old.policy.is_some() => return old.policy,
            (None, _) => CachedPolicy { id, policy: None, until: now.saturating_add(RETRY_SECONDS) },
        };
        let policy = next.policy.clone();
        self.cache(domain, next, now);
        policy
    }

    fn find_cached(&self, domain: &str, now: i64) -> Option<CachedPolicy> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(domain).filter(|known| known.until > now).cloned()
    }

    fn cache(&self, domain: String, next: CachedPolicy, now: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_DOMAINS && !known.contains_key(&domain) {
            known.retain(|_, known| known.until > now);
            // Mail to thousands of domains must not grow the cache beyond its bound.
            if known.len() >= MAX_DOMAINS
                && let Some(soonest) =
                    known.iter().min_by_key(|(_, known)| known.until).map(|(name, _)| name.clone())
            {
                known.remove(&soonest);
            }
        }
        known.insert(domain, next);
    }
}

/// The URL of a domain's policy.
pub fn policy_url(domain: &str) -> String {
    format!("https://mta-sts.{domain}/.well-known/mta-sts.txt")
}

/// The id of a domain's policy in its TXT record; nothing without one.
pub async fn record_id(dns: &Dns, domain: &str) -> Result<Option<String>, Unavailable> {
    let records = dns.txt(&format!("_mta-sts.{domain}")).await?;
    let mut ours = records.iter().filter(|record| is_version(record));
    // Several records count as none.
    let (Some(record), None) = (ours.next(), ours.next()) else { return Ok(None) };
    Ok(read_id(record))
}

fn is_version(record: &[u8]) -> bool {
    let first = record.split(|byte| *byte == b';').next().unwrap_or_default();
    first.trim_ascii() == b"v=STSv1"
}

fn read_id(record: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(record).ok()?;
    let value = text.split(';').find_map(|field| field.trim().strip_prefix("id="))?;
    let is_sound = (1..=32).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_sound.then(|| value.to_owned())
}
