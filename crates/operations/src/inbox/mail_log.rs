//! The mail log: a line for each transaction that brings mail, each message that is submitted, and each delivery attempt,
//! all at `info` and with the same fields in text and JSON.
//!
//! A line has envelopes, ids and replies, never a body, a subject or a secret. What strangers said is cut and made
//! printable, so that nobody can write a line of their own.

use std::{fmt::Display, fmt::Write as _, time::Duration};

use mail::{
    printable,
    smtp::{self, TransactionRecord},
};
use model::{Id, Timestamp, sending::RecipientState};
use store::{
    outbound::{DeliveryRecord, OutboundRecord},
    queue::{Attempt, Claimed},
};
use tracing::Level;

use crate::{
    core::ports::Peer,
    inbox::inbound::{Received, Refusal},
};

/// What lines about mail that comes in are found by.
const RECEIVED: &str = "mail.received";
/// What lines about mail that was handed in to be sent are found by.
const SUBMITTED: &str = "mail.submitted";
/// What lines about attempts to hand mail on are found by.
const SENT: &str = "mail.sent";
/// The longest address, host name or Message-ID in a line.
const MAX_NAME_CHARS: usize = 320;
/// The longest reply in a line.
const MAX_REPLY_CHARS: usize = 500;
/// Recipients in one line.
const MAX_LISTED_RECIPIENTS: usize = 100;

/// Tells of a transaction of SMTP or LMTP; with what was taken in, where it came to that.
pub fn received(client: &smtp::Client, record: &TransactionRecord, taken: Option<&Received>, took: Duration) {
    if !tracing::enabled!(target: RECEIVED, Level::INFO) {
        return;
    }
    let named = record.recipients.iter().map(|named| (named.address.as_str(), &named.reply));
    let size = record.size.unwrap_or_default();
    tracing::info!(
        target: RECEIVED,
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
        message_id = taken.and_then(|taken| message_id(taken.message_id.as_deref())),
        emails = taken.map(emails),
        verdict = taken.map(Received::verdict),
        authentication = taken.map(authentication),
        result = record.end.as_str(),
        reply = record.reply.as_ref().map(|reply| printable(&reply.to_string(), MAX_REPLY_CHARS)),
        seconds = seconds(took),
    );
}

/// Tells of a message that the signed hook brought, with the recipients that were refused before.
pub fn received_by_hook(
    from: Option<&str>,
    refused: &[(String, Refusal)],
    accepted: &[String],
    size: usize,
    outcome: Result<&Received, &Refusal>,
) {
    if !tracing::enabled!(target: RECEIVED, Level::INFO) {
        return;
    }
    let taken = outcome.ok();
    let early = refused.iter().map(|(address, refusal)| (address.as_str(), refusal.to_string()));
    let each = accepted.iter().enumerate().map(|(index, address)| {
        let answer = match outcome {
            Ok(taken) => match taken.emails.get(index) {
                Some(Ok(id)) => format!("250 2.0.0 Stored as {id}"),
                Some(Err(refusal)) => refusal.to_string(),
                None => String::new(),
            },
            Err(refusal) => refusal.to_string(),
        };
        (address.as_str(), answer)
    });
    tracing::info!(
        target: RECEIVED,
        protocol = "HTTP",
        from = name(from.unwrap_or_default()),
        recipients = listed(early.chain(each), 0),
        accepted = accepted.len(),
        refused = refused.len(),
        size,
        message_id = taken.and_then(|taken| message_id(taken.message_id.as_deref())),
        emails = taken.map(emails),
        verdict = taken.map(Received::verdict),
        authentication = taken.map(authentication),
        result = if taken.is_some() { "stored" } else { "refused" },
        reply = outcome.err().map(ToString::to_string),
    );
}

/// Whether submitted messages are logged.
pub(crate) fn tells_of_submissions() -> bool {
    tracing::enabled!(target: SUBMITTED, Level::INFO)
}

