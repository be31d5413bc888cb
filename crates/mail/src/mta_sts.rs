//! MTA-STS (RFC 8461): domains that want their mail encrypted, and sent only to servers that prove to be theirs.
//!
//! What a domain wants stands in a file on a web server of its own. How that is fetched is the caller's business; here is
//! when to fetch it, what it says, and for how long it holds even if it cannot be fetched any more.

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

/// Domains that are remembered.
const MAX_DOMAINS: usize = 10_000;

/// How long it is remembered that a file could not be fetched, in seconds.
const RETRY_AFTER: i64 = 300;

/// How long the fetching of a file may take.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

/// Fetches a file by HTTPS.
///
/// The certificate must hold for the host of the address, no redirection may be followed, only status 200 counts, the
/// media type should be `text/plain`, and no more than [`MAX_POLICY_BYTES`] need be read. As the address is named by
/// strangers, only public ones may be connected to.
pub trait Fetch: Send + Sync {
    /// The bytes of the file; nothing when it cannot be had.
    fn fetch(&self, url: &str) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Knows what domains want, and remembers it.
pub struct MtaSts<F> {
    dns: Dns,
    fetch: F,
    known: Mutex<HashMap<String, Known>>,
}

/// What is known about a domain.
#[derive(Clone)]
struct Known {
    /// The version that the domain's record named when this was fetched, or tried to be.
    id: String,
    /// What the file said.
    policy: Option<Arc<Policy>>,
    /// Until when that holds.
    until: i64,
}

impl<F: Fetch> MtaSts<F> {
    /// Knows nothing yet.
    pub fn new(dns: Dns, fetch: F) -> Self {
        Self { dns, fetch, known: Mutex::new(HashMap::new()) }
    }

    /// What a domain wants now, if it wants anything; `now` is the time in seconds since 1970.
    ///
    /// A policy that was seen holds for as long as it said, even when its record or its file is gone: otherwise whoever
    /// can suppress those could suppress the encryption too.
    pub async fn policy(&self, domain: &str, now: i64) -> Option<Arc<Policy>> {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        let known = self.recall(&domain, now);
        let id = match record_id(&self.dns, &domain).await {
            Ok(Some(id)) => id,
            Ok(None) | Err(Unavailable) => return known.and_then(|known| known.policy),
        };
        if let Some(known) = &known
            && known.id == id
        {
            return known.policy.clone();
        }
        let fetched = timeout(FETCH_LIMIT, self.fetch.fetch(&policy_url(&domain))).await.ok().flatten();
        let fresh = fetched.and_then(|bytes| Policy::parse(&bytes).ok()).map(Arc::new);
        let next = match (fresh, known) {
            (Some(policy), _) => {
                Known { id, until: now.saturating_add(i64::from(policy.max_age)), policy: Some(policy) }
            }
            // The old one holds on, and the new one is tried again with the next mail.
            (None, Some(old)) if old.policy.is_some() => return old.policy,
            (None, _) => Known { id, policy: None, until: now.saturating_add(RETRY_AFTER) },
        };
        let policy = next.policy.clone();
        self.remember(domain, next, now);
        policy
    }

    fn recall(&self, domain: &str, now: i64) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(domain).filter(|known| known.until > now).cloned()
    }

    fn remember(&self, domain: String, next: Known, now: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_DOMAINS && !known.contains_key(&domain) {
            known.retain(|_, known| known.until > now);
            // Whoever asks for thousands of domains must not push the memory beyond its bound.
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

/// Where the file of a domain is.
pub fn policy_url(domain: &str) -> String {
    format!("https://mta-sts.{domain}/.well-known/mta-sts.txt")
}

/// The version of a domain's policy by its record in DNS; nothing when it has none.
pub async fn record_id(dns: &Dns, domain: &str) -> Result<Option<String>, Unavailable> {
    let records = dns.txt(&format!("_mta-sts.{domain}")).await?;
    let mut ours = records.iter().filter(|record| is_version(record));
    // More than one is as good as none.
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
