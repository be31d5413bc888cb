//! Why a proof is refused. The codes are those of the protocols' reference implementations, so that clients can
//! react.

use std::fmt;

/// Why a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code that clients know.
    pub code: &'static str,
    /// A sentence for people.
    pub message: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
impl std::error::Error for Refusal {}

macro_rules! refusals {
    ($($name:ident = $code:literal: $message:literal;)*) => {
        impl Refusal {
            $(#[doc = $message] pub const $name: Self = Self { code: $code, message: $message };)*
        }
    };
}

refusals! {
    MALFORMED = "invalid_payload": "The proof cannot be read.";
    VERSION = "invalid_x402_version": "The proof is of another version than its header.";
    SCHEME = "invalid_exact_evm_scheme": "Only the scheme exact is taken.";
    NETWORK = "invalid_exact_evm_network_mismatch": "The proof is for another network.";
    REQUIREMENTS = "invalid_payment_requirements": "The proof is for other requirements than those of this request.";
    SIGNATURE_FORM = "invalid_exact_evm_failed_to_parse_signature":
        "The signature has no 65 bytes with a low s: only plain wallets can sign.";
    SIGNATURE = "invalid_exact_evm_signature": "The signature is not that of the payer over this authorisation.";
    RECIPIENT = "invalid_exact_evm_recipient_mismatch": "The authorisation pays somebody else.";
    EXPIRED = "invalid_exact_evm_payload_authorization_valid_before":
        "The authorisation has ended, is about to end, or lasts too long.";
    NOT_YET = "invalid_exact_evm_payload_authorization_valid_after": "The authorisation is not valid yet.";
    VALUE = "invalid_exact_evm_payload_authorization_value_mismatch": "The authorisation is over another amount.";
    NONCE_USED = "invalid_exact_evm_nonce_already_used": "The authorisation was used for another request.";
    CHALLENGE = "invalid_challenge": "The challenge is none of this server's for this request.";
    SIWX_FORM = "invalid_siwx_malformed_signature": "The sign-in cannot be read.";
    SIWX_DOMAIN = "invalid_siwx_domain_mismatch": "The sign-in is for another domain.";
    SIWX_URI = "invalid_siwx_uri_mismatch": "The sign-in is for another address.";
    SIWX_CHAIN = "invalid_siwx_unsupported_chain": "The sign-in is of a chain that is not supported here.";
    SIWX_ISSUED = "invalid_siwx_issued_at": "The sign-in has no time that can be read.";
    SIWX_OLD = "invalid_siwx_issued_at_too_old": "The sign-in is too old.";
    SIWX_FUTURE = "invalid_siwx_issued_at_in_future": "The sign-in was made in the future.";
    SIWX_EXPIRED = "invalid_siwx_expired": "The sign-in has ended.";
    SIWX_NOT_YET = "invalid_siwx_not_yet_valid": "The sign-in is not valid yet.";
    SIWX_NONCE = "invalid_siwx_nonce": "The sign-in has no nonce of this server, or one that was used.";
    SIWX_SIGNATURE = "invalid_siwx_signature": "The signature is not that of the address over this message.";
    SIWX_NEEDED = "siwx_required": "Here only a sign-in shows the wallet.";
}