/// Logs a submitted message, and the recipients that were done at once.
pub(crate) fn submitted(mail: &OutboundRecord, recipients: &[DeliveryRecord], size: i64) {
    let waits = |one: &&DeliveryRecord| one.state == RecipientState::Queued;
    let each = recipients.iter().map(|one| (one.recipient.as_str(), place(&one.destination)));
    let unlisted = recipients.len().saturating_sub(MAX_LISTED_RECIPIENTS) as u64;
    tracing::info!(
        target: SUBMITTED,
        queue_id = mail.id,
        email_id = mail.email_id.as_ref().map(Id::as_str),
        message_id = message_id(mail.message_id.as_deref()),
        kind = mail.kind.as_str(),
        from = name(mail.sender.as_deref().unwrap_or_default()),
        recipients = listed(each, unlisted),
        waiting = recipients.iter().filter(waits).count(),
        size,
    );
    for one in recipients.iter().filter(|one| !waits(one)) {
        let told = Attempted {
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
        attempted(mail, &told);
    }
}

/// What came of an attempt to hand a message on for one recipient.
pub(crate) struct Attempted<'a> {
    pub(crate) recipient: &'a str,
    /// The domain, the relay, or nothing for a mailbox of this server.
    pub(crate) destination: &'a str,
    pub(crate) state: RecipientState,
    pub(crate) reply: &'a str,
    /// Which attempt it was, counted from 1.
    pub(crate) attempt: i64,
    /// When it is tried again.
    pub(crate) next: Option<Timestamp>,
    /// The server that answered, or that was tried last.
    pub(crate) peer: Option<&'a Peer>,
    /// The email that it became in a mailbox of this server.
    pub(crate) stored_as: Option<&'a str>,
    pub(crate) now: Timestamp,
    /// How long the attempt took.
    pub(crate) took: Duration,
}

impl<'a> Attempted<'a> {
    /// What came of it, in one word.
    pub(crate) fn result(&self) -> &'static str {
        match self.state {
            RecipientState::Queued => "deferred",
            state => state.as_str(),
        }
    }

    /// What came of a record of the queue.
    pub(crate) fn new(record: &'a Claimed, attempt: &'a Attempt, now: Timestamp) -> Self {
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
pub(crate) fn attempted(mail: &OutboundRecord, attempt: &Attempted<'_>) {
    if !tracing::enabled!(target: SENT, Level::INFO) {
        return;
    }
    let peer = attempt.peer;
    tracing::info!(
        target: SENT,
        queue_id = mail.id,
        email_id = mail.email_id.as_ref().map(Id::as_str),
        message_id = message_id(mail.message_id.as_deref()),
        kind = mail.kind.as_str(),
        from = name(mail.sender.as_deref().unwrap_or_default()),
        to = name(attempt.recipient),
        destination = name(place(attempt.destination)),
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

/// What a destination is called.
fn place(destination: &str) -> &str {
    if destination.is_empty() { "local" } else { destination }
}

fn name(text: &str) -> String {
    printable(text, MAX_NAME_CHARS)
}

fn message_id(id: Option<&str>) -> Option<String> {
    id.map(name)
}

/// The emails that a message became.
fn emails(taken: &Received) -> String {
    let ids = taken.emails.iter().flatten().take(MAX_LISTED_RECIPIENTS).map(Id::as_str);
    ids.collect::<Vec<_>>().join(" ")
}

fn authentication(taken: &Received) -> String {
    let found = &taken.authentication;
    format!("spf={} dkim={} dmarc={}", found.spf.as_str(), found.dkim.as_str(), found.dmarc.as_str())
}

/// Recipients, each with what was said about it. Addresses stand in angle brackets, so that none can pose as two.
fn listed<'a>(each: impl Iterator<Item = (&'a str, impl Display)>, unlisted: u64) -> String {
    let mut list = String::new();
    for (address, said) in each.take(MAX_LISTED_RECIPIENTS) {
        let separator = if list.is_empty() { "" } else { ", " };
        // Writing to a text cannot fail.
        let _ =
            write!(list, "{separator}<{}> {}", name(address), printable(&said.to_string(), MAX_NAME_CHARS));
    }
    if unlisted > 0 {
        let _ = write!(list, ", and {unlisted} more");
    }
    list
}

/// Seconds to the millisecond, which is as exact as anybody wants to read it.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}
