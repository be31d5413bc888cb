//! Signatures of wallets: secp256k1, with recovery of the signer's address.

use secp256k1::{
    Message,
    ecdsa::{RecoverableSignature, RecoveryId},
};

use crate::{
    Address, keccak256,
    numbers::{read_hex, write_hex},
};

/// Half the order of the curve. A signature with a greater `s` is the mirror of one with a smaller: either can be
/// computed from the other, so only one of them may count. Tokens refuse it too.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d,
    0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

/// A signature with a low `s` and a parity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 65]);

impl Signature {
    /// Reads `0x` and 65 bytes. Nothing else is accepted: no high `s`, no compact form, no contract's signature.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 65] = read_hex(text)?;
        let low = bytes[32..64] <= HALF_ORDER[..];
        let known = matches!(bytes[64], 0 | 1 | 27 | 28);
        (low && known).then_some(Self(bytes))
    }

    /// The address that signed a digest.
    pub fn recover(&self, digest: [u8; 32]) -> Option<Address> {
        let parity = RecoveryId::try_from(i32::from(self.0[64] % 27)).ok()?;
        let signature = RecoverableSignature::from_compact(&self.0[..64], parity).ok()?;
        let key = signature.recover_ecdsa(Message::from_digest(digest)).ok()?;
        Some(address_of(&key))
    }

    /// As `0x` and 65 bytes, the last of which is 27 or 28, as contracts expect.
    pub fn to_hex(self) -> String {
        let mut bytes = self.0;
        bytes[64] = 27 + bytes[64] % 27;
        write_hex(&bytes)
    }

    #[cfg(any(test, feature = "wallet"))]
    pub(crate) const fn from_bytes(bytes: [u8; 65]) -> Self {
        Self(bytes)
    }
}

/// The address of a public key.
pub(crate) fn address_of(key: &secp256k1::PublicKey) -> Address {
    let hash = keccak256(&key.serialize_uncompressed()[1..]);
    let mut address = [0; 20];
    address.copy_from_slice(&hash[12..]);
    Address(address)
}

/// The digest of a personal message (EIP-191).
pub fn personal_digest(message: &str) -> [u8; 32] {
    let mut bytes = format!("\x19Ethereum Signed Message:\n{}", message.len()).into_bytes();
    bytes.extend_from_slice(message.as_bytes());
    keccak256(bytes)
}
