//! What operations cost a wallet.

use crate::{
    core::{
        operation::Operation,
        settings::{PaymentSettings, Prices},
    },
    mailbox::mailboxes,
    outbox::{drafts, sending},
};

/// Where the price of an operation stands.
type PriceOf = fn(&Prices) -> u64;

/// The operations that cost something, and where their price stands.
const PAID: [(&Operation, PriceOf); 5] = [
    (&mailboxes::CREATE, |prices| prices.create_mailbox),
    (&sending::SEND, |prices| prices.send),
    (&sending::REPLY, |prices| prices.reply),
    (&sending::FORWARD, |prices| prices.forward),
    (&drafts::SAVE, |prices| prices.draft),
];

impl PaymentSettings {
    /// What an operation costs a wallet.
    pub fn price(&self, operation: &Operation) -> u64 {
        let paid = PAID.iter().find(|(paid, _)| paid.id == operation.id);
        paid.map_or(0, |(_, price)| price(&self.prices))
    }
}

/// What is said about an operation that is paid for.
pub(super) fn summary(operation: &str) -> &'static str {
    PAID.iter().find(|(paid, _)| paid.id == operation).map_or("", |(paid, _)| paid.summary)
}
