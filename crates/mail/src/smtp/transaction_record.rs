//! The record of a mail transaction, from MAIL to its end, for the mail log.
//!
//! Everything in it comes from the client. It is bounded; the caller makes it printable before it is logged.

use std::collections::BTreeMap;

use super::reply::{self, Reply};

/// Recipients that are listed; further ones are only counted.
const MAX_LISTED_RECIPIENTS: usize = 100;
/// The longest address that is kept, in characters.
const MAX_TEXT_CHARS: usize = 320;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// The message was complete, and was accepted for at least one recipient.
    Stored,
    /// The sender was refused, or the message for all recipients.
    Refused,
    /// The client started over: RSET, EHLO or STARTTLS.
    Reset,
    /// The client sent QUIT before the end.
    Quit,
    /// We closed the connection; the reply says why.
    Closed,
    /// The connection was lost.
    Lost,
}

impl TransactionEnd {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Quit => "quit",
            Self::Closed => "closed",
            Self::Lost => "lost",
        }
    }
}

/// A recipient, and the last reply about it.
#[derive(Clone, Debug)]
pub struct RecipientRecord {
    /// The address as it was given.
    pub address: String,
    /// Whether RCPT was accepted.
    pub accepted: bool,
    /// The reply to RCPT, or to the message for this recipient.
    pub reply: Reply,
}

/// The record of a transaction.
#[derive(Clone, Debug)]
pub struct TransactionRecord {
    /// The sender as it was given; empty for the null sender.
    pub from: String,
    /// The recipients in their order, the first hundred of them.
    pub recipients: Vec<RecipientRecord>,
    /// Recipients that were accepted at RCPT.
    pub accepted: u64,
    /// Recipients that were refused at RCPT, by the reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Bytes received; nothing when no content was begun.
    pub size: Option<usize>,
    /// How it ended.
    pub end: TransactionEnd,
    /// The last reply about the message, or about the sender or the connection if there was no message.
    pub reply: Option<Reply>,
}

impl TransactionRecord {
    pub(super) fn new(from: &str) -> Self {
        Self {
            from: shortened(from),
            recipients: Vec::new(),
            accepted: 0,
            refused: BTreeMap::new(),
            size: None,
            end: TransactionEnd::Lost,
            reply: None,
        }
    }

    /// Recipients that were refused at RCPT.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Recipients that are not listed.
    pub fn unlisted(&self) -> u64 {
        (self.accepted + self.refusals()).saturating_sub(self.recipients.len() as u64)
    }

    pub(super) fn accept(&mut self, to: &str) {
        self.accepted += 1;
        self.list(to, true, &reply::RECIPIENT_OK);
    }

    pub(super) fn refuse(&mut self, to: &str, refusal: &Reply) {
        *self.refused.entry(refusal.reason()).or_default() += 1;
        self.list(to, false, refusal);
    }

    fn list(&mut self, address: &str, accepted: bool, reply: &Reply) {
        if self.recipients.len() < MAX_LISTED_RECIPIENTS {
            let address = shortened(address);
            self.recipients.push(RecipientRecord { address, accepted, reply: reply.clone() });
        }
    }

    /// Records the answer for each accepted recipient.
    pub(super) fn answer(&mut self, answers: &[Result<String, Reply>]) {
        let accepted = self.recipients.iter_mut().filter(|named| named.accepted);
        for (named, answer) in accepted.zip(answers) {
            named.reply = match answer {
                Ok(text) => reply::OK.with_text(text.as_str()),
                Err(refusal) => refusal.clone().refusing(),
            };
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}
