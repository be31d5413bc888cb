//! Secrets that callers have: API keys, session cookies, invitation tokens. Only their hashes are stored.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::core::{
    app::App,
    error::{Error, Result},
};

const PREFIX: &str = "sk-proj-";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 256 bits in base 62.
const BODY: usize = 43;
/// A CRC-32 in base 62, so that a secret scanner can recognise our keys offline.
const CHECKSUM: usize = 6;

/// The hash that a secret is stored and looked up by.
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A keyed hash over some texts, under a key derived for the purpose; the same on all nodes.
pub(crate) fn keyed(app: &App, purpose: &str, texts: &[&str]) -> Result<Hmac<Sha256>> {
    let key = app.master_key().derive(purpose);
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&key[..]).map_err(|error| Error::internal(error.to_string()))?;
    for text in texts {
        mac.update(text.as_bytes());
        // No text of ours contains a NUL, so different lists never hash alike.
        mac.update(&[0]);
    }
    Ok(mac)
}

/// Makes an API key: `sk-proj-`, 256 random bits, a checksum.
pub fn new_api_key(app: &App) -> String {
    let body = new_token(app);
    let checksum = checksum(&body);
    format!("{PREFIX}{body}{checksum}")
}

/// Makes a secret of 256 random bits in base 62.
pub fn new_token(app: &App) -> String {
    let mut bytes = [0; 32];
    app.entropy().fill(&mut bytes);
    base62(&bytes, BODY)
}

/// Whether a text has the form of one of our keys.
pub fn is_api_key(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| {
        rest.is_ascii() && rest.len() == BODY + CHECKSUM && checksum(&rest[..BODY]) == rest[BODY..]
    })
}

/// The part of a key that may be shown again.
pub fn hint(key: &str) -> String {
    key.chars().take(PREFIX.len() + 4).collect::<String>() + "…"
}

fn checksum(body: &str) -> String {
    base62(&crc32fast::hash(body.as_bytes()).to_be_bytes(), CHECKSUM)
}

/// Writes a big-endian number in base 62, padded to `digits`.
fn base62(bytes: &[u8], digits: usize) -> String {
    let mut number = bytes.to_vec();
    let mut text = vec![BASE62[0]; digits];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = (remainder << 8) | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or_default();
            remainder = value % 62;
        }
        *digit = BASE62[remainder as usize];
    }
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_tell_keys_from_lookalikes() {
        let body = base62(&[0xff; 32], BODY);
        assert_eq!(body.len(), BODY);
        let key = format!("{PREFIX}{body}{}", checksum(&body));
        assert!(is_api_key(&key));
        assert!(!is_api_key(&key.replace(&body[..1], "0")));
        assert!(!is_api_key("sk-proj-"));
        assert!(!is_api_key(&key[..key.len() - 1]));
        assert!(hint(&key).len() < 20);
    }

    #[test]
    fn base62_is_positional() {
        assert_eq!(base62(&[0, 0, 0, 61], 2), "0z");
        assert_eq!(base62(&[0, 0, 0, 62], 2), "10");
    }
}
