//! A wallet that calls the keyless interface: gets a 402, signs its terms, and calls again.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::http::Method;
use pay::{
    Address, Authorization, Payment, Terms, Word, encoding, keccak256, mpp, siwx, wallet::Wallet, x402,
};
use serde_json::Value;

use crate::{Answer, Caller, Clock};

/// A caller with a wallet.
#[derive(Clone)]
pub struct Payer {
    /// The wallet.
    pub wallet: Wallet,
    caller: Caller,
    clock: Clock,
    nonces: Arc<AtomicU64>,
}

/// How a payer proves its wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofProtocol {
    /// x402, version 2.
    X402,
    /// x402, version 1.
    X402V1,
    /// The `Payment` scheme.
    Mpp,
    /// A sign-in.
    Siwx,
}

impl Payer {
    pub(crate) fn new(name: &str, caller: Caller, clock: Clock) -> Self {
        let wallet = Wallet::new(keccak256(name)).unwrap();
        Self { wallet, caller, clock, nonces: Arc::default() }
    }

    /// The wallet's address as displayed.
    pub fn address(&self) -> String {
        self.wallet.address.to_checksum()
    }

    /// The time in seconds.
    pub fn now(&self) -> u64 {
        u64::try_from(self.clock.now().as_micros() / 1_000_000).unwrap()
    }

    /// GET, with an authorisation over the price.
    pub async fn get(&self, path: &str) -> Answer {
        self.call(ProofProtocol::X402, Method::GET, path, None).await
    }

    /// POST, with an authorisation over the price.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(ProofProtocol::X402, Method::POST, path, Some(body)).await
    }

    /// Gets the price of a call, proves the wallet, and calls.
    pub async fn call(
        &self,
        protocol: ProofProtocol,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let (name, value) = self.prove(protocol, method.clone(), path, body.clone()).await;
        self.caller.with(&name, &value).send(method, path, body).await
    }

    /// The header that proves the wallet for a call.
    pub async fn prove(
        &self,
        protocol: ProofProtocol,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (String, String) {
        let asked = self.caller.send(method, path, body).await;
        assert_eq!(asked.status, 402, "{}", asked.text());
        self.answer(protocol, &asked)
    }

    /// The header that answers a 402.
    pub fn answer(&self, protocol: ProofProtocol, asked: &Answer) -> (String, String) {
        let required: Value = encoding::from_standard(asked.header(x402::REQUIRED_HEADER)).unwrap();
        let terms = terms_of(&required["accepts"][0]);
        match protocol {
            ProofProtocol::X402 | ProofProtocol::X402V1 => self.pay(protocol, &terms, self.authorize(&terms)),
            ProofProtocol::Mpp => {
                let challenge = mpp::read_challenge(asked.header(mpp::CHALLENGE_HEADER)).unwrap();
                let authorization = Authorization { nonce: challenge.nonce(), ..self.authorize(&terms) };
                let payment = self.sign(&terms, authorization);
                let credential = mpp::credential(&challenge, &payment);
                ("authorization".to_owned(), format!("Payment {credential}"))
            }
            ProofProtocol::Siwx => {
                let info = &required["extensions"]["sign-in-with-x"]["info"];
                (siwx::HEADER.to_owned(), self.sign_in(info, &terms.network))
            }
        }
    }

    /// An authorisation over the price, with the longest validity.
    pub fn authorize(&self, terms: &Terms) -> Authorization {
        let number = self.nonces.fetch_add(1, Ordering::SeqCst);
        Authorization {
            from: self.wallet.address,
            to: terms.pay_to,
            value: terms.amount.into(),
            valid_after: 0.into(),
            valid_before: (self.now() + terms.max_timeout).into(),
            nonce: Word(keccak256(format!("{} {number}", self.address()))),
        }
    }

    /// Signs an authorisation.
    pub fn sign(&self, terms: &Terms, authorization: Authorization) -> Payment {
        Payment { signature: self.wallet.authorize(&authorization, &terms.domain), authorization }
    }

    /// The header of a signed authorisation.
    pub fn pay(
        &self,
        protocol: ProofProtocol,
        terms: &Terms,
        authorization: Authorization,
    ) -> (String, String) {
        let payment = self.sign(terms, authorization);
        if protocol == ProofProtocol::X402V1 {
            let value = encoding::to_standard(&x402::v1_payload(terms, &payment));
            return (x402::V1_HEADER.to_owned(), value);
        }
        let resource =
            x402::Resource { url: String::new(), description: String::new(), service: String::new() };
        let value = encoding::to_standard(&x402::payload(terms, &resource, &payment));
        (x402::SIGNATURE_HEADER.to_owned(), value)
    }

    fn sign_in(&self, info: &Value, network: &str) -> String {
        let mut value = info.clone();
        value["address"] = self.address().into();
        value["chainId"] = network.into();
        value["type"] = "eip191".into();
        value["signature"] = "".into();
        let mut sign_in: siwx::SignIn = serde_json::from_value(value).unwrap();
        let text = siwx::message(&sign_in, self.wallet.address);
        sign_in.signature = self.wallet.sign_text(&text).to_hex();
        siwx::header(&sign_in)
    }
}

/// The terms of a 402.
pub fn terms_of(accepts: &Value) -> Terms {
    let text = |name: &str| accepts[name].as_str().unwrap().to_owned();
    let network = pay::networks::find(&text("network")).unwrap();
    Terms {
        network: text("network"),
        v1_network: network.v1_name.to_owned(),
        domain: network.domain(),
        pay_to: Address::parse(&text("payTo")).unwrap(),
        amount: text("amount").parse().unwrap(),
        max_timeout: accepts["maxTimeoutSeconds"].as_u64().unwrap(),
    }
}
