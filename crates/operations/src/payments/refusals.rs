//! Refusals of proofs.

use model::payments::Protocol;

use crate::core::error::{Error, ErrorKind};

/// The same proof with another request. MPP clients would pay again if they were asked again.
pub(super) fn reused(protocol: Protocol) -> Error {
    match protocol {
        Protocol::Mpp => Error::new(ErrorKind::PaymentReused),
        Protocol::Siwx => refused(&pay::Refusal::SIWX_NONCE),
        Protocol::X402 | Protocol::X402V1 => refused(&pay::Refusal::NONCE_USED),
    }
}

/// A refused proof; the door asks for another.
pub fn refused(refusal: &pay::Refusal) -> Error {
    Error::with_message(ErrorKind::PaymentRequired, refusal.code).with_fix(refusal.message)
}
