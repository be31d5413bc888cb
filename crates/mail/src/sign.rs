//! Signing outgoing mail with DKIM (RFC 6376, RFC 8463), and its keys.
//!
//! mail-auth does the cryptography, relaxed in headers and body. This module decides which headers are signed, and
//! makes sure that nobody can add another important one without breaking the signature.

#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{KeyPair, RsaKeyPair};
use mail_auth::common::crypto::{DkimKey, Ed25519Key, RsaKey, SigningKey};
use mail_auth::common::headers::{HeaderStream, HeaderWriter, Writable, Writer};
use mail_auth::dkim::canonicalize::CanonicalHeaders;
use mail_auth::dkim::{Canonicalization, Signature};
use mail_builder::encoders::Base64Encoder;
use memchr::memchr;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::authentication::without_blank_lines;

/// The smallest RSA key that is accepted, in bytes.
const MIN_RSA_BYTES: usize = 128;

/// Headers that are oversigned (signed once more than they occur), so that none can be added.
const OVERSIGNED: [&str; 12] = [
    "From",
    "Reply-To",
    "Subject",
    "Date",
    "To",
    "Cc",
    "Message-ID",
    "In-Reply-To",
    "References",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// Headers that are signed if present; a mailing list may add them to a message without them.
const SIGNED_IF_PRESENT: [&str; 5] =
    ["Auto-Submitted", "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "Feedback-ID"];

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA of 2048 bits with SHA-256, which every receiver knows.
    Rsa,
    /// Ed25519, whose records are short.
    Ed25519,
}

impl Algorithm {
    /// The name in key records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rsa => "rsa",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// Why a key cannot be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// No key could be generated.
    #[error("No key could be generated.")]
    Generate,
    /// The stored bytes are no key of that kind.
    #[error("The stored bytes are not a private key for {}.", .0.as_str())]
    Key(Algorithm),
    /// A domain or selector that DNS cannot hold.
    #[error("{0:?} cannot be part of a signature.")]
    Name(String),
    /// The message has no From line, or its arithmetic failed.
    #[error("The message cannot be signed.")]
    Message,
}

/// A private key.
pub struct Key {
    algorithm: Algorithm,
    private: Zeroizing<Vec<u8>>,
    public: Vec<u8>,
    inner: DkimKey,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Key {
    /// Generates a key. For RSA this takes a good part of a second of one core.
    pub fn generate(algorithm: Algorithm) -> Result<Self, SignError> {
        let private = match algorithm {
            Algorithm::Rsa => {
                let pair = RsaKeyPair::generate(rsa::KeySize::Rsa2048).map_err(|_| SignError::Generate)?;
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| SignError::Generate)?;
                der.as_ref().to_vec()
            }
            Algorithm::Ed25519 => Ed25519Key::generate_pkcs8().map_err(|_| SignError::Generate)?,
        };
        Self::from_private(algorithm, &private)
    }

    /// Reads a key from the bytes that [`Key::private_bytes`] gave (PKCS #8).
    pub fn from_private(algorithm: Algorithm, private: &[u8]) -> Result<Self, SignError> {
        let unusable = || SignError::Key(algorithm);
        let (public, inner) = match algorithm {
            Algorithm::Rsa => {
                let pair = RsaKeyPair::from_pkcs8(private).map_err(|_| unusable())?;
                if pair.public_modulus_len() < MIN_RSA_BYTES {
                    return Err(unusable());
                }
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|_| unusable())?;
                let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(private));
                let key = RsaKey::from_key_der(der).map_err(|_| unusable())?;
                (public.as_ref().to_vec(), DkimKey::Rsa(key))
            }
            Algorithm::Ed25519 => {
                let key = Ed25519Key::from_pkcs8_maybe_unchecked_der(private).map_err(|_| unusable())?;
                (key.public_key(), DkimKey::Ed25519(key))
            }
        };
        Ok(Self { algorithm, private: Zeroizing::new(private.to_vec()), public, inner })
    }

    /// How it signs.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes to store, which are secret (PKCS #8).
    pub fn private_bytes(&self) -> &[u8] {
        &self.private
    }

    /// The TXT record to publish at `<selector>._domainkey.<domain>`. Where it is written to a zone file, strings over
    /// 255 bytes must be split.
    pub fn record(&self) -> String {
        let mut encoded = Vec::new();
        Base64Encoder::new().encode_into(&self.public, &mut encoded);
        format!("v=DKIM1; k={}; p={}", self.algorithm.as_str(), String::from_utf8_lossy(&encoded))
    }
}

/// A signing identity: a domain, a selector and a key.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The domain that takes responsibility, in A-labels.
    pub domain: &'a str,
    /// The selector: the label of the key's record below `_domainkey`.
    pub selector: &'a str,
    /// The key.
    pub key: &'a Key,
}

