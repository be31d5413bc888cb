//! The one verifier: whether an authorisation pays what was asked for, whichever protocol carried it.

use crate::{Address, Authorization, Refusal, Signature, TokenDomain, Word};

/// The price of a request, and how it is to be paid.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The CAIP-2 name of the network.
    pub network: String,
    /// Its name in version 1 of x402.
    pub v1_network: String,
    /// The token.
    pub domain: TokenDomain,
    /// The recipient.
    pub pay_to: Address,
    /// The amount, in the token's smallest unit. Zero is an amount too: then it only proves the wallet.
    pub amount: u64,
    /// Maximum validity of a proof, in seconds.
    pub max_timeout: u64,
}

/// A signed authorisation that came with a request.
#[derive(Clone, Copy)]
pub struct Payment {
    /// What was signed.
    pub authorization: Authorization,
    /// The signature.
    pub signature: Signature,
}

/// Maximum clock difference, in seconds.
pub const MAX_CLOCK_SKEW_SECONDS: u64 = 60;
/// An authorisation that expires sooner than this, in seconds, may not reach the chain in time.
const MIN_VALIDITY_SECONDS: u64 = 6;

/// Checks everything about a payment except the times: signature, recipient, amount.
///
/// The token, the network and the payer are signed, so a signature over others recovers another address.
pub fn verify(terms: &Terms, payment: &Payment) -> Result<(), Refusal> {
    let Payment { authorization, signature } = payment;
    let signer = signature.recover(authorization.digest(&terms.domain)).ok_or(Refusal::SIGNATURE)?;
    if signer != authorization.from {
        return Err(Refusal::SIGNATURE);
    }
    if authorization.to != terms.pay_to {
        return Err(Refusal::RECIPIENT);
    }
    if authorization.value != Word::from(terms.amount) {
        return Err(Refusal::VALUE);
    }
    Ok(())
}

/// Checks that an authorisation is valid at a time, in seconds, and not for longer than allowed: nonces are
/// remembered for that long.
pub fn within_time(terms: &Terms, authorization: &Authorization, now: u64) -> Result<(), Refusal> {
    if authorization.valid_before < Word::from(now.saturating_add(MIN_VALIDITY_SECONDS))
        || authorization.valid_before
            > Word::from(now.saturating_add(terms.max_timeout).saturating_add(MAX_CLOCK_SKEW_SECONDS))
    {
        return Err(Refusal::EXPIRED);
    }
    if authorization.valid_after > Word::from(now) {
        return Err(Refusal::NOT_YET);
    }
    Ok(())
}
