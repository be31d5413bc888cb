//! Proofs that are almost right.

use axum::http::Method;
use pay::{Address, Authorization, Word};
use serde_json::json;
use testkit::{Engine, Payer, ProofProtocol, Server, ServerOptions, both_engines, terms_of};

use super::{BASE, count_workspaces, header, inside, mailbox, payments};

/// A change of what is signed, and the reason that it is refused for.
type Cheat = (&'static str, fn(&Payer, Authorization) -> Authorization, &'static str);

const CHEATS: &[Cheat] = &[
    (
        "less",
        |_, it| Authorization { value: 1.into(), ..it },
        "invalid_exact_evm_payload_authorization_value_mismatch",
    ),
    (
        "more",
        |_, it| Authorization { value: 1_000_000.into(), ..it },
        "invalid_exact_evm_payload_authorization_value_mismatch",
    ),
    (
        "to oneself",
        |it, one| Authorization { to: it.wallet.address, ..one },
        "invalid_exact_evm_recipient_mismatch",
    ),
    (
        "over",
        |it, one| Authorization { valid_before: (it.now() - 1).into(), ..one },
        "invalid_exact_evm_payload_authorization_valid_before",
    ),
    (
        "for years",
        |_, it| Authorization { valid_before: Word([0xff; 32]), ..it },
        "invalid_exact_evm_payload_authorization_valid_before",
    ),
    (
        "not yet",
        |it, one| Authorization { valid_after: (it.now() + 10).into(), ..one },
        "invalid_exact_evm_payload_authorization_valid_after",
    ),
    ("of another", |_, it| Authorization { from: Address([9; 20]), ..it }, "invalid_exact_evm_signature"),
];

// rules: PAY-8
#[both_engines]
async fn amounts_payees_times_and_payers_are_checked(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let body = json!({ "name": "A" });
    for path in ["/api".to_owned(), format!("{BASE}/mailboxes")] {
        let method = if path == "/api" { Method::GET } else { Method::POST };
        let body = (method == Method::POST).then(|| body.clone());
        let asked = server.anonymous().send(method.clone(), &path, body.clone()).await;
        let terms = terms_of(&header(&asked, "payment-required")["accepts"][0]);
        for protocol in [ProofProtocol::X402, ProofProtocol::X402V1] {
            for (what, cheat, reason) in CHEATS {
                let (name, value) = payer.pay(protocol, &terms, cheat(&payer, payer.authorize(&terms)));
                let answer =
                    server.anonymous().with(&name, &value).send(method.clone(), &path, body.clone()).await;
                answer.expect(402, "payment_required");
                assert_eq!(answer.json()["error"], *reason, "{what}");
                assert!(answer.headers.get("payment-response").is_none());
            }
        }
    }
    assert_eq!((payments(&server).await.len(), count_workspaces(&server).await), (0, 0));
}

// rules: PAY-8
#[tokio::test]
async fn another_chain_or_token_is_another_signature() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    let asked = server.anonymous().post(&path, json!({ "name": "A" })).await;
    let right = terms_of(&header(&asked, "payment-required")["accepts"][0]);
    let base = pay::networks::find("eip155:8453").unwrap();
    let mut other = right.clone();
    // What was signed for the main network, shown as if it were for the test network.
    other.domain = base.domain();
    let authorization = payer.authorize(&right);
    let signed = payer.sign(&other, authorization);
    let resource =
        pay::x402::Resource { url: String::new(), description: String::new(), service: String::new() };
    let value = pay::encoding::to_standard(&pay::x402::payload(&right, &resource, &signed));
    let answer =
        server.anonymous().with("payment-signature", &value).post(&path, json!({ "name": "A" })).await;
    assert_eq!(answer.expect(402, "payment_required").json()["error"], "invalid_exact_evm_signature");
    // And honestly for the main network.
    other.network = base.id.to_owned();
    let value = pay::encoding::to_standard(&pay::x402::payload(&other, &resource, &signed));
    let answer =
        server.anonymous().with("payment-signature", &value).post(&path, json!({ "name": "A" })).await;
    assert_eq!(answer.expect(402, "payment_required").json()["error"], "invalid_exact_evm_network_mismatch");
}

