//! The credentials of a keyless request: an x402 payment of either version, a `Payment` credential, a sign-in.
//!
//! Nothing in these headers is ever logged: an unsettled authorisation is money.

use axum::http::{HeaderMap, header, request::Parts};
use model::{Timestamp, payments::Protocol};
use operations::{
    App, Error, ErrorKind, Result,
    payments::{PaymentKey, Proof, refused},
};
use pay::{Address, Refusal, Terms, mpp, siwx, x402};

use super::audience::audience;

/// A proof as sent, not checked yet.
pub(crate) enum RawProof<'a> {
    X402(&'a str),
    X402V1(&'a str),
    Mpp(&'a str),
    Siwx(&'a str),
}

/// The asset of a sign-in, which pays nothing.
const SIGN_IN: &str = "siwx";

/// Finds the proof of a request. At most one payment; a sign-in may accompany it, and counts where nothing is paid.
pub(crate) fn find(headers: &HeaderMap, price: u64) -> Result<Option<RawProof<'_>>> {
    let single = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        if values.next().is_some() {
            return Err(Error::new(ErrorKind::PaymentCredentials));
        }
        // A header that is not valid text is read as an empty one, and refused as such.
        Ok(first.map(|value| value.to_str().unwrap_or_default()))
    };
    let credential = single(header::AUTHORIZATION.as_str())?.and_then(|value| {
        let (scheme, credential) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("payment").then_some(credential.trim())
    });
    let payments = [
        single(x402::SIGNATURE_HEADER)?.map(RawProof::X402),
        single(x402::V1_HEADER)?.map(RawProof::X402V1),
        credential.map(RawProof::Mpp),
    ];
    let mut payments = payments.into_iter().flatten();
    let payment = payments.next();
    if payments.next().is_some() {
        let fix = "Send one of PAYMENT-SIGNATURE, X-PAYMENT and Authorization: Payment.";
        return Err(Error::new(ErrorKind::PaymentCredentials).with_fix(fix));
    }
    let sign_in = single(siwx::HEADER)?.filter(|_| price == 0).map(RawProof::Siwx);
    Ok(sign_in.or(payment))
}

/// Reads and checks a proof. One that is only expired or not yet valid is marked as such: a repeat may arrive late.
pub(crate) fn check(
    app: &App,
    raw_proof: &RawProof<'_>,
    terms: &Terms,
    parts: &Parts,
    body: &[u8],
) -> Result<Proof> {
    let now = seconds(app.now());
    if let RawProof::Siwx(header) = raw_proof {
        let signed = siwx::verify(header, &audience(app, parts), app.challenge_key(), now);
        return Ok(signed_in(&signed.map_err(|refusal| refused(&refusal))?, terms));
    }
    let checked = match raw_proof {
        RawProof::X402(header) => x402::read_v2(header, terms).map(|payment| (payment, Protocol::X402, None)),
        RawProof::X402V1(header) => {
            x402::read_v1(header, terms).map(|payment| (payment, Protocol::X402V1, None))
        }
        RawProof::Mpp(credential) if terms.amount > 0 => {
            let domain = audience(app, parts).domain;
            let bound =
                mpp::Bound { realm: &domain, method: parts.method.as_str(), path: parts.uri.path(), body };
            mpp::read(credential, terms, &bound, app.challenge_key())
                .map(|answered| (answered.payment, Protocol::Mpp, Some(answered.challenge)))
        }
        RawProof::Mpp(_) | RawProof::Siwx(_) => Err(Refusal::SCHEME),
    };
    let verified = checked.and_then(|(payment, protocol, challenge)| {
        pay::verify(terms, &payment)?;
        Ok((payment, protocol, challenge))
    });
    let (payment, protocol, challenge) = verified.map_err(|refusal| refused(&refusal))?;
    let authorization = payment.authorization;
    let untimely = pay::within_time(terms, &authorization, now).err();
    Ok(Proof {
        payer: authorization.from,
        protocol,
        key: PaymentKey {
            network: terms.network.clone(),
            asset: terms.domain.contract.to_lower(),
            payer: authorization.from.to_lower(),
            nonce: authorization.nonce.to_hex(),
        },
        amount: terms.amount,
        expires_at: timestamp(authorization.valid_before.to_u64()),
        untimely,
        payment: Some(payment),
        challenge,
    })
}

fn signed_in(signed: &siwx::SignedIn, terms: &Terms) -> Proof {
    let payer: Address = signed.address;
    Proof {
        payer,
        protocol: Protocol::Siwx,
        key: PaymentKey {
            network: terms.network.clone(),
            asset: SIGN_IN.to_owned(),
            payer: payer.to_lower(),
            nonce: signed.nonce.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
        },
        amount: 0,
        expires_at: timestamp(Some(signed.ends)),
        untimely: None,
        payment: None,
        challenge: None,
    }
}

/// A time in seconds since the epoch, as the protocols write it.
pub(crate) fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros() / 1_000_000).unwrap_or_default()
}

/// A signed time. One that is out of our range was refused as untimely before this matters.
fn timestamp(seconds: Option<u64>) -> Timestamp {
    let micros = seconds.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(1_000_000));
    Timestamp::from_micros(micros.unwrap_or(i64::MAX / 2))
}
