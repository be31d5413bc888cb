//! Requests to a facilitator, which settles payments on a chain, and how its responses are read.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Address, Payment, Signature, Terms,
    x402::{self, Resource, WireAuthorization},
};

/// The body of `/verify` and `/settle`.
pub fn request(terms: &Terms, resource: &Resource, payment: &Payment) -> Value {
    json!({
        "x402Version": 2,
        "paymentPayload": x402::payload(terms, resource, payment),
        "paymentRequirements": x402::requirements(terms),
    })
}

/// A facilitator's result of settling a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Settled.
    Done {
        /// The transaction.
        transaction: String,
    },
    /// Failed for good.
    Refused {
        /// Why.
        reason: String,
    },
    /// Unknown yet.
    Pending {
        /// Why.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SettleAnswer {
    success: bool,
    #[serde(default)]
    error_reason: Option<String>,
    #[serde(default)]
    transaction: Option<String>,
    #[serde(default)]
    network: Option<String>,
    #[serde(default)]
    payer: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VerifyAnswer {
    is_valid: bool,
    #[serde(default)]
    invalid_reason: Option<String>,
    #[serde(default)]
    payer: Option<String>,
}

/// Reasons are shown and stored, so they are short and plain.
fn reason(given: Option<String>, otherwise: &str) -> String {
    let text = given.unwrap_or_default();
    let plain: String =
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-. ".contains(*c)).take(100).collect();
    if plain.is_empty() { otherwise.to_owned() } else { plain }
}

/// Reads the response of `/settle`, whatever its status.
///
/// Only an explicit success for this payer, this network and a transaction counts. An unreadable response says
/// nothing about the money, so the payment is reconciled later.
pub fn read_settle(body: &[u8], terms: &Terms, payer: Address) -> Settlement {
    let Ok(answer) = serde_json::from_slice::<SettleAnswer>(body) else {
        return Settlement::Pending { reason: "unreadable_facilitator_answer".to_owned() };
    };
    if !answer.success {
        let given = reason(answer.error_reason, "unexpected_settle_error");
        return if given == "settlement_pending" {
            Settlement::Pending { reason: given }
        } else {
            Settlement::Refused { reason: given }
        };
    }
    let transaction = answer.transaction.filter(|hash| {
        hash.len() == 66 && hash.starts_with("0x") && hash[2..].bytes().all(|b| b.is_ascii_hexdigit())
    });
    let same_payer = answer.payer.is_none_or(|text| Address::parse(&text) == Some(payer));
    let same_network =
        answer.network.is_none_or(|network| network == terms.network || network == terms.v1_network);
    match transaction {
        Some(transaction) if same_payer && same_network => Settlement::Done { transaction },
        _ => Settlement::Pending { reason: "inconsistent_facilitator_answer".to_owned() },
    }
}

/// Reads the response of `/verify`. `None` when it is unreadable; else whether the payment is valid, or why not.
pub fn read_verify(body: &[u8], payer: Address) -> Option<Result<(), String>> {
    let answer: VerifyAnswer = serde_json::from_slice(body).ok()?;
    if !answer.is_valid {
        return Some(Err(reason(answer.invalid_reason, "unexpected_verify_error")));
    }
    let same = answer.payer.is_none_or(|text| Address::parse(&text) == Some(payer));
    Some(if same { Ok(()) } else { Err("payer_mismatch".to_owned()) })
}

/// Whether `/supported` lists version 2 of the scheme `exact` on a network.
pub fn supports(body: &[u8], network: &str) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return false };
    let kinds = answer["kinds"].as_array().map(Vec::as_slice).unwrap_or_default();
    kinds
        .iter()
        .any(|kind| kind["x402Version"] == 2 && kind["scheme"] == "exact" && kind["network"] == network)
}

#[derive(Serialize, Deserialize)]
struct StoredPayment {
    authorization: WireAuthorization,
    signature: String,
}

/// A payment as stored, sealed, until it is settled.
pub fn keep(payment: &Payment) -> Vec<u8> {
    let stored = StoredPayment {
        authorization: WireAuthorization::from(&payment.authorization),
        signature: payment.signature.to_hex(),
    };
    serde_json::to_vec(&stored).unwrap_or_default()
}

/// Reads a stored payment.
pub fn recall(bytes: &[u8]) -> Option<Payment> {
    let stored: StoredPayment = serde_json::from_slice(bytes).ok()?;
    let authorization = stored.authorization.read().ok()?;
    Some(Payment { authorization, signature: Signature::parse(&stored.signature)? })
}
