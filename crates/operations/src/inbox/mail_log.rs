//! The mail log: a line for each incoming transaction, each submitted message, and each delivery attempt, all at `info`
//! and with the same fields in text and JSON.
//!
//! A line has envelopes, ids and replies, never a body, a subject or a secret. Untrusted text is cut and made
//! printable, so that it cannot forge a line.

use std::{fmt::Display, fmt::Write as _, time::Duration};

use mail::{
    printable,
    smtp::{self, TransactionRecord},
};
use model::{Id, Timestamp, sending::RecipientState};
use store::{
    outbound::{DeliveryRecord, OutboundRecord},
    queue::{Attempt, ClaimedDelivery},
};
use tracing::Level;

use crate::{
    core::ports::Peer,
    inbox::inbound::{ReceivedMessage, Refusal},
};

/// Target of lines about incoming transactions.
const RECEIVED_TARGET: &str = "mail.received";
/// Target of lines about submitted messages.
const SUBMITTED_TARGET: &str = "mail.submitted";
/// Target of lines about delivery attempts.
const SENT_TARGET: &str = "mail.sent";
/// The longest address, host name or Message-ID in a line.
const MAX_NAME_CHARS: usize = 320;
/// The longest reply in a line.
const MAX_REPLY_CHARS: usize = 500;
/// Recipients in one line.
const MAX_LISTED_RECIPIENTS: usize = 100;

/// Logs an SMTP or LMTP transaction, with the received message if there is one.
pub fn received(
    client: &smtp::Client,
    record: &TransactionRecord,
    message: Option<&ReceivedMessage>,
    took: Duration,
) {
    if !tracing::enabled!(target: RECEIVED_TARGET, Level::INFO) {
        return;
    }
    let named = record.recipients.iter().map(|named| (named.address.as_str(), &named.reply));
    let size = record.size.unwrap_or_default();
    tracing::info!(
        target: RECEIVED_TARGET,
        session = client.session,
        client = %client.address,
        protocol = client.protocol.as_str(),
        tls = client.tls.map_or_else(|| "none".to_owned(), |tls| tls.to_string()),
        helo = name(client.helo.as_deref().unwrap_or_default()),
        from = name(&record.from),
        recipients = listed(named, record.unlisted()),
        accepted = record.accepted,
        refused = record.refusals(),
        size,
        message_id = message.and_then(|message| message_id(message.message_id.as_deref())),
        emails = message.map(emails),
        verdict = message.map(ReceivedMessage::verdict),
        authentication = message.map(authentication),
        result = record.end.as_str(),
        reply = record.reply.as_ref().map(|reply| printable(&reply.to_string(), MAX_REPLY_CHARS)),
        seconds = seconds(took),
    );
}

/// Logs a message from the signed hook, with the recipients that were refused before.
pub fn received_by_hook(
    from: Option<&str>,
    refused: &[(String, Refusal)],
    accepted: &[String],
    size: usize,
    outcome: Result<&ReceivedMessage, &Refusal>,
) {
    if !tracing::enabled!(target: RECEIVED_TARGET, Level::INFO) {
        return;
    }
    let message = outcome.ok();
    let early = refused.iter().map(|(address, refusal)| (address.as_str(), refusal.to_string()));
    let each = accepted.iter().enumerate().map(|(index, address)| {
        let answer = match outcome {
            Ok(message) => match message.emails.get(index) {
                Some(Ok(id)) => format!("250 2.0.0 Stored as {id}"),
                Some(Err(refusal)) => refusal.to_string(),
                None => String::new(),
            },
            Err(refusal) => refusal.to_string(),
        };
        (address.as_str(), answer)
    });
    tracing::info!(
        target: RECEIVED_TARGET,
        protocol = "HTTP",
        from = name(from.unwrap_or_default()),
        recipients = listed(early.chain(each), 0),
        accepted = accepted.len(),
        refused = refused.len(),
        size,
        message_id = message.and_then(|message| message_id(message.message_id.as_deref())),
        emails = message.map(emails),
        verdict = message.map(ReceivedMessage::verdict),
        authentication = message.map(authentication),
        result = if message.is_some() { "stored" } else { "refused" },
        reply = outcome.err().map(ToString::to_string),
    );
}

/// Whether submitted messages are logged.
pub(crate) fn logs_submissions() -> bool {
    tracing::enabled!(target: SUBMITTED_TARGET, Level::INFO)
}

