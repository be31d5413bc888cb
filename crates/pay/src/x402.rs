//! x402 over HTTP, versions 1 and 2, scheme `exact`.
//!
//! Version 2 uses headers, version 1 the body of the 402: one response serves clients of both. Unknown fields are
//! ignored, since clients may add some; after reading only our own requirements count.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Address, Authorization, Payment, Refusal, Signature, Terms, Word,
    encoding::{from_standard, to_standard},
};

/// The challenge header of version 2.
pub const REQUIRED_HEADER: &str = "payment-required";
/// The payment header of version 2.
pub const SIGNATURE_HEADER: &str = "payment-signature";
/// The receipt header of version 2.
pub const RESPONSE_HEADER: &str = "payment-response";
/// The payment header of version 1.
pub const V1_HEADER: &str = "x-payment";
/// The receipt header of version 1.
pub const V1_RESPONSE_HEADER: &str = "x-payment-response";

/// What is paid for.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its URL.
    pub url: String,
    /// A short description.
    pub description: String,
    /// Who offers it.
    pub service: String,
}

impl Resource {
    fn to_json(&self) -> Value {
        json!({
            "url": self.url,
            "description": self.description,
            "mimeType": "application/json",
            "serviceName": self.service,
        })
    }
}

/// The requirements of version 2, as clients echo them and facilitators expect them.
pub(crate) fn requirements(terms: &Terms) -> Value {
    json!({
        "scheme": "exact",
        "network": terms.network,
        "amount": terms.amount.to_string(),
        "asset": terms.domain.contract.to_checksum(),
        "payTo": terms.pay_to.to_checksum(),
        "maxTimeoutSeconds": terms.max_timeout,
        "extra": { "name": terms.domain.name, "version": terms.domain.version },
    })
}

/// The header of a 402 in version 2.
pub fn required_header(terms: &Terms, resource: &Resource, error: &str, extensions: &Value) -> String {
    to_standard(&json!({
        "x402Version": 2,
        "error": error,
        "resource": resource.to_json(),
        "accepts": [requirements(terms)],
        "extensions": extensions,
    }))
}

