//! The `Payment` scheme of HTTP authentication, method `evm`, intent `charge`.
//!
//! A challenge's id is a seal over the rest of it, so the server need not remember challenges. The nonce of the
//! authorisation derives from that id, which binds the payment to one challenge and with it to one request.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    Payment, Refusal, Signature, Terms, Word,
    encoding::{from_url_safe, standard, to_url_safe, url_safe},
    keccak256, networks,
    x402::WireAuthorization,
};

/// The header of the challenge.
pub const CHALLENGE_HEADER: &str = "www-authenticate";
/// The header of the receipt.
pub const RECEIPT_HEADER: &str = "payment-receipt";
/// How long a challenge is valid, in seconds.
const LIFETIME_SECONDS: u64 = 300;

/// The request that a challenge is for.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// The host of the server's public URL.
    pub realm: &'a str,
    /// The request's method.
    pub method: &'a str,
    /// The request's path.
    pub path: &'a str,
    /// The request's body.
    pub body: &'a [u8],
}

/// The parts of a challenge as in headers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Challenge {
    /// The seal over the rest.
    pub id: String,
    /// The server.
    pub realm: String,
    /// `evm`.
    pub method: String,
    /// `charge`.
    pub intent: String,
    /// The payment request, encoded.
    pub request: String,
    /// Its expiry.
    #[serde(default)]
    pub expires: Option<String>,
    /// The hash of the body.
    #[serde(default)]
    pub digest: Option<String>,
    /// Ours, encoded.
    #[serde(default)]
    pub opaque: Option<String>,
}

#[derive(Deserialize)]
struct Credential {
    challenge: Challenge,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "type")]
    kind: String,
    signature: String,
    #[serde(flatten)]
    authorization: WireAuthorization,
}

/// The payment request, in the order of canonical JSON (RFC 8785).
fn request(terms: &Terms) -> String {
    to_url_safe(&json!({
        "amount": terms.amount.to_string(),
        "currency": terms.domain.contract.to_checksum(),
        "methodDetails": {
            "chainId": terms.domain.chain_id,
            "credentialTypes": ["authorization"],
            "decimals": networks::DECIMALS,
        },
        "recipient": terms.pay_to.to_checksum(),
    }))
}

/// The digest of a body, as clients write it; `None` for an empty one.
fn digest(body: &[u8]) -> Option<String> {
    (!body.is_empty()).then(|| format!("sha-256={}", standard(&Sha256::digest(body))))
}

/// The method and path that a challenge is for.
fn route(bound: &Bound<'_>) -> String {
    let hash = Sha256::digest(format!("{} {}", bound.method, bound.path));
    url_safe(&hash[..12])
}

/// Randomness keeps two challenges for the same request apart: they would have the same id, so the same nonce.
fn opaque(bound: &Bound<'_>, random: [u8; 12]) -> String {
    to_url_safe(&json!({ "n": url_safe(&random), "r": route(bound) }))
}

impl Challenge {
    /// A challenge for a request.
    pub fn new(terms: &Terms, bound: &Bound<'_>, secret: &[u8], now: u64, random: [u8; 12]) -> Self {
        let mut challenge = Self {
            id: String::new(),
            realm: bound.realm.to_owned(),
            method: "evm".to_owned(),
            intent: "charge".to_owned(),
            request: request(terms),
            expires: Some(time(now + LIFETIME_SECONDS)),
            digest: digest(bound.body),
            opaque: Some(opaque(bound, random)),
        };
        challenge.id = challenge.sealed(secret);
        challenge
    }

    /// The header. Nothing in it needs escaping.
    pub fn header(&self) -> String {
        let mut text = format!(
            "Payment id=\"{}\", realm=\"{}\", method=\"{}\", intent=\"{}\", request=\"{}\"",
            self.id, self.realm, self.method, self.intent, self.request
        );
        for (name, value) in [("expires", &self.expires), ("digest", &self.digest), ("opaque", &self.opaque)]
        {
            if let Some(value) = value {
                let _ = write!(text, ", {name}=\"{value}\"");
            }
        }
        text
    }

