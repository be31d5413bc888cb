//! Messages from honest and dishonest senders, against a name server that runs inside the test.

mod policies;
mod senders;
mod signatures;
mod spf_records;

use std::net::IpAddr;

use mail_auth::common::crypto::Ed25519Key;
use mail_auth::common::headers::HeaderWriter;
use mail_auth::dkim::DkimSigner;
use mail_parser::decoders::base64::base64_decode;

use super::{Authentication, Authenticator, Verdict};
use crate::dns::name_server::NameServer;

/// The published test key of RFC 8463.
const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PUBLIC_KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// One delivery.
struct Delivery<'a> {
    zone: &'a str,
    peer: &'a str,
    helo: &'a str,
    mail_from: Option<&'a str>,
}

impl Default for Delivery<'_> {
    fn default() -> Self {
        Self { zone: "", peer: "192.0.2.1", helo: "mail.example.com", mail_from: Some("ann@example.com") }
    }
}

impl Delivery<'_> {
    async fn check(&self, raw: &[u8]) -> Authentication {
        let server = NameServer::start(self.zone).await;
        let authenticator = Authenticator::with_servers(&[server.address()]).unwrap();
        let peer: IpAddr = self.peer.parse().unwrap();
        authenticator.check(peer, self.helo, "mx.agents.test", self.mail_from, raw).await
    }
}

/// A message with the given From line.
fn mail(from: &str) -> Vec<u8> {
    format!("From: {from}\r\nTo: bob@agents.test\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\nHello Bob.\r\n")
        .into_bytes()
}

/// The key record for [`sign`], as a line of a zone.
fn key_of(domain: &str) -> String {
    format!("test._domainkey.{domain} TXT v=DKIM1; k=ed25519; p={PUBLIC_KEY}\n")
}

/// Signs a message for a domain, covering the given headers.
fn sign_headers(domain: &str, headers: &[&str], raw: &[u8]) -> Vec<u8> {
    let seed = base64_decode(SEED.as_bytes()).unwrap();
    let public_key = base64_decode(PUBLIC_KEY.as_bytes()).unwrap();
    let key = Ed25519Key::from_seed_and_public_key(&seed, &public_key).unwrap();
    let signer = DkimSigner::from_key(key).domain(domain).selector("test").headers(headers.iter().copied());
    let mut signed = signer.sign(raw).unwrap().to_header().into_bytes();
    signed.extend_from_slice(raw);
    signed
}

/// Signs a message for a domain.
fn sign(domain: &str, raw: &[u8]) -> Vec<u8> {
    sign_headers(domain, &["From", "To", "Subject"], raw)
}
