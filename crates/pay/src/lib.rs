//! Payment protocols over HTTP: challenges (what a server asks for), proofs (what a client sends) and their
//! verification. Pure: no I/O, no clock, and no knowledge of what is paid for.
//!
//! x402 in its versions 1 and 2 and the `evm` method of the `Payment` authentication scheme (MPP) all carry the
//! same thing, an EIP-3009 authorisation, so one verifier ([`verify`]) serves them. Sign-In-With-X ([`siwx`])
//! proves a wallet without any money.

pub mod eip3009;
pub mod encoding;
pub mod facilitator;
pub mod mpp;
pub mod networks;
mod numbers;
mod refusal;
mod signature;
pub mod siwx;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "wallet"))]
pub mod wallet;
pub mod x402;

mod verify;

pub use eip3009::{Authorization, TokenDomain};
pub use numbers::{Address, Word};
pub use refusal::Refusal;
pub use signature::{Signature, personal_digest};
pub use verify::{MAX_CLOCK_SKEW_SECONDS, Payment, Terms, verify, within_time};

/// The Keccak-256 hash of some bytes.
pub fn keccak256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    use sha3::{Digest, Keccak256};
    Keccak256::digest(bytes).into()
}
