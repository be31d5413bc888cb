//! Parsing and analysing a message: everything that needs no database.
//!
//! Scan verdict, spam test, category, safe text and snippet are derived here.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use mail::{
    classify,
    message::{self, Automatic, Encoding, Message, Person},
    reports::{self, Report},
    safe_text::{self, SafeText, Source},
    scan,
};
use model::{
    Timestamp,
    emails::{
        BodyFormat, BodySource, Category, ScanStatus, ScanThreat, SenderAuthentication, ThreatSource, Verdict,
    },
};
use sha2::{Digest, Sha256};
use store::{blobs::BlobHash, search::IndexedText, threads::ThreadHints};

/// Characters of a snippet.
const SNIPPET_CHARS: usize = 200;
/// Characters of a safe text that are kept.
const MAX_SAFE_CHARS: usize = 1_000_000;
/// The GTUBE test string, which every spam filter flags.
const GTUBE: &str = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";

/// A message that was parsed and analysed.
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own")]
#[derive(Clone)]
pub(crate) struct PreparedMessage {
    pub(crate) hash: String,
    pub(crate) message: Message,
    pub(crate) verdict: (ScanStatus, Vec<ScanThreat>),
    pub(crate) body: String,
    pub(crate) body_format: BodyFormat,
    /// Nothing when it is the same as the body.
    pub(crate) safe: Option<String>,
    pub(crate) safe_source: BodySource,
    pub(crate) safe_divergent: bool,
    pub(crate) snippet: String,
    pub(crate) category: Category,
    pub(crate) urgent: bool,
    pub(crate) looks_like_spam: bool,
    pub(crate) has_link: bool,
    pub(crate) text: IndexedText,
    /// The delivery or feedback report, if it is one.
    pub(crate) report: Option<Report>,
}

impl PreparedMessage {
    /// The text for agents.
    pub(crate) fn safe(&self) -> &str {
        self.safe.as_deref().unwrap_or(&self.body)
    }

    /// Sets the body as its author wrote it, before it was encoded for transport.
    pub(crate) fn show_as(&mut self, body: &str, format: BodyFormat) {
        let encoded = std::mem::replace(&mut self.body, body.to_owned());
        let safe = self.safe.take().unwrap_or(encoded);
        self.safe = (safe != self.body).then_some(safe);
        self.body_format = format;
    }

    /// The stored email, for filter expressions.
    pub(crate) fn subject<'a>(
        &'a self,
        record: &'a store::emails::EmailRecord,
    ) -> super::FilterableEmail<'a> {
        super::FilterableEmail { record, message: &self.message, safe: self.safe(), has_link: self.has_link }
    }

    /// The scan status. A message that passed here is still pending if there is an external scanner; one that failed is
    /// final.
    pub(crate) fn scan_status(&self, external: bool) -> Option<ScanStatus> {
        Some(self.verdict.0).filter(|status| !external || *status != ScanStatus::Clean)
    }

    /// Whether it belongs in Spam, given its sender authentication.
    pub(crate) fn is_spam(&self, authentication: &SenderAuthentication) -> bool {
        self.looks_like_spam || authentication.dmarc == Verdict::Fail
    }

    /// The sender for display.
    pub(crate) fn sender(&self) -> String {
        self.message.from.as_ref().map(display_form).unwrap_or_default()
    }

    /// The sender's address.
    pub(crate) fn sender_address(&self) -> &str {
        self.message.from.as_ref().map_or("", |from| &from.address)
    }

    /// The Date header's time when it is not later than the arrival, else the arrival.
    pub(crate) fn date(&self, arrived: Timestamp) -> Timestamp {
        self.message.date.map(Timestamp::from_micros).filter(|date| *date <= arrived).unwrap_or(arrived)
    }

    /// What decides about the thread: referenced messages, the nearest first, then participants and subject.
    pub(crate) fn hints(&self) -> ThreadHints {
        let message = &self.message;
        let nearest_first = message.in_reply_to.iter().chain(message.references.iter().rev());
        let mut references: Vec<[u8; 16]> = Vec::new();
        let reported = match &self.report {
            Some(Report::Delivery(report)) => report.message_id.as_ref(),
            Some(Report::Complaint(report)) => report.message_id.as_ref(),
            None => None,
        };
        for id in reported.into_iter().chain(nearest_first).chain(&message.message_id) {
            let hashed = message_id_hash(id);
            if !references.contains(&hashed) {
                references.push(hashed);
            }
        }
        ThreadHints { references, subject_key: self.subject_key() }
    }

    fn subject_key(&self) -> Option<[u8; 16]> {
        let subject = message::base_subject(&self.message.subject);
        if subject.is_empty() {
            return None;
        }
        let people = self.message.from.iter().chain(&self.message.to).chain(&self.message.cc);
        let mut addresses: Vec<String> = people.map(|person| person.address.to_lowercase()).collect();
        addresses.sort();
        addresses.dedup();
        let mut pieces = vec![subject.as_bytes()];
        pieces.extend(addresses.iter().map(String::as_bytes));
        Some(short_hash(&pieces))
    }
}

/// The stored hash of a Message-ID.
pub(crate) fn message_id_hash(id: &str) -> [u8; 16] {
    short_hash(&[id.as_bytes()])
}

fn short_hash(pieces: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut short = [0; 16];
    short.copy_from_slice(&digest[..16]);
    short
}

