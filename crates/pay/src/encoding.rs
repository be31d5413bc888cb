//! The encodings of headers: padded standard base64 for x402, unpadded base64url for MPP; both are bounded.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::Refusal;

/// The longest header that is read. Clients echo the challenge, so theirs are longer than ours.
const MAX_PROOF_BYTES: usize = 8 * 1024;
/// The longest header that is sent: proxies may refuse longer ones.
pub const MAX_CHALLENGE_BYTES: usize = 4 * 1024;

/// A value in x402's encoding.
pub fn to_standard<T: Serialize>(value: &T) -> String {
    STANDARD.encode(serde_json::to_vec(value).unwrap_or_default())
}

/// A value in MPP's encoding.
pub fn to_url_safe<T: Serialize>(value: &T) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).unwrap_or_default())
}

/// Reads a header of x402.
pub fn from_standard<T: DeserializeOwned>(header: &str) -> Result<T, Refusal> {
    read(header, &STANDARD)
}

/// Reads a value of MPP.
pub fn from_url_safe<T: DeserializeOwned>(header: &str) -> Result<T, Refusal> {
    read(header, &URL_SAFE_NO_PAD)
}

fn read<T: DeserializeOwned>(header: &str, engine: &impl Engine) -> Result<T, Refusal> {
    if header.len() > MAX_PROOF_BYTES {
        return Err(Refusal::MALFORMED);
    }
    let bytes = engine.decode(header.trim()).map_err(|_| Refusal::MALFORMED)?;
    serde_json::from_slice(&bytes).map_err(|_| Refusal::MALFORMED)
}

/// Bytes as base64url without padding.
pub(crate) fn url_safe(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Bytes as padded standard base64.
pub(crate) fn standard(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
