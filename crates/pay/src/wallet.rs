//! A wallet that signs, for tests and measurements.

use secp256k1::{Message, SecretKey};

use crate::{Address, Authorization, Signature, TokenDomain, personal_digest, signature::address_of};

/// A wallet.
#[derive(Clone)]
pub struct Wallet {
    key: SecretKey,
    /// Its address.
    pub address: Address,
}

impl Wallet {
    /// The wallet of a secret key. `None` when the bytes are not a valid key.
    pub fn new(secret: [u8; 32]) -> Option<Self> {
        let key = SecretKey::from_secret_bytes(secret).ok()?;
        let address = address_of(&secp256k1::PublicKey::from_secret_key(&key));
        Some(Self { key, address })
    }

    /// Signs a digest.
    pub fn sign(&self, digest: [u8; 32]) -> Signature {
        let signed = secp256k1::ecdsa::RecoverableSignature::sign_ecdsa_recoverable(
            Message::from_digest(digest),
            &self.key,
        );
        let (parity, compact) = signed.serialize_compact();
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&compact);
        bytes[64] = 27 + parity.to_u8() % 2;
        Signature::from_bytes(bytes)
    }

    /// Signs an authorisation.
    pub fn authorize(&self, authorization: &Authorization, domain: &TokenDomain) -> Signature {
        self.sign(authorization.digest(domain))
    }

    /// Signs a personal message.
    pub fn sign_text(&self, message: &str) -> Signature {
        self.sign(personal_digest(message))
    }
}