/// Analyses a message that was parsed from `raw`.
pub(super) fn analyse(raw: &[u8], message: Message, blocklist: &Arc<scan::Blocklist>) -> PreparedMessage {
    let judged = scan::scan(raw, &message, blocklist);
    let safe = safe_text::body(message.text.as_deref(), message.html.as_deref());
    let snippet = safe_text::snippet(&safe.text, SNIPPET_CHARS);
    let (body, body_format) = match (&message.html, &message.text) {
        (Some(html), _) => (html.clone(), BodyFormat::Html),
        (None, Some(text)) => (text.clone(), BodyFormat::Text),
        (None, None) => (String::new(), BodyFormat::Text),
    };
    let sender = message.from.as_ref().map(display_form).unwrap_or_default();
    let class = classify::classify(&sender, &message.subject, safe.text.as_str(), message.automatic);
    let recipients = people(message.to.iter().chain(&message.cc));
    let text = IndexedText::new(&message.subject, &sender, &recipients, safe.text.as_str());
    let has_link = has_link(safe.text.as_str());
    let looks_like_spam = has(&body, GTUBE);
    let safe_source = match safe.source {
        Source::Text => BodySource::Text,
        Source::Html => BodySource::Html,
        Source::None => BodySource::None,
    };
    let (kept, _) = safe.text.cut(MAX_SAFE_CHARS);
    let reports = matches!(message.automatic, Some(Automatic::DeliveryReport | Automatic::Complaint));
    let report = if reports { reports::read(raw, &message) } else { None };
    PreparedMessage {
        hash: BlobHash::of(raw).as_str().to_owned(),
        safe: (kept != body).then(|| kept.to_owned()),
        safe_source,
        safe_divergent: safe.divergent,
        verdict: verdict_of(judged),
        category: category_of(class.category),
        urgent: class.urgent,
        message,
        body,
        body_format,
        snippet,
        looks_like_spam,
        has_link,
        text,
        report,
    }
}

/// Whether there is a link in a safe text.
pub(crate) fn has_link(text: &str) -> bool {
    has(text, "http://") || has(text, "https://")
}

/// Whether a text contains another one; faster than the standard library on long texts.
fn has(text: &str, wanted: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), wanted.as_bytes()).is_some()
}

pub(crate) fn verdict_of(judged: scan::Verdict) -> (ScanStatus, Vec<ScanThreat>) {
    let status = match judged.status {
        scan::Status::Clean => ScanStatus::Clean,
        scan::Status::Flagged => ScanStatus::Flagged,
        scan::Status::Skipped => ScanStatus::Skipped,
    };
    let threats = judged
        .threats
        .into_iter()
        .map(|threat| ScanThreat {
            url: Some(threat.url.unwrap_or_default()),
            threat_type: threat.kind.as_str().to_owned(),
            source: match threat.source {
                scan::Source::Body => ThreatSource::Body,
                scan::Source::Attachment => ThreatSource::Attachment,
            },
            attachment_filename: threat.file_name.unwrap_or_default(),
        })
        .collect();
    (status, threats)
}

/// A person as displayed, on one line and without invisible characters.
pub(crate) fn display_form(person: &Person) -> String {
    match &person.name {
        Some(name) if !name.trim().is_empty() => format!("{name} <{}>", person.address),
        _ => person.address.clone(),
    }
}

/// Several people, with commas between them.
pub(crate) fn people<'a>(all: impl Iterator<Item = &'a Person>) -> String {
    all.map(display_form).collect::<Vec<_>>().join(", ")
}

/// The event data of an arrived message: ids and safe text, within the scan gate.
pub(crate) fn received_data(mail: &store::emails::EmailRecord) -> serde_json::Value {
    let clean = mail.scan_status == Some(ScanStatus::Clean);
    let mut data = serde_json::json!({
        "email_id": mail.id,
        "thread_id": mail.thread_id,
        "folder_id": mail.folder_id,
        "sender": SafeText::line(&mail.sender).as_str(),
        "recipient": mail.recipient,
        "subject": SafeText::line(&mail.subject).as_str(),
        "date": mail.date,
        "scan_status": mail.scan_status,
        "category": mail.category,
        "is_urgent": mail.is_urgent,
        "attachment_count": mail.attachments.len(),
        "content_omitted": !clean,
    });
    if clean {
        data["snippet"] = mail.snippet.clone().into();
    } else {
        data["content_omission_reason"] = "scan_status_not_clean".into();
    }
    data
}

/// The name of an encoding, as it is stored.
pub(crate) const fn encoding_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Identity => "identity",
        Encoding::Base64 => "base64",
        Encoding::QuotedPrintable => "quoted-printable",
    }
}

/// An encoding by its stored name.
pub(crate) fn encoding_named(name: &str) -> Encoding {
    match name {
        "base64" => Encoding::Base64,
        "quoted-printable" => Encoding::QuotedPrintable,
        _ => Encoding::Identity,
    }
}

/// The name of a kind of automatic message.
pub(crate) const fn automatic_name(automatic: Automatic) -> &'static str {
    match automatic {
        Automatic::DeliveryReport => "delivery_report",
        Automatic::Complaint => "complaint",
        Automatic::Reply => "reply",
        Automatic::Generated => "generated",
        Automatic::List => "list",
    }
}

pub(super) const fn verdict(verdict: mail::authentication::Verdict) -> Verdict {
    match verdict {
        mail::authentication::Verdict::Pass => Verdict::Pass,
        mail::authentication::Verdict::Fail => Verdict::Fail,
        mail::authentication::Verdict::Unknown => Verdict::Unknown,
    }
}

fn category_of(category: classify::Category) -> Category {
    match category {
        classify::Category::CustomerSupport => Category::CustomerSupport,
        classify::Category::Technical => Category::Technical,
        classify::Category::Partnership => Category::Partnership,
        classify::Category::Other => Category::Other,
    }
}
