//! A free read with a fresh proof of the wallet, against the same read with an API key.
//!
//! Both sides list the folders of a mailbox at 32 connections. Every keyless request carries a new authorisation
//! over nothing: it is read, its signer recovered, and its nonce stored with the response before that is sent,
//! durably where several servers share the store. The proofs are signed before the clock starts, since agents sign
//! on their own machines.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use operations::payments::PaymentSettings;
use pay::{
    Authorization, Payment, Terms, Word, encoding, keccak256,
    wallet::Wallet,
    x402::{self, Resource},
};
use serde_json::Value;

use crate::{
    load::{Connection, Load, NextRequest},
    measured_store::MeasuredStore,
    options::Options,
    report::{Figure, Target},
    service::Service,
    turns::{Comparison, Side},
};

const CONNECTIONS: usize = 32;
const TARGET: Target = Target::AtLeast(0.40);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let store = MeasuredStore::new(*engine).await;
        let service = Service::open(&store).await;
        let address = service.listen().await;
        let keyed = keyed_load(&service, address).await;
        let signer = Arc::new(Signer::new());
        let path = signer.make_mailbox(address).await;
        signer.tell_cost();
        let proofs = sign(&signer, options);
        let keyless = keyless_load(signer, address, path, proofs);
        let comparison = Comparison {
            what: "keyless read : keyed read",
            engine: *engine,
            target: Some(TARGET),
            measured: Side { name: "keyless", load: &keyless },
            yardstick: Side { name: "keyed", load: &keyed },
        };
        figures.push(comparison.run(options).await);
        store.remove().await;
    }
    figures
}

async fn keyed_load(service: &Service, address: SocketAddr) -> Load {
    let key = &service.key;
    let body = r#"{"name":"Keyed"}"#;
    let make = format!(
        "POST /api/v1/mailboxes HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let made = Connection::open(address).await.ask(&make).await;
    let id = public_id(&made);
    let read = format!(
        "GET /api/v1/mailboxes/{id}/folders HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nX-API-Key: {key}\r\n\r\n"
    );
    Load::of_one(address, CONNECTIONS, read)
}

fn public_id(made: &(u16, Vec<u8>)) -> String {
    assert_eq!(made.0, 201, "{}", String::from_utf8_lossy(&made.1));
    let mailbox: Value = serde_json::from_slice(&made.1).expect("a mailbox is JSON");
    mailbox["public_id"].as_str().expect("a mailbox has a public id").to_owned()
}

/// A client with a wallet.
struct Signer {
    wallet: Wallet,
    settings: PaymentSettings,
    nonces: AtomicUsize,
}

impl Signer {
    fn new() -> Self {
        let wallet = Wallet::new(keccak256("bench")).expect("a hash is a key");
        Self { wallet, settings: PaymentSettings::default(), nonces: AtomicUsize::new(0) }
    }

    fn sign(&self, terms: &Terms) -> Payment {
        let number = self.nonces.fetch_add(1, Ordering::Relaxed);
        let now = u64::try_from(operations::ports::Clock::now(&operations::ports::SystemClock).as_micros());
        let authorization = Authorization {
            from: self.wallet.address,
            to: terms.pay_to,
            value: terms.amount.into(),
            valid_after: 0.into(),
            valid_before: (now.unwrap_or_default() / 1_000_000 + terms.max_timeout).into(),
            nonce: Word(keccak256(number.to_be_bytes())),
        };
        Payment { signature: self.wallet.authorize(&authorization, &terms.domain), authorization }
    }

    /// The header with a fresh proof, as long as those of usual clients.
    fn proof(&self, amount: u64) -> String {
        let terms = self.settings.terms(amount);
        let resource = Resource {
            url: "http://localhost/api/agent/v1/mailboxes".to_owned(),
            description: String::new(),
            service: "Agent Mailbox".to_owned(),
        };
        encoding::to_standard(&x402::payload(&terms, &resource, &self.sign(&terms)))
    }

    /// Pays for a mailbox and returns the path of its folders.
    async fn make_mailbox(&self, address: SocketAddr) -> String {
        let (body, proof) = (r#"{"name":"Keyless"}"#, self.proof(self.settings.prices.create_mailbox));
        let make = format!(
            "POST /api/agent/v1/mailboxes HTTP/1.1\r\nHost: {address}\r\nPAYMENT-SIGNATURE: {proof}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let made = Connection::open(address).await.ask(&make).await;
        format!("/api/agent/v1/mailboxes/{}/folders", public_id(&made))
    }

    /// Prints what reading and verifying one proof costs alone.
    fn tell_cost(&self) {
        let terms = self.settings.terms(0);
        let proofs: Vec<String> = (0..2000).map(|_| self.proof(0)).collect();
        let started = Instant::now();
        for proof in &proofs {
            let payment = x402::read_v2(proof, &terms).expect("a proof can be read");
            pay::verify(&terms, &payment).expect("a proof is good");
        }
        let micros = started.elapsed().as_secs_f64() * 1e6 / 2000.0;
        eprintln!("reading a proof and recovering its signer: {micros:.1} µs");
    }
}

/// Enough valid proofs that none is signed under load.
fn sign(signer: &Signer, options: &Options) -> Vec<String> {
    let milliseconds =
        usize::try_from(options.turn().as_millis()).unwrap_or_default() * options.rounds() + 1000;
    // More than either engine can serve.
    let most = milliseconds * 16;
    (0..most).map(|_| signer.proof(0)).collect()
}

fn keyless_load(signer: Arc<Signer>, address: SocketAddr, path: String, proofs: Vec<String>) -> Load {
    let next = AtomicUsize::new(0);
    let next_request: NextRequest = Arc::new(move |buffer| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let proof = proofs.get(number).cloned().unwrap_or_else(|| signer.proof(0));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nPAYMENT-SIGNATURE: {proof}\r\n\r\n"
        );
        buffer.extend_from_slice(request.as_bytes());
    });
    Load { address, connections: CONNECTIONS, next_request, expected_status: 200, processes: Vec::new() }
}
