//! A checked proof, the request that it came with, and the resource that is paid for.

use model::{Timestamp, payments::Protocol};
use pay::{Address, x402::Resource};
use store::payments::PaymentKey;

use crate::core::{app::App, operation::Operation};

/// A proof that was read and checked.
#[derive(Clone)]
pub struct Proof {
    /// The wallet.
    pub payer: Address,
    /// The protocol.
    pub protocol: Protocol,
    /// The key that makes it usable once.
    pub key: PaymentKey,
    /// The amount it pays.
    pub amount: u64,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Why it is too late or too early for anything but a repeat.
    pub untimely: Option<pay::Refusal>,
    /// The signed payment; `None` for a sign-in.
    pub payment: Option<pay::Payment>,
    /// The id of the challenge that it answers.
    pub challenge: Option<String>,
}

/// What identifies a request.
#[derive(Clone)]
pub struct Request {
    /// The operation.
    pub operation: &'static Operation,
    /// The path.
    pub subject: String,
    /// The hash of method, path, query and body.
    pub fingerprint: [u8; 32],
}

/// The resource that is paid for, as payers and facilitators see it.
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
