//! The 402 response that clients of all payment protocols understand, and the receipt headers after a payment.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use model::payments::Protocol;
use operations::{
    App, Error, ErrorKind,
    payments::{Proof, resource},
};
use pay::{
    Terms,
    encoding::MAX_CHALLENGE_BYTES,
    mpp, siwx,
    x402::{self, Settled},
};
use serde_json::{Value, json};

use super::{audience::audience, gated::GatedEndpoint, proof::seconds};
use crate::error;

/// Responds with 402 and asks for a payment or a proof of the wallet.
pub(crate) fn response(
    app: &App,
    gated: &GatedEndpoint,
    parts: &Parts,
    body: Option<&[u8]>,
    refused: &Error,
) -> Response {
    let terms = &gated.terms;
    let path = parts.uri.path_and_query().map_or(parts.uri.path(), |whole| whole.as_str());
    let resource = resource(app, gated.endpoint.operation.summary, path);
    let mut asked = json!({
        "x402Version": 1,
        "error": refused.message(),
        "code": refused.kind().code(),
        "accepts": x402::v1_accepts(terms, &resource),
    });
    if let Some(fix) = refused.fix_or_default() {
        asked["fix"] = fix.into();
    }
    let mut response = error::json_of(StatusCode::PAYMENT_REQUIRED, &asked);
    let required =
        |extensions: &Value| x402::required_header(terms, &resource, refused.message(), extensions);
    let header =
        extensions(app, gated, parts).iter().map(required).find(|text| text.len() <= MAX_CHALLENGE_BYTES);
    // A URL so long that nothing else would fit is left out; the caller knows it.
    let bare = x402::Resource { url: app.settings().public_url.clone(), ..resource.clone() };
    let header = header.unwrap_or_else(|| x402::required_header(terms, &bare, refused.message(), &json!({})));
    insert(&mut response, x402::REQUIRED_HEADER, &header);
    if terms.amount > 0 {
        let challenge = payment_challenge(app, terms, parts, body);
        insert(&mut response, mpp::CHALLENGE_HEADER, &challenge);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The extensions of the challenge, most valuable first; fewer if they would not fit into a header.
fn extensions(app: &App, gated: &GatedEndpoint, parts: &Parts) -> Vec<Value> {
    let mut sign_in = json!({});
    if gated.terms.amount == 0 {
        let now = seconds(app.now());
        let mut random = [0; 8];
        app.entropy().fill(&mut random);
        let nonce = siwx::new_nonce(app.challenge_key(), now, random);
        sign_in = json!({ "sign-in-with-x": siwx::extension(&audience(app, parts), &nonce, now) });
    }
    let with = |bazaar: &Value| {
        let mut all = sign_in.clone();
        all["bazaar"] = bazaar.clone();
        all
    };
    let bazaar = gated.bazaar();
    vec![with(&bazaar.full), with(&bazaar.brief), sign_in.clone()]
}

fn payment_challenge(app: &App, terms: &Terms, parts: &Parts, body: Option<&[u8]>) -> String {
    let mut random = [0; 12];
    app.entropy().fill(&mut random);
    let domain = audience(app, parts).domain;
    let bound = mpp::Bound {
        realm: &domain,
        method: parts.method.as_str(),
        path: parts.uri.path(),
        body: body.unwrap_or_default(),
    };
    mpp::Challenge::new(terms, &bound, app.challenge_key(), seconds(app.now()), random).header()
}

/// Adds the headers that report a payment's result in the client's own protocol.
pub(crate) fn add_receipt(
    app: &App,
    terms: &Terms,
    proof: &Proof,
    outcome: Result<&str, &Error>,
    response: &mut Response,
) {
    let (transaction, failure) = match outcome {
        Ok(transaction) => (transaction, None),
        Err(refused) if refused.kind() == ErrorKind::SettlementFailed => ("", Some(refused.message())),
        Err(_) => return,
    };
    let by_ledger = app.facilitator().is_ledger() && !transaction.is_empty();
    let settled = Settled { payer: proof.payer, transaction, error: failure, by_ledger };
    match proof.protocol {
        Protocol::X402 => insert(response, x402::RESPONSE_HEADER, &x402::response_header(terms, &settled)),
        Protocol::X402V1 => {
            insert(response, x402::V1_RESPONSE_HEADER, &x402::v1_response_header(terms, &settled));
        }
        Protocol::Mpp if failure.is_none() => {
            let challenge = proof.challenge.as_deref().unwrap_or_default();
            let receipt = mpp::receipt(terms, challenge, transaction, seconds(app.now()));
            insert(response, mpp::RECEIPT_HEADER, &receipt);
        }
        Protocol::Mpp | Protocol::Siwx => {}
    }
    if failure.is_none() {
        insert(response, header::CACHE_CONTROL.as_str(), "private, no-store");
    }
}

fn insert(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        response.headers_mut().insert(name, value);
    }
}
