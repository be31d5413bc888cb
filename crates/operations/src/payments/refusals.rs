//! Proofs that do not count.

use model::payments::Protocol;

use crate::core::error::{Error, ErrorKind};

/// The same proof with another request. Clients of MPP would pay again when they are asked again.
pub(super) fn reused(protocol: Protocol) -> Error {
    match protocol {
        Protocol::Mpp => Error::new(ErrorKind::PaymentReused),
        Protocol::Siwx => refused(&pay::Refusal::SIWX_NONCE),
        Protocol::X402 | Protocol::X402V1 => refused(&pay::Refusal::NONCE_USED),
    }
}

/// A proof that does not count; the door asks for another with it.
pub fn refused(refusal: &pay::Refusal) -> Error {
    Error::with_message(ErrorKind::PaymentRequired, refusal.code).with_fix(refusal.message)
}
