//! The prices of operations for wallets.

use crate::{
    core::{
        operation::Operation,
        settings::{PaymentSettings, Prices},
    },
    mailbox::mailboxes,
    outbox::{drafts, sending},
};

/// The price of an operation in the settings.
type PriceOf = fn(&Prices) -> u64;

/// The operations with a price.
const PAID: [(&Operation, PriceOf); 5] = [
    (&mailboxes::CREATE, |prices| prices.create_mailbox),
    (&sending::SEND, |prices| prices.send),
    (&sending::REPLY, |prices| prices.reply),
    (&sending::FORWARD, |prices| prices.forward),
    (&drafts::SAVE, |prices| prices.draft),
];

impl PaymentSettings {
    /// The price of an operation for a wallet.
    pub fn price(&self, operation: &Operation) -> u64 {
        let paid = PAID.iter().find(|(paid, _)| paid.id == operation.id);
        paid.map_or(0, |(_, price)| price(&self.prices))
    }
}

/// The summary of a paid operation.
pub(super) fn summary(operation: &str) -> &'static str {
    PAID.iter().find(|(paid, _)| paid.id == operation).map_or("", |(paid, _)| paid.summary)
}
