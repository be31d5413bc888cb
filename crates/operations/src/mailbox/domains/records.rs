//! The DNS records that a custom domain has to publish, and checking them.

use std::time::Duration;

use mail::dns::{Dns, Unavailable};
use model::domains::{DnsRecord, RecordPurpose, RecordStatus, RecordType};
use store::domains::{DomainRecord, KeyRecord, RecordStatuses};

use crate::core::{app::App, error::Error, settings::Settings};

/// The label of the ownership record.
const OWNERSHIP_LABEL: &str = "_agent-mailbox";
/// The prefix of the ownership record's value.
const OWNERSHIP_PREFIX: &str = "agent-mailbox-verification=";
/// The preference of this server as the domain's mail server.
const MX_PRIORITY: u16 = 10;

/// The records of a domain, with their last known status.
pub(super) fn of(settings: &Settings, domain: &DomainRecord, keys: &[KeyRecord]) -> Vec<DnsRecord> {
    let name = &domain.domain;
    let proof = format!("{OWNERSHIP_PREFIX}{}", domain.token);
    let mut records = vec![
        txt(RecordPurpose::Ownership, true, format!("{OWNERSHIP_LABEL}.{name}"), proof),
        DnsRecord {
            kind: RecordType::Mx,
            name: name.clone(),
            value: settings.hostname.clone(),
            priority: Some(MX_PRIORITY),
            purpose: RecordPurpose::Mx,
            required: true,
            status: RecordStatus::Pending,
        },
        txt(RecordPurpose::Spf, true, name.clone(), format!("v=spf1 {} ~all", settings.spf_mechanisms)),
    ];
    for key in keys {
        // Every receiver supports RSA; Ed25519 is used as well once it is published. During a rotation one of the two
        // keys in DNS is enough.
        let stands_in = |other: &KeyRecord| {
            other.selector != key.selector && other.algorithm == key.algorithm && other.published
        };
        let required = key.algorithm == "rsa" && !keys.iter().any(stands_in);
        records.push(dkim(name, key, required));
    }
    records.push(txt(RecordPurpose::Dmarc, false, format!("_dmarc.{name}"), "v=DMARC1; p=none".to_owned()));
    for record in &mut records {
        record.status = domain.found.get(&key_of(record)).copied().unwrap_or(RecordStatus::Pending);
    }
    records
}

fn txt(purpose: RecordPurpose, required: bool, name: String, value: String) -> DnsRecord {
    DnsRecord {
        kind: RecordType::Txt,
        name,
        value,
        priority: None,
        purpose,
        required,
        status: RecordStatus::Pending,
    }
}

/// The record of a key.
pub(super) fn dkim(domain: &str, key: &KeyRecord, required: bool) -> DnsRecord {
    txt(RecordPurpose::Dkim, required, dkim_name(domain, &key.selector), key.public_record.clone())
}

/// Where a key is published.
pub(super) fn dkim_name(domain: &str, selector: &str) -> String {
    format!("{selector}._domainkey.{domain}")
}

/// The key under which a record's status is stored.
pub(super) fn key_of(record: &DnsRecord) -> String {
    format!("{} {}", record.purpose, record.name)
}

/// The same for the key that is published under a selector.
pub(super) fn dkim_key(domain: &str, selector: &str) -> String {
    format!("{} {}", RecordPurpose::Dkim, dkim_name(domain, selector))
}

/// The result of a DNS check.
pub(super) struct DnsCheck {
    /// Each record's status; records whose lookup failed are left out.
    pub(super) found: RecordStatuses,
    /// What is wrong, for people; nothing when all required records are there.
    pub(super) fault: Option<String>,
    /// Whether the lookup of every required record succeeded.
    pub(super) conclusive: bool,
}

impl DnsCheck {
    /// Whether all required records are there.
    pub(super) fn proves(&self) -> bool {
        self.conclusive && self.fault.is_none()
    }

    /// Combines the lookups.
    pub(super) fn of(records: &[DnsRecord], answers: Vec<Result<RecordStatus, Unavailable>>) -> Self {
        let mut check = Self { found: RecordStatuses::new(), fault: None, conclusive: true };
        let mut lacking = Vec::new();
        for (record, answer) in records.iter().zip(answers) {
            match answer {
                Ok(status) => {
                    check.found.insert(key_of(record), status);
                    if record.required && status != RecordStatus::Verified {
                        let state = if status == RecordStatus::Missing { "missing" } else { "different" };
                        lacking.push(format!("{} {} is {state}", record.kind, record.name));
                    }
                }
                Err(Unavailable) => check.conclusive &= !record.required,
            }
        }
        check.fault = if !lacking.is_empty() {
            Some(format!("In DNS: {}.", lacking.join("; ")))
        } else if check.conclusive {
            None
        } else {
            Some("The name servers of the domain gave no answer.".to_owned())
        };
        check
    }
}

/// Looks one record up now.
pub(super) async fn look_up(dns: &Dns, record: &DnsRecord) -> Result<RecordStatus, Unavailable> {
    if record.kind == RecordType::Mx {
        let hosts = dns.mx(&record.name).await?;
        return Ok(judge(hosts.is_empty(), hosts.iter().any(|(_, host)| is_host(host, &record.value))));
    }
    let texts: Vec<String> = dns
        .txt(&record.name)
        .await?
        .iter()
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .filter(|text| is_relevant(record.purpose, text))
        .collect();
    Ok(match record.purpose {
        // Two policies are none: receivers must not choose between them (RFC 7208, section 4.5).
        RecordPurpose::Spf if texts.len() > 1 => RecordStatus::Mismatch,
        _ => judge(texts.is_empty(), texts.iter().any(|text| is_right(record, text))),
    })
}

