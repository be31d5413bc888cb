//! A proof that was read and checked, the request that it came with, and what is paid for.

use model::{Timestamp, payments::Protocol};
use pay::{Address, x402::Resource};
use store::payments::PaymentKey;

use crate::core::{app::App, operation::Operation};

/// A proof that was read and checked: who, how much, and for how long.
#[derive(Clone)]
pub struct Proof {
    /// The wallet.
    pub payer: Address,
    /// How it came.
    pub protocol: Protocol,
    /// What makes it usable once.
    pub key: PaymentKey,
    /// How much it pays.
    pub amount: u64,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// Why it is too late or too early for anything but a repeat.
    pub untimely: Option<pay::Refusal>,
    /// What was signed; nothing of a sign-in.
    pub payment: Option<pay::Payment>,
    /// The id of the challenge that it answers.
    pub challenge: Option<String>,
}

/// What a request is known by.
#[derive(Clone)]
pub struct Request {
    /// The operation.
    pub operation: &'static Operation,
    /// The path.
    pub subject: String,
    /// The hash of method, path, query and body.
    pub fingerprint: [u8; 32],
}

/// What is paid for, as payers and facilitators are told.
pub fn resource(app: &App, summary: &str, path: &str) -> Resource {
    Resource {
        url: format!("{}{path}", app.settings().public_url),
        description: summary
            .split_inclusive(". ")
            .next()
            .unwrap_or_default()
            .trim()
            .chars()
            .take(120)
            .collect(),
        service: "Agent Mailbox".to_owned(),
    }
}
