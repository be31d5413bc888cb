//! Reports about messages that we sent: delivery failures (RFC 3464) and complaints (RFC 5965).
//!
//! Anyone can write such a report. It proves nothing about its sender, so the caller must find the reported message and
//! its recipient among those that were really sent. Parsing is bounded: a prefix of the message, a few levels of parts,
//! a number of recipients.
//!
//! Delivery reports to our own senders are written here too.

mod fields;
mod parts;
#[cfg(test)]
mod tests;
mod write;

use crate::message::Message;
use fields::{Field, address, clean, groups, message_id};
use parts::Part;

pub use write::{Notice, write};

/// Recipients that one report can name; the rest is left out.
pub const MAX_RECIPIENTS: usize = 200;

/// A report about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A delivery report.
    Delivery(DeliveryReport),
    /// A complaint, or a withdrawn one.
    Complaint(ComplaintReport),
}

/// A delivery status notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryReport {
    /// The reporting server, as it names itself.
    pub reporting_server: Option<String>,
    /// The Message-ID of the message, without its angle brackets.
    pub message_id: Option<String>,
    /// The reported recipients, at least one.
    pub recipients: Vec<Recipient>,
}

/// The delivery status of one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The final address, which forwarding may have changed.
    pub final_recipient: String,
    /// The address that the sender gave, where the report says.
    pub original_recipient: Option<String>,
    /// What happened.
    pub action: Action,
    /// The status code (RFC 3463), such as `5.1.1`.
    pub status: Option<String>,
    /// What the last server said, on one line.
    pub diagnostic: Option<String>,
}

/// The action of a delivery status (RFC 3464, section 2.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The delivery failed.
    Failed,
    /// The delivery is delayed; the server keeps trying.
    Delayed,
    /// Delivered.
    Delivered,
    /// Relayed to a server that sends no reports.
    Relayed,
    /// Delivered to several other addresses.
    Expanded,
}

/// A feedback report of the recipient's provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComplaintReport {
    /// The kind in lower case: `abuse`, `fraud`, `virus`, `opt-out`, `not-spam`, `auth-failure`, `other`.
    pub feedback_type: String,
    /// The sender of the message's envelope.
    pub original_sender: Option<String>,
    /// The recipients of the message's envelope; many providers leave them out.
    pub original_recipients: Vec<String>,
    /// The Message-ID of the message, without its angle brackets.
    pub message_id: Option<String>,
}

impl ComplaintReport {
    /// Whether the recipient complained; other reports are about authentication or withdraw a complaint.
    pub fn is_complaint(&self) -> bool {
        !matches!(self.feedback_type.as_str(), "not-spam" | "auth-failure" | "")
    }
}

/// Reads a report from the bytes of a message, if it is one.
///
/// `message` is what was read from the same bytes; its In-Reply-To names the message when the report itself does not.
pub fn read(raw: &[u8], message: &Message) -> Option<Report> {
    let found = ReportParts::in_message(raw);
    let answered = || message.in_reply_to.clone().or_else(|| message.references.last().cloned());
    if let Some(feedback) = &found.feedback {
        return Some(Report::Complaint(complaint(feedback, &found)?));
    }
    let mut report = match &found.status {
        Some(status) => delivery(status),
        None => failed_recipients(&found)?,
    };
    report.message_id = found.message_id.or(report.message_id).or_else(answered);
    (!report.recipients.is_empty()).then_some(Report::Delivery(report))
}

/// The pieces of a message that matter for a report.
#[derive(Default)]
struct ReportParts {
    status: Option<Vec<u8>>,
    feedback: Option<Vec<u8>>,
    /// The Message-ID of the returned message.
    message_id: Option<String>,
    /// The recipient of the returned message, where a provider notes it there.
    noted_recipient: Option<String>,
    /// The list of failed recipients that Exim writes into the headers of its reports.
    failed: Option<String>,
}

impl ReportParts {
    fn in_message(raw: &[u8]) -> Self {
        let mut found = Self::default();
        let parts = parts::of(raw);
        found.failed = parts.first().and_then(|top| top.header("x-failed-recipients")).map(str::to_owned);
        for part in &parts {
            match part.media_type.as_str() {
                "message/delivery-status" | "message/global-delivery-status" if found.status.is_none() => {
                    found.status = Some(part.decoded());
                }
                "message/feedback-report" if found.feedback.is_none() => {
                    found.feedback = Some(part.decoded());
                }
                "message/rfc822"
                | "message/global"
                | "text/rfc822-headers"
                | "message/rfc822-headers"
                | "message/global-headers" => found.note_returned(&part.decoded()),
                "text/plain" if found.failed.is_some() => found.note_copied(part),
                _ => {}
            }
        }
        found
    }

    /// Takes what is needed from the headers of the returned message.
    fn note_returned(&mut self, returned: &[u8]) {
        let headers = fields::headers(returned).0;
        let value =
            |name: &str| headers.iter().find(|field| field.name == name).map(|field| field.value.as_str());
        if self.message_id.is_none() {
            self.message_id = value("message-id").and_then(message_id);
        }
        if self.noted_recipient.is_none() {
            self.noted_recipient = value("x-hmxmroriginalrecipient").and_then(address);
        }
    }