/// Logs a submitted message, and the recipients that were delivered at once.
pub(crate) fn submitted(mail: &OutboundRecord, recipients: &[DeliveryRecord], size: i64) {
    let is_queued = |one: &&DeliveryRecord| one.state == RecipientState::Queued;
    let each = recipients.iter().map(|one| (one.recipient.as_str(), destination_name(&one.destination)));
    let unlisted = recipients.len().saturating_sub(MAX_LISTED_RECIPIENTS) as u64;
    tracing::info!(
        target: SUBMITTED_TARGET,
        queue_id = mail.id,
        email_id = mail.email_id.as_ref().map(Id::as_str),
        message_id = message_id(mail.message_id.as_deref()),
        kind = mail.kind.as_str(),
        from = name(mail.sender.as_deref().unwrap_or_default()),
        recipients = listed(each, unlisted),
        waiting = recipients.iter().filter(is_queued).count(),
        size,
    );
    for one in recipients.iter().filter(|one| !is_queued(one)) {
        let entry = AttemptEntry {
            recipient: &one.recipient,
            destination: &one.destination,
            state: one.state,
            reply: one.reply.as_deref().unwrap_or_default(),
            attempt: one.attempts,
            next: None,
            peer: None,
            stored_as: None,
            now: mail.created_at,
            took: Duration::ZERO,
        };
        attempted(mail, &entry);
    }
}

/// A delivery attempt for one recipient, as logged.
pub(crate) struct AttemptEntry<'a> {
    pub(crate) recipient: &'a str,
    /// The domain, the relay, or nothing for a mailbox of this server.
    pub(crate) destination: &'a str,
    pub(crate) state: RecipientState,
    pub(crate) reply: &'a str,
    /// Which attempt it was, counted from 1.
    pub(crate) attempt: i64,
    /// When it is retried.
    pub(crate) next: Option<Timestamp>,
    /// The server that answered, or that was tried last.
    pub(crate) peer: Option<&'a Peer>,
    /// The email in a mailbox of this server.
    pub(crate) stored_as: Option<&'a str>,
    pub(crate) now: Timestamp,
    /// How long the attempt took.
    pub(crate) took: Duration,
}

impl<'a> AttemptEntry<'a> {
    /// The result in one word.
    pub(crate) fn result(&self) -> &'static str {
        match self.state {
            RecipientState::Queued => "deferred",
            state => state.as_str(),
        }
    }

    /// The attempt for a claimed queue record.
    pub(crate) fn new(record: &'a ClaimedDelivery, attempt: &'a Attempt, now: Timestamp) -> Self {
        Self {
            recipient: &record.recipient,
            destination: &record.destination,
            state: attempt.state,
            reply: &attempt.reply,
            attempt: record.attempts + 1,
            next: attempt.next_attempt_at,
            peer: None,
            stored_as: None,
            now,
            took: Duration::ZERO,
        }
    }
}

/// Logs a delivery attempt.
pub(crate) fn attempted(mail: &OutboundRecord, attempt: &AttemptEntry<'_>) {
    if !tracing::enabled!(target: SENT_TARGET, Level::INFO) {
        return;
    }
    let peer = attempt.peer;
    tracing::info!(
        target: SENT_TARGET,
        queue_id = mail.id,
        email_id = mail.email_id.as_ref().map(Id::as_str),
        message_id = message_id(mail.message_id.as_deref()),
        kind = mail.kind.as_str(),
        from = name(mail.sender.as_deref().unwrap_or_default()),
        to = name(attempt.recipient),
        destination = name(destination_name(attempt.destination)),
        host = peer.map(|peer| name(&peer.host)),
        address = peer.and_then(|peer| peer.address).map(|address| address.to_string()),
        tls = peer.map(Peer::encryption),
        result = attempt.result(),
        reply = printable(attempt.reply, MAX_REPLY_CHARS),
        stored_as = attempt.stored_as,
        attempt = attempt.attempt,
        delay = mail.created_at.seconds_until(attempt.now),
        seconds = seconds(attempt.took),
        next = attempt.next.map(|at| at.to_string()),
    );
}

/// The name of a destination.
fn destination_name(destination: &str) -> &str {
    if destination.is_empty() { "local" } else { destination }
}

fn name(text: &str) -> String {
    printable(text, MAX_NAME_CHARS)
}

fn message_id(id: Option<&str>) -> Option<String> {
    id.map(name)
}

/// The ids of the stored emails.
fn emails(message: &ReceivedMessage) -> String {
    let ids = message.emails.iter().flatten().take(MAX_LISTED_RECIPIENTS).map(Id::as_str);
    ids.collect::<Vec<_>>().join(" ")
}

fn authentication(message: &ReceivedMessage) -> String {
    let found = &message.authentication;
    format!("spf={} dkim={} dmarc={}", found.spf.as_str(), found.dkim.as_str(), found.dmarc.as_str())
}

/// Recipients, each with its reply. Addresses are in angle brackets, so that none can look like two.
fn listed<'a>(each: impl Iterator<Item = (&'a str, impl Display)>, unlisted: u64) -> String {
    let mut list = String::new();
    for (address, reply) in each.take(MAX_LISTED_RECIPIENTS) {
        let separator = if list.is_empty() { "" } else { ", " };
        // Writing to a text cannot fail.
        let _ =
            write!(list, "{separator}<{}> {}", name(address), printable(&reply.to_string(), MAX_NAME_CHARS));
    }
    if unlisted > 0 {
        let _ = write!(list, ", and {unlisted} more");
    }
    list
}

/// Seconds, rounded to milliseconds.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}