const fn judge(nothing: bool, right: bool) -> RecordStatus {
    match (nothing, right) {
        (true, _) => RecordStatus::Missing,
        (false, true) => RecordStatus::Verified,
        (false, false) => RecordStatus::Mismatch,
    }
}

fn is_host(host: &str, wanted: &str) -> bool {
    host.trim_end_matches('.').eq_ignore_ascii_case(wanted.trim_end_matches('.'))
}

/// Whether a TXT value is of this kind: names have TXT records for many purposes.
fn is_relevant(purpose: RecordPurpose, text: &str) -> bool {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    match purpose {
        RecordPurpose::Ownership => begins(OWNERSHIP_PREFIX),
        RecordPurpose::Spf => text.eq_ignore_ascii_case("v=spf1") || begins("v=spf1 "),
        RecordPurpose::Dmarc => begins("v=DMARC1"),
        RecordPurpose::Dkim | RecordPurpose::Mx => !text.trim().is_empty(),
    }
}

/// Whether a TXT value does what the record is for, in any valid spelling.
fn is_right(record: &DnsRecord, text: &str) -> bool {
    match record.purpose {
        RecordPurpose::Spf => {
            let present: Vec<String> = text.split_whitespace().map(bare_mechanism).collect();
            let needed = record.value.split_whitespace().filter(|term| !term.ends_with("all"));
            needed.map(bare_mechanism).all(|term| present.contains(&term))
        }
        RecordPurpose::Dkim => {
            let key = |text: &str| {
                let algorithm = tag(text, "k").unwrap_or_else(|| "rsa".to_owned());
                (algorithm, tag(text, "p").unwrap_or_default())
            };
            key(text) == key(&record.value)
        }
        RecordPurpose::Dmarc => tag(text, "p").is_some_and(|policy| {
            ["none", "quarantine", "reject"].iter().any(|known| policy.eq_ignore_ascii_case(known))
        }),
        RecordPurpose::Ownership | RecordPurpose::Mx => text.trim() == record.value,
    }
}

/// A term of an SPF record in lower case; a plus in front means the same as nothing.
fn bare_mechanism(term: &str) -> String {
    term.strip_prefix('+').unwrap_or(term).to_ascii_lowercase()
}

/// A tag of a record such as `k=rsa; p=…`, without white space, which publishers fold long keys with.
fn tag(text: &str, name: &str) -> Option<String> {
    text.split(';')
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.split_whitespace().collect())
}

/// Asks DNS about all records at once, within a bounded time.
pub(super) async fn look_up_all(app: &App, wanted: &[DnsRecord]) -> DnsCheck {
    let unknown = || vec![Err(Unavailable); wanted.len()];
    let Some(dns) = app.dns() else { return DnsCheck::of(wanted, unknown()) };
    let answers = futures_util::future::join_all(wanted.iter().map(|record| look_up(dns, record)));
    let answers = tokio::time::timeout(LOOKUP_TIMEOUT, answers).await.unwrap_or_else(|_| unknown());
    DnsCheck::of(wanted, answers)
}

/// Timeout of a DNS check.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The error for a domain that does not exist.
pub(super) fn missing() -> Error {
    Error::not_found("Email domain not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(purpose: RecordPurpose, value: &str) -> DnsRecord {
        DnsRecord {
            kind: RecordType::Txt,
            name: "example.com".to_owned(),
            value: value.to_owned(),
            priority: None,
            purpose,
            required: true,
            status: RecordStatus::Pending,
        }
    }

    // rules: DOMAIN-4
    #[test]
    fn records_count_in_whichever_words_they_are_published() {
        let spf = record(RecordPurpose::Spf, "v=spf1 a:mx.host.test ~all");
        for good in [
            "v=spf1 a:mx.host.test ~all",
            "v=spf1 include:other.test +A:MX.host.test -all",
            "V=SPF1 a:mx.host.test redirect=x.test",
        ] {
            assert!(is_relevant(spf.purpose, good) && is_right(&spf, good), "{good}");
        }
        for bad in ["v=spf1 -all", "v=spf1 -a:mx.host.test ~all", "v=spf1 a:mx.host.test.evil.test ~all"] {
            assert!(!is_right(&spf, bad), "{bad}");
        }
        assert!(!is_relevant(spf.purpose, "v=spf10 a:mx.host.test"));
        let key = record(RecordPurpose::Dkim, "v=DKIM1; k=rsa; p=ABC+/=");
        for good in ["v=DKIM1; k=rsa; p=ABC+/=", "p=AB C+/=", "v=DKIM1;h=sha256; p = ABC+/= ;"] {
            assert!(is_right(&key, good), "{good}");
        }
        for bad in ["v=DKIM1; p=", "v=DKIM1; k=ed25519; p=ABC+/=", "p=abc+/="] {
            assert!(!is_right(&key, bad), "{bad}");
        }
        let dmarc = record(RecordPurpose::Dmarc, "v=DMARC1; p=none");
        assert!(is_right(&dmarc, "v=DMARC1; p=reject; rua=mailto:a@b.test"));
        assert!(!is_right(&dmarc, "v=DMARC1; p=maybe") && !is_right(&dmarc, "v=DMARC1"));
        let proof = record(RecordPurpose::Ownership, "agent-mailbox-verification=abc");
        assert!(is_right(&proof, " agent-mailbox-verification=abc"));
        assert!(!is_right(&proof, "agent-mailbox-verification=ABC"));
        assert!(
            is_host("MX.Host.test.", "mx.host.test") && !is_host("mx.host.test.evil.test", "mx.host.test")
        );
    }
}