    /// The seal over everything but the id.
    fn sealed(&self, secret: &[u8]) -> String {
        let slots = [
            self.realm.as_str(),
            &self.method,
            &self.intent,
            &self.request,
            self.expires.as_deref().unwrap_or_default(),
            self.digest.as_deref().unwrap_or_default(),
            self.opaque.as_deref().unwrap_or_default(),
        ];
        // An HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
        mac.update(slots.join("|").as_bytes());
        url_safe(&mac.finalize().into_bytes())
    }

    /// Whether the id is the seal over the rest with this secret.
    pub(crate) fn is_sealed_with(&self, secret: &[u8]) -> bool {
        same(&self.id, &self.sealed(secret))
    }

    /// The nonce that the authorisation must have.
    pub fn nonce(&self) -> Word {
        Word(keccak256(format!("{}{}", self.id, self.realm)))
    }

    /// Its expiry, in seconds.
    fn ends(&self) -> Option<u64> {
        let at: jiff::Timestamp = self.expires.as_deref()?.parse().ok()?;
        u64::try_from(at.as_second()).ok()
    }
}

fn time(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

/// A credential whose challenge is ours and for this request.
pub struct Answered {
    /// The payment.
    pub payment: Payment,
    /// The challenge's id, for the receipt.
    pub challenge: String,
}

/// Reads the credential after `Payment ` and checks its challenge, but not its expiry: the authorisation expires
/// with the challenge at the latest, and a repeat may come later.
pub fn read(credential: &str, terms: &Terms, bound: &Bound<'_>, secret: &[u8]) -> Result<Answered, Refusal> {
    let Credential { challenge, payload } = from_url_safe(credential)?;
    if !challenge.is_sealed_with(secret) {
        return Err(Refusal::CHALLENGE);
    }
    let opaque: Value = from_url_safe(challenge.opaque.as_deref().unwrap_or_default())?;
    let ours = challenge.realm == bound.realm
        && challenge.request == request(terms)
        // A challenge without a digest was issued for a body that was not read.
        && (challenge.digest.is_none() || challenge.digest == digest(bound.body))
        && opaque["r"].as_str() == Some(&route(bound));
    if !ours {
        return Err(Refusal::CHALLENGE);
    }
    let ends = challenge.ends().ok_or(Refusal::CHALLENGE)?;
    if payload.kind != "authorization" {
        return Err(Refusal::SCHEME);
    }
    let authorization = payload.authorization.read()?;
    let signature = Signature::parse(&payload.signature).ok_or(Refusal::SIGNATURE_FORM)?;
    if authorization.nonce != challenge.nonce() || authorization.valid_before > Word::from(ends) {
        return Err(Refusal::CHALLENGE);
    }
    Ok(Answered { payment: Payment { authorization, signature }, challenge: challenge.id })
}

/// Compares in constant time.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// The receipt of a settled payment.
pub fn receipt(terms: &Terms, challenge: &str, transaction: &str, now: u64) -> String {
    to_url_safe(&json!({
        "status": "success",
        "method": "evm",
        "timestamp": time(now),
        "reference": transaction,
        "challengeId": challenge,
        "chainId": terms.domain.chain_id,
    }))
}

/// A credential, for tests and measurements.
#[cfg(any(test, feature = "wallet"))]
pub fn credential(challenge: &Challenge, payment: &Payment) -> String {
    let authorization = WireAuthorization::from(&payment.authorization);
    let mut payload = serde_json::to_value(&authorization).unwrap_or_default();
    payload["type"] = "authorization".into();
    payload["signature"] = payment.signature.to_hex().into();
    to_url_safe(&json!({ "challenge": challenge, "payload": payload }))
}

/// Reads a challenge header, for tests and measurements.
#[cfg(any(test, feature = "wallet"))]
pub fn read_challenge(header: &str) -> Option<Challenge> {
    let fields = header.strip_prefix("Payment ")?.split(", ").filter_map(|field| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), Value::from(value.trim_matches('"'))))
    });
    serde_json::from_value(Value::Object(fields.collect())).ok()
}