/// The offer to version 1 clients in the body of a 402.
///
/// There is no `outputSchema`: the widely used client refuses the null that the protocol's own example shows.
pub fn v1_accepts(terms: &Terms, resource: &Resource) -> Value {
    json!([{
        "scheme": "exact",
        "network": terms.v1_network,
        "maxAmountRequired": terms.amount.to_string(),
        "asset": terms.domain.contract.to_checksum(),
        "payTo": terms.pay_to.to_checksum(),
        "resource": resource.url,
        "description": resource.description,
        "mimeType": "application/json",
        "maxTimeoutSeconds": terms.max_timeout,
        "extra": { "name": terms.domain.name, "version": terms.domain.version },
    }])
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadV2 {
    x402_version: u64,
    payload: SignedV1,
    accepted: Accepted,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadV1 {
    x402_version: u64,
    scheme: String,
    network: String,
    payload: SignedV1,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    scheme: String,
    network: String,
    amount: String,
    asset: String,
    pay_to: String,
}

#[derive(Deserialize)]
struct SignedV1 {
    signature: String,
    authorization: WireAuthorization,
}

/// An authorisation as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireAuthorization {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) value: String,
    pub(crate) valid_after: String,
    pub(crate) valid_before: String,
    pub(crate) nonce: String,
}

impl WireAuthorization {
    pub(crate) fn read(&self) -> Result<Authorization, Refusal> {
        let read = || {
            Some(Authorization {
                from: Address::parse(&self.from)?,
                to: Address::parse(&self.to)?,
                value: Word::parse_decimal(&self.value)?,
                valid_after: Word::parse_decimal(&self.valid_after)?,
                valid_before: Word::parse_decimal(&self.valid_before)?,
                nonce: Word::parse_hex(&self.nonce)?,
            })
        };
        read().ok_or(Refusal::MALFORMED)
    }
}

impl From<&Authorization> for WireAuthorization {
    fn from(authorization: &Authorization) -> Self {
        Self {
            from: authorization.from.to_checksum(),
            to: authorization.to.to_checksum(),
            value: authorization.value.to_string(),
            valid_after: authorization.valid_after.to_string(),
            valid_before: authorization.valid_before.to_string(),
            nonce: authorization.nonce.to_hex(),
        }
    }
}

fn signed(signed: &SignedV1) -> Result<Payment, Refusal> {
    let authorization = signed.authorization.read()?;
    let signature = Signature::parse(&signed.signature).ok_or(Refusal::SIGNATURE_FORM)?;
    Ok(Payment { authorization, signature })
}

/// Reads a version 2 payment, if it matches our requirements.
pub fn read_v2(header: &str, terms: &Terms) -> Result<Payment, Refusal> {
    let payload: PayloadV2 = from_standard(header)?;
    if payload.x402_version != 2 {
        return Err(Refusal::VERSION);
    }
    let accepted = &payload.accepted;
    if accepted.scheme != "exact" {
        return Err(Refusal::SCHEME);
    }
    if accepted.network != terms.network {
        return Err(Refusal::NETWORK);
    }
    if Word::parse_decimal(&accepted.amount) != Some(terms.amount.into()) {
        return Err(Refusal::VALUE);
    }
    if Address::parse(&accepted.pay_to) != Some(terms.pay_to) {
        return Err(Refusal::RECIPIENT);
    }
    if Address::parse(&accepted.asset) != Some(terms.domain.contract) {
        return Err(Refusal::REQUIREMENTS);
    }
    signed(&payload.payload)
}

/// Reads a version 1 payment, if it matches our requirements.
pub fn read_v1(header: &str, terms: &Terms) -> Result<Payment, Refusal> {
    let payload: PayloadV1 = from_standard(header)?;
    if payload.x402_version != 1 {
        return Err(Refusal::VERSION);
    }
    if payload.scheme != "exact" {
        return Err(Refusal::SCHEME);
    }
    if payload.network != terms.v1_network {
        return Err(Refusal::NETWORK);
    }
    signed(&payload.payload)
}

/// The result of a payment.
#[derive(Clone, Debug)]
pub struct Settled<'a> {
    /// The payer.
    pub payer: Address,
    /// The transaction; empty when no money moved.
    pub transaction: &'a str,
    /// The error, if it failed.
    pub error: Option<&'a str>,
    /// Whether it was settled only in this server's ledger, without a chain.
    pub by_ledger: bool,
}

/// The receipt header for version 2.
pub fn response_header(terms: &Terms, settled: &Settled<'_>) -> String {
    to_standard(&response(&terms.network, terms, settled))
}

/// The receipt header for version 1.
pub fn v1_response_header(terms: &Terms, settled: &Settled<'_>) -> String {
    to_standard(&response(&terms.v1_network, terms, settled))
}

fn response(network: &str, terms: &Terms, settled: &Settled<'_>) -> Value {
    let mut response = json!({
        "success": settled.error.is_none(),
        "transaction": settled.transaction,
        "network": network,
        "payer": settled.payer.to_checksum(),
        "amount": terms.amount.to_string(),
    });
    if let Some(reason) = settled.error {
        response["errorReason"] = reason.into();
    }
    if settled.by_ledger {
        response["extra"] = json!({ "settledBy": "ledger" });
    }
    response
}

/// A version 2 payload, for facilitators, tests and measurements.
pub fn payload(terms: &Terms, resource: &Resource, payment: &Payment) -> Value {
    json!({
        "x402Version": 2,
        "payload": {
            "authorization": WireAuthorization::from(&payment.authorization),
            "signature": payment.signature.to_hex(),
        },
        "resource": resource.to_json(),
        "accepted": requirements(terms),
    })
}

/// A version 1 payload.
pub fn v1_payload(terms: &Terms, payment: &Payment) -> Value {
    json!({
        "x402Version": 1,
        "scheme": "exact",
        "network": terms.v1_network,
        "payload": {
            "authorization": WireAuthorization::from(&payment.authorization),
            "signature": payment.signature.to_hex(),
        },
    })
}