/// Whoever sees a signature can make its mirror image.
// rules: PAY-8
#[tokio::test]
async fn the_mirror_of_a_signature_does_not_count() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    let body = json!({ "name": "A" });
    let (name, value) = payer.prove(ProofProtocol::X402, Method::POST, &path, Some(body.clone())).await;
    let mut payload: serde_json::Value = pay::encoding::from_standard(&value).unwrap();
    let text = payload["payload"]["signature"].as_str().unwrap().to_owned();
    payload["payload"]["signature"] = mirror(&text).into();
    let forged = pay::encoding::to_standard(&payload);
    let answer = server.anonymous().with(&name, &forged).post(&path, body.clone()).await;
    assert_eq!(
        answer.expect(402, "payment_required").json()["error"],
        "invalid_exact_evm_failed_to_parse_signature"
    );
    server.anonymous().with(&name, &value).post(&path, body).await.ok();
}

fn mirror(signature: &str) -> String {
    let bytes = |text: &str| Word::parse_hex(&format!("0x{text}")).unwrap().0;
    let order = bytes("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let s = bytes(&signature[66..130]);
    let (mut mirrored, mut borrow) = ([0_u8; 32], 0_i16);
    for index in (0..32).rev() {
        let difference = i16::from(order[index]) - i16::from(s[index]) - borrow;
        borrow = i16::from(difference < 0);
        mirrored[index] = u8::try_from(difference + 256 * borrow).unwrap();
    }
    let parity = if signature.ends_with("1b") { "1c" } else { "1b" };
    format!("{}{}{parity}", &signature[..66], &Word(mirrored).to_hex()[2..])
}

// rules: PAY-6
#[both_engines]
async fn a_mailbox_can_insist_on_sign_ins(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let all = format!("{BASE}/mailboxes");
    let strict = payer.post(&all, json!({ "name": "A", "require_siwx": true })).await.ok();
    let open = mailbox(&payer, "B").await;
    assert_eq!(strict["settings"]["agentInbox"]["requireSiwx"], true);
    for named in ["id", "public_id", "email"] {
        let path = format!("{all}/{}/emails", strict[named].as_str().unwrap());
        let answer = payer.get(&path).await;
        assert_eq!(answer.expect(402, "payment_required").json()["error"], "siwx_required");
        payer.call(ProofProtocol::Siwx, Method::GET, &path, None).await.ok();
    }
    payer.get(&inside(&open, "/emails")).await.ok();
}

/// Another site can collect authorisations over nothing from those who visit it. Where that matters, only sign-ins count.
// rules: PAY-6
#[both_engines]
async fn a_server_can_insist_on_sign_ins(engine: Engine) {
    let mut options = ServerOptions::default();
    options.payments.siwx_only = true;
    let server = Server::with(engine, options).await;
    let payer = server.wallet("anna");
    let own = mailbox(&payer, "A").await;
    let path = inside(&own, "/emails");
    for protocol in [ProofProtocol::X402, ProofProtocol::X402V1] {
        let answer = payer.call(protocol, Method::GET, &path, None).await;
        assert_eq!(answer.expect(402, "payment_required").json()["error"], "siwx_required");
    }
    payer.call(ProofProtocol::Siwx, Method::GET, &path, None).await.ok();
    // A sign-in for one address is none for another, nor for another server.
    let (name, value) = payer.prove(ProofProtocol::Siwx, Method::GET, &path, None).await;
    let elsewhere = server.anonymous().with(&name, &value).get(&inside(&own, "/folders")).await;
    assert_eq!(elsewhere.expect(402, "payment_required").json()["error"], "invalid_siwx_uri_mismatch");
    let other = ServerOptions { public_url: "http://evil.test".to_owned(), ..ServerOptions::default() };
    let relaying = Server::with(engine, other).await;
    let (name, value) = relaying.wallet("anna").prove(ProofProtocol::Siwx, Method::GET, &path, None).await;
    let relayed = server.anonymous().with(&name, &value).get(&path).await;
    assert_eq!(relayed.expect(402, "payment_required").json()["error"], "invalid_siwx_domain_mismatch");
    // A sign-in pays for nothing.
    let all = format!("{BASE}/mailboxes");
    let (name, value) = payer.prove(ProofProtocol::Siwx, Method::GET, &all, None).await;
    server
        .anonymous()
        .with(&name, &value)
        .post(&all, json!({ "name": "B" }))
        .await
        .expect(402, "payment_required");
    // An old one is none either.
    let (name, value) = payer.prove(ProofProtocol::Siwx, Method::GET, &path, None).await;
    server.clock.advance(301);
    let old = server.anonymous().with(&name, &value).get(&path).await;
    assert_eq!(old.expect(402, "payment_required").json()["error"], "invalid_siwx_issued_at_too_old");
}
