//! Payments of the keyless interface: where they stand, and what a wallet asks for.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PaymentId, Timestamp, WorkspaceId, emails::named, names::valid_name};

named! {
    /// Where a payment stands.
    PaymentState {
        /// It was claimed for a request, and the facilitator is asked.
        Settling "settling",
        /// Nobody knows yet whether the money moved.
        Pending "pending",
        /// The money moved, and what it was for has not been done yet.
        Settled "settled",
        /// The payer got what was paid for.
        Fulfilled "fulfilled",
        /// No money moved, and nothing was done.
        Failed "failed",
    }
}

named! {
    /// How a proof came.
    Protocol {
        /// x402, version 2.
        X402 "x402",
        /// x402, version 1.
        X402V1 "x402_v1",
        /// The `Payment` scheme of HTTP authentication.
        Mpp "mpp",
        /// Sign-In-With-X.
        Siwx "siwx",
    }
}

/// A new mailbox of a wallet.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewWalletMailbox {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Its address on a hosted domain. Generated if omitted.
    #[garde(length(min = 3, max = 254))]
    #[serde(default)]
    pub email: Option<String>,
    /// Whether the wallet must sign in to read it; a zero-amount authorisation is not enough.
    #[serde(default)]
    pub require_siwx: bool,
}

/// What a wallet gets after it has identified itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Handshake {
    /// The URL of the keyless API.
    pub agent_api_base_url: String,
    /// The wallet.
    pub wallet: String,
}

/// A payment, as operators see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Payment {
    /// Its id.
    pub id: PaymentId,
    /// Its status.
    pub state: PaymentState,
    /// Why it failed or waits.
    pub reason: Option<String>,
    /// How it came.
    pub protocol: Protocol,
    /// Who paid.
    pub payer: String,
    /// The payer's workspace, once it has one.
    pub workspace_id: Option<WorkspaceId>,
    /// How much, in US dollars.
    pub amount: String,
    /// The network.
    pub network: String,
    /// The token.
    pub asset: String,
    /// What makes it usable once.
    pub nonce: String,
    /// The transaction that moved the money.
    pub transaction: Option<String>,
    /// What it was for.
    pub operation: String,
    /// The path of the request.
    pub path: String,
    /// When it was claimed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
