//! Sign-In-With-X: a wallet signs a readable text (EIP-4361) with this server's host, the called URL, a nonce of
//! ours and a time. Unlike a bare authorisation it cannot be collected by another site and used here.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{
    Address, Refusal, Signature,
    encoding::{from_standard, to_standard},
    numbers::write_hex,
    personal_digest,
};

/// The header of the proof.
pub const HEADER: &str = "sign-in-with-x";
/// How long a sign-in is valid, in seconds.
pub const LIFETIME_SECONDS: u64 = 300;

/// The audience of a sign-in.
#[derive(Clone, Debug)]
pub struct Audience {
    /// Host and port of the server's public URL.
    pub domain: String,
    /// The called URL.
    pub uri: String,
    /// The CAIP-2 name of the chain.
    pub network: String,
    /// The statement for people.
    pub statement: String,
}

/// What a client signs and sends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignIn {
    /// The server's domain.
    pub domain: String,
    /// The wallet.
    pub address: String,
    /// The statement for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// The called URL.
    pub uri: String,
    /// Always 1.
    pub version: String,
    /// The CAIP-2 name of the chain.
    pub chain_id: String,
    /// The signature type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The server's nonce.
    pub nonce: String,
    /// When the challenge was issued.
    pub issued_at: String,
    /// Its expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<String>,
    /// When it becomes valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// An opaque request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The resources it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// The signature.
    pub signature: String,
}

/// A wallet that signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The wallet.
    pub address: Address,
    /// Makes the proof usable once.
    pub nonce: [u8; 24],
    /// Its expiry, in seconds.
    pub ends: u64,
}

/// A nonce: its time, random bytes, and a seal over both. So the server need not remember nonces.
pub fn new_nonce(secret: &[u8], now: u64, random: [u8; 8]) -> String {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&now.to_be_bytes()[4..]);
    bytes[4..12].copy_from_slice(&random);
    let seal = seal(secret, &bytes[..12]);
    bytes[12..].copy_from_slice(&seal);
    write_hex(&bytes)[2..].to_owned()
}

fn seal(secret: &[u8], bytes: &[u8]) -> [u8; 12] {
    let mut seal = [0; 12];
    // An HMAC takes a key of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
        mac.update(b"siwx nonce");
        mac.update(bytes);
        seal.copy_from_slice(&mac.finalize().into_bytes()[..12]);
    }
    seal
}

fn read_nonce(secret: &[u8], text: &str) -> Option<[u8; 24]> {
    let bytes: [u8; 24] = crate::numbers::read_hex(&format!("0x{text}"))?;
    let expected = seal(secret, &bytes[..12]);
    // In constant time.
    let difference = expected.iter().zip(&bytes[12..]).fold(0, |all, (a, b)| all | (a ^ b));
    (difference == 0).then_some(bytes)
}

fn time(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    at.map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// The extension of a 402 that offers a sign-in.
pub fn extension(audience: &Audience, nonce: &str, now: u64) -> Value {
    json!({
        "info": {
            "domain": audience.domain,
            "uri": audience.uri,
            "version": "1",
            "nonce": nonce,
            "issuedAt": time(now),
            "expirationTime": time(now + LIFETIME_SECONDS),
            "statement": audience.statement,
        },
        "supportedChains": [{ "chainId": audience.network, "type": "eip191" }],
        "schema": { "type": "object" },
    })
}

/// The text that the wallet signs.
pub fn message(sign_in: &SignIn, address: Address) -> String {
    let chain = sign_in.chain_id.rsplit(':').next().unwrap_or_default();
    let mut text = format!(
        "{} wants you to sign in with your Ethereum account:\n{}\n\n",
        sign_in.domain,
        address.to_checksum()
    );
    if let Some(statement) = &sign_in.statement {
        let _ = writeln!(text, "{statement}");
    }
    let _ = write!(
        text,
        "\nURI: {}\nVersion: {}\nChain ID: {chain}\nNonce: {}\nIssued At: {}",
        sign_in.uri, sign_in.version, sign_in.nonce, sign_in.issued_at
    );
    let optional = [
        ("Expiration Time", &sign_in.expiration_time),
        ("Not Before", &sign_in.not_before),
        ("Request ID", &sign_in.request_id),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            let _ = write!(text, "\n{name}: {value}");
        }
    }
    if let Some(resources) = &sign_in.resources {
        text.push_str("\nResources:");
        for resource in resources {
            let _ = write!(text, "\n- {resource}");
        }
    }
    text
}

/// Reads and checks a sign-in.
pub fn verify(header: &str, audience: &Audience, secret: &[u8], now: u64) -> Result<SignedIn, Refusal> {
    let sign_in: SignIn = from_standard(header).map_err(|_| Refusal::SIWX_FORM)?;
    if !is_plain(&sign_in) || sign_in.version != "1" || sign_in.kind != "eip191" {
        return Err(Refusal::SIWX_FORM);
    }
    if sign_in.domain != audience.domain {
        return Err(Refusal::SIWX_DOMAIN);
    }
    if sign_in.uri != audience.uri {
        return Err(Refusal::SIWX_URI);
    }
    if sign_in.chain_id != audience.network {
        return Err(Refusal::SIWX_CHAIN);
    }
    let ends = check_times(&sign_in, now)?;
    let nonce = read_nonce(secret, &sign_in.nonce).ok_or(Refusal::SIWX_NONCE)?;
    let address = Address::parse(&sign_in.address).ok_or(Refusal::SIWX_FORM)?;
    let signature = Signature::parse(&sign_in.signature).ok_or(Refusal::SIWX_FORM)?;
    if signature.recover(personal_digest(&message(&sign_in, address))) != Some(address) {
        return Err(Refusal::SIWX_SIGNATURE);
    }
    Ok(SignedIn { address, nonce, ends })
}

/// Whether no field contains a line break.
fn is_plain(sign_in: &SignIn) -> bool {
    let lines = [&sign_in.domain, &sign_in.uri, &sign_in.version, &sign_in.nonce, &sign_in.issued_at];
    let optional = [&sign_in.statement, &sign_in.expiration_time, &sign_in.not_before, &sign_in.request_id];
    let plain = |text: &String| !text.chars().any(char::is_control);
    lines.into_iter().all(plain)
        && optional.into_iter().flatten().all(plain)
        && sign_in.resources.iter().flatten().all(plain)
}

/// Checks the times and returns the expiry.
fn check_times(sign_in: &SignIn, now: u64) -> Result<u64, Refusal> {
    let read = |text: &str| -> Option<u64> {
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_second()).ok()
    };
    let issued = read(&sign_in.issued_at).ok_or(Refusal::SIWX_ISSUED)?;
    // The time is from our nonce, so only our nodes' clocks can differ.
    if issued > now.saturating_add(5) {
        return Err(Refusal::SIWX_FUTURE);
    }
    if issued.saturating_add(LIFETIME_SECONDS) < now {
        return Err(Refusal::SIWX_OLD);
    }
    let mut ends = issued.saturating_add(LIFETIME_SECONDS);
    if let Some(text) = &sign_in.expiration_time {
        ends = ends.min(read(text).ok_or(Refusal::SIWX_EXPIRED)?);
    }
    if ends < now {
        return Err(Refusal::SIWX_EXPIRED);
    }
    if let Some(text) = &sign_in.not_before
        && read(text).is_none_or(|begins| begins > now)
    {
        return Err(Refusal::SIWX_NOT_YET);
    }
    Ok(ends)
}

/// The header of a sign-in.
pub fn header(sign_in: &SignIn) -> String {
    to_standard(sign_in)
}