    /// Exim's older reports are plain text with a copy of the message at the end.
    fn note_copied(&mut self, part: &Part<'_>) {
        let text = part.decoded();
        let lines = text.split(|byte| *byte == b'\n').skip_while(|line| !line.starts_with(b"------"));
        let copied: Vec<&[u8]> = lines.skip(1).skip_while(|line| line.trim_ascii().is_empty()).collect();
        self.note_returned(&copied.join(b"\n".as_slice()));
    }
}

/// Reads the fields of a delivery report: those of the message first, then a group for each recipient.
fn delivery(status: &[u8]) -> DeliveryReport {
    let mut report = DeliveryReport::default();
    for group in groups(status) {
        let value =
            |name: &str| group.iter().find(|field| field.name == name).map(|field| field.value.as_str());
        if report.reporting_server.is_none() {
            report.reporting_server = value("reporting-mta").map(|server| clean(untyped(server)));
        }
        if report.message_id.is_none() {
            report.message_id = value("x-original-message-id").and_then(message_id);
        }
        if report.recipients.len() < MAX_RECIPIENTS
            && let Some(recipient) = recipient(&group)
        {
            report.recipients.push(recipient);
        }
    }
    report
}

fn recipient(group: &[Field]) -> Option<Recipient> {
    let value = |name: &str| group.iter().find(|field| field.name == name).map(|field| field.value.as_str());
    let original_recipient = value("original-recipient").and_then(|text| address(untyped(text)));
    let final_recipient = value("final-recipient").and_then(|text| address(untyped(text)));
    let diagnostic =
        value("diagnostic-code").map(|text| clean(untyped(text))).filter(|text| !text.is_empty());
    let status = value("status").and_then(status_code);
    let status = status.or_else(|| diagnostic.as_deref().and_then(status_code));
    let action = value("action").and_then(action).or_else(|| status.as_deref().map(action_of_status))?;
    let final_recipient = final_recipient.or_else(|| original_recipient.clone())?;
    Some(Recipient { final_recipient, original_recipient, action, status, diagnostic })
}

fn action(text: &str) -> Option<Action> {
    let word = text.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty())?;
    match word.to_ascii_lowercase().as_str() {
        "failed" | "failure" => Some(Action::Failed),
        "delayed" => Some(Action::Delayed),
        "delivered" => Some(Action::Delivered),
        "relayed" => Some(Action::Relayed),
        "expanded" => Some(Action::Expanded),
        _ => None,
    }
}

/// The action that a status code implies.
fn action_of_status(status: &str) -> Action {
    match status.as_bytes().first() {
        Some(b'2') => Action::Delivered,
        Some(b'4') => Action::Delayed,
        _ => Action::Failed,
    }
}

/// The first code such as `5.1.1` in a text.
fn status_code(text: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).take(50);
    words
        .into_iter()
        .map(|word| word.trim_end_matches('.'))
        .find(|word| is_status_code(word))
        .map(str::to_owned)
}

fn is_status_code(word: &str) -> bool {
    let mut numbers = word.split('.');
    let class = numbers.next().is_some_and(|class| matches!(class, "2" | "4" | "5"));
    let small = |number: Option<&str>| {
        number.is_some_and(|digits| {
            (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
        })
    };
    class && small(numbers.next()) && small(numbers.next()) && numbers.next().is_none()
}

/// A value without its type: `rfc822; a@b` is `a@b`, `dns; mx.example` is `mx.example`.
fn untyped(value: &str) -> &str {
    match value.split_once(';') {
        Some((kind, rest))
            if kind.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) =>
        {
            rest.trim()
        }
        _ => value.trim(),
    }
}

/// The report that Exim's list of failed recipients is.
fn failed_recipients(found: &ReportParts) -> Option<DeliveryReport> {
    let addresses = found.failed.as_deref()?.split(',').filter_map(address).take(MAX_RECIPIENTS);
    let recipients = addresses.map(|final_recipient| Recipient {
        final_recipient,
        original_recipient: None,
        action: Action::Failed,
        status: None,
        diagnostic: None,
    });
    Some(DeliveryReport { recipients: recipients.collect(), ..DeliveryReport::default() })
}

fn complaint(feedback: &[u8], found: &ReportParts) -> Option<ComplaintReport> {
    let groups = groups(feedback);
    let fields = || groups.iter().flatten();
    let value = |name: &str| fields().find(|field| field.name == name).map(|field| field.value.as_str());
    let feedback_type = clean(value("feedback-type")?).to_ascii_lowercase();
    let named =
        fields().filter(|field| matches!(field.name.as_str(), "original-rcpt-to" | "removal-recipient"));
    let mut original_recipients: Vec<String> = Vec::new();
    for recipient in named.filter_map(|field| address(&field.value)).take(MAX_RECIPIENTS) {
        if !original_recipients.contains(&recipient) {
            original_recipients.push(recipient);
        }
    }
    if original_recipients.is_empty() {
        original_recipients.extend(found.noted_recipient.clone());
    }
    Some(ComplaintReport {
        feedback_type,
        original_sender: value("original-mail-from").and_then(address),
        original_recipients,
        message_id: found.message_id.clone(),
    })
}