/// A message with a signature of each identity before it; `now` is the time in seconds since 1970.
///
/// The message must not change afterwards, or the signatures break.
pub fn signed(message: &[u8], identities: &[Identity<'_>], now: i64) -> Result<Vec<u8>, SignError> {
    let mut output = Vec::with_capacity(message.len() + identities.len() * 1000);
    for identity in identities {
        output.extend_from_slice(header(message, identity, now)?.as_bytes());
    }
    output.extend_from_slice(message);
    Ok(output)
}

/// The DKIM-Signature header of a message, with its line end; `now` is the time in seconds since 1970.
pub fn header(message: &[u8], identity: &Identity<'_>, now: i64) -> Result<String, SignError> {
    check_name(identity.domain)?;
    check_name(identity.selector)?;
    let message = UnsignedMessage::read(message).ok_or(SignError::Message)?;
    let mut signature = Signature {
        v: 1,
        a: identity.key.inner.algorithm(),
        d: identity.domain.to_ascii_lowercase(),
        s: identity.selector.to_owned(),
        h: names_to_sign(&message)?,
        t: u64::try_from(now).unwrap_or_default(),
        ch: Canonicalization::Relaxed,
        cb: Canonicalization::Relaxed,
        ..Signature::default()
    };
    let (_, headers, names, body) = signature.canonicalize(message);
    signature.h = names;
    signature.bh = identity.key.inner.hash(body).as_ref().to_vec();
    let input = SigningInput { headers, signature: &signature };
    let bytes = identity.key.inner.sign(input).map_err(|_| SignError::Message)?;
    signature.b = bytes;
    Ok(signature.to_header())
}

/// What is signed: the headers, and the signature itself without its value.
struct SigningInput<'a> {
    headers: CanonicalHeaders<'a>,
    signature: &'a Signature,
}

impl Writable for SigningInput<'_> {
    fn write(self, writer: &mut impl Writer) {
        self.headers.write(writer);
        self.signature.write(writer, false);
    }
}

/// A message as header fields and a body.
struct UnsignedMessage<'a> {
    fields: Vec<(&'a [u8], &'a [u8])>,
    next: usize,
    body: &'a [u8],
}

impl<'a> UnsignedMessage<'a> {
    /// Splits a message; nothing when a line before the body is no header.
    ///
    /// Trailing blank lines are left out. By the standard that gives the same signature;
    /// mail-auth 0.13.3 would hash them.
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut fields: Vec<(usize, usize, usize)> = Vec::new();
        let mut position = 0;
        while position < message.len() {
            let rest = message.get(position..)?;
            let next = memchr(b'\n', rest).map_or(message.len(), |end| position + end + 1);
            match rest {
                [b'\r', b'\n', ..] | [b'\n', ..] => {
                    position = next;
                    break;
                }
                [b' ' | b'\t', ..] => fields.last_mut()?.2 = next,
                _ => {
                    let colon = position + memchr(b':', message.get(position..next)?)?;
                    fields.push((position, colon, next));
                }
            }
            position = next;
        }
        let end = without_blank_lines(message, position);
        let split = |(start, colon, next): (usize, usize, usize)| {
            Some((message.get(start..colon)?, message.get(colon + 1..next)?))
        };
        Some(Self {
            fields: fields.into_iter().map(split).collect::<Option<_>>()?,
            next: 0,
            body: message.get(position..end)?,
        })
    }

    fn has(&self, wanted: &str) -> bool {
        self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
    }
}

impl<'a> HeaderStream<'a> for UnsignedMessage<'a> {
    fn next_header(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.next += 1;
        self.fields.get(self.next - 1).copied()
    }

    fn body(&mut self) -> &'a [u8] {
        self.body
    }
}

/// The names for the h= tag. mail-auth signs each line of a listed name, and oversigns a name that it finds no further
/// line for.
fn names_to_sign(message: &UnsignedMessage<'_>) -> Result<Vec<String>, SignError> {
    let is_sound = message.fields.iter().all(|(name, _)| name.is_ascii());
    if !is_sound || !message.has("From") {
        return Err(SignError::Message);
    }
    let mut names = Vec::new();
    for name in OVERSIGNED {
        names.push(name.to_owned());
        if message.has(name) {
            names.push(name.to_owned());
        }
    }
    names.extend(SIGNED_IF_PRESENT.into_iter().filter(|name| message.has(name)).map(str::to_owned));
    Ok(names)
}

/// Refuses an invalid DNS name, which could end its tag.
fn check_name(name: &str) -> Result<(), SignError> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_sound = name.len() <= 253 && name.split('.').all(is_label);
    if is_sound { Ok(()) } else { Err(SignError::Name(name.to_owned())) }
}
