//! DMARC: whether the evidence is aligned with the From line, by the policy that its domain publishes.
//!
//! Policies and organisational domains are found by walking up the labels of a name (RFC 9989). A record of a top-level
//! domain is treated as a registry's even if it does not say so: names below it belong to different owners.

use mail_auth::common::parse::TxtRecordParser;
use mail_auth::dmarc::{Alignment, Dmarc, Policy, Psd};

use super::evidence::{Evidence, Identity};
use super::spf::Outcome;
use super::verdict::Verdict;
use crate::dns::{Dns, Unavailable};

/// The most labels that a walk asks about after the name itself.
const MAX_WALK_LABELS: usize = 7;

/// What DMARC says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Pass,
    Fail,
    /// The domain publishes no policy.
    NoPolicy,
    /// The policy could not be looked up.
    Undecided,
}

impl Finding {
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Pass => Verdict::Pass,
            Self::Fail => Verdict::Fail,
            Self::NoPolicy | Self::Undecided => Verdict::Unknown,
        }
    }
}

/// Evaluates the evidence by the policy of the author's domain.
pub(super) async fn check(dns: &Dns, author_domain: &str, evidence: &Evidence<'_>) -> Finding {
    align(dns, author_domain, evidence).await.unwrap_or(Finding::Undecided)
}

async fn align(dns: &Dns, author_domain: &str, evidence: &Evidence<'_>) -> Result<Finding, Unavailable> {
    let found = walk(dns, author_domain).await?;
    let organisation = organisation(&found, author_domain);
    let Some(record) = policy(&found, author_domain, organisation) else { return Ok(Finding::NoPolicy) };
    let mut undecided = !evidence.signatures.complete;
    for (identity, domain, verdict) in evidence.identities() {
        if verdict == Verdict::Fail {
            continue;
        }
        let alignment = match identity {
            Identity::Spf => record.aspf,
            Identity::Dkim => record.adkim,
        };
        // An SPF check without a result is no evidence; only one that failed to run leaves the verdict open.
        let open =
            verdict == Verdict::Unknown && (identity == Identity::Dkim || evidence.spf == Outcome::TempError);
        if verdict != Verdict::Pass && !open {
            continue;
        }
        if domain == author_domain
            || (alignment == Alignment::Relaxed && belongs(dns, domain, organisation).await?)
        {
            if verdict == Verdict::Pass {
                return Ok(Finding::Pass);
            }
            undecided = true;
        }
    }
    Ok(if undecided { Finding::Undecided } else { Finding::Fail })
}

/// Whether a domain is of the same organisation.
async fn belongs(dns: &Dns, domain: &str, organisation: &str) -> Result<bool, Unavailable> {
    let head = domain.strip_suffix(organisation);
    if !head.is_some_and(|head| head.is_empty() || head.ends_with('.')) {
        return Ok(false);
    }
    let found = walk(dns, domain).await?;
    Ok(self::organisation(&found, domain) == organisation)
}

/// The records found on the way from a name to its top-level domain, longest name first.
async fn walk<'d>(dns: &Dns, domain: &'d str) -> Result<Vec<(&'d str, Dmarc)>, Unavailable> {
    let mut found = Vec::new();
    let mut next = Some(domain);
    while let Some(name) = next {
        if let Some(record) = record(dns, name).await? {
            let border = record.psd != Psd::Default;
            found.push((name, record));
            if border {
                break;
            }
        }
        let above = name.split_once('.').map(|(_, parent)| parent);
        next = above.map(|parent| last_labels(parent, MAX_WALK_LABELS));
    }
    Ok(found)
}

/// The policy record of a name; several count as none.
async fn record(dns: &Dns, name: &str) -> Result<Option<Dmarc>, Unavailable> {
    let texts = dns.txt(&format!("_dmarc.{name}")).await?;
    let mut records = texts.iter().filter(|text| is_record(text));
    match (records.next(), records.next()) {
        (Some(text), None) => Ok(Dmarc::parse(text).ok()),
        _ => Ok(None),
    }
}

/// Whether a TXT record is one of DMARC: its first tag is the version.
fn is_record(text: &[u8]) -> bool {
    let first_tag = text.split(|byte| *byte == b';').next().unwrap_or_default();
    let mut parts = first_tag.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
    parts.next() == Some(b"v") && parts.next() == Some(b"DMARC1")
}

/// The name that stands for the whole organisation.
fn organisation<'d>(found: &[(&'d str, Dmarc)], start: &'d str) -> &'d str {
    for (name, record) in found {
        let registry = record.psd == Psd::Yes || !name.contains('.');
        if record.psd == Psd::No {
            return name;
        }
        if registry && *name != start {
            return last_labels(start, name.split('.').count() + 1);
        }
    }
    found.last().map_or(start, |(name, _)| name)
}

/// The record that applies: the author's own, else that of the organisation, else that of the registry.
fn policy<'r>(found: &'r [(&str, Dmarc)], author: &str, organisation: &str) -> Option<&'r Dmarc> {
    let named = |wanted: &str| found.iter().find(|(name, _)| *name == wanted);
    let (_, record) = named(author).or_else(|| named(organisation)).or(found.last())?;
    // A record without a policy counts only if it at least asks for reports.
    (record.p != Policy::Unspecified || !record.rua.is_empty()).then_some(record)
}

/// The last labels of a name.
fn last_labels(name: &str, count: usize) -> &str {
    let dots = name.rmatch_indices('.');
    dots.into_iter().nth(count.saturating_sub(1)).map_or(name, |(dot, _)| name.get(dot + 1..).unwrap_or(name))
}
