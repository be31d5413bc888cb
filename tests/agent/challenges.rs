//! What a call without a proof is answered with.

use axum::http::Method;
use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Logs, Server, both_engines};

use super::{BASE, count_workspaces, header};

/// Every route with some path, its method and its price.
fn routes() -> Vec<(Method, String, u64)> {
    let settings = operations::payments::PaymentSettings::default();
    web::agent_endpoints()
        .into_iter()
        .map(|endpoint| {
            let path = endpoint.path.replace('{', "some-").replace('}', "");
            let price = settings.price(endpoint.operation);
            (endpoint.method, path, price)
        })
        .collect()
}

// rules: PAY-1, PAY-2, PAY-3, PAY-4, PAY-14
#[both_engines]
async fn every_call_without_a_proof_is_asked_to_pay(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let cookie = server.log_in(&tenant).await;
    let bearer = server.anonymous().with("authorization", "Bearer something");
    let routes = routes();
    assert_eq!(routes.len(), 17);
    assert_eq!(routes.iter().filter(|(_, _, price)| *price > 0).count(), 5);
    for (method, path, price) in routes {
        for caller in [&server.anonymous(), &tenant.key, &cookie, &bearer] {
            // Not even the body is looked at.
            let body = (method == Method::POST).then(|| json!({ "nonsense": 1 }));
            let answer = caller.send(method.clone(), &path, body).await;
            answer.expect(402, "payment_required");
            assert_eq!(answer.header("cache-control"), "no-store");
            let body = answer.json();
            assert_eq!((&body["x402Version"], &body["error"]), (&json!(1), &json!("Payment required")));
            let old = &body["accepts"][0];
            assert_eq!(old["maxAmountRequired"], price.to_string());
            assert_eq!((&old["network"], &old["scheme"]), (&json!("base-sepolia"), &json!("exact")));
            assert!(old.get("outputSchema").is_none());
            let asked = header(&answer, "payment-required");
            assert_eq!(asked["x402Version"], 2);
            assert_eq!(asked["accepts"][0]["amount"], price.to_string());
            assert_eq!(asked["accepts"][0]["network"], "eip155:84532");
            assert_eq!(asked["resource"]["url"], format!("http://mail.test{path}"));
            assert_eq!(asked["extensions"]["bazaar"]["info"]["input"]["method"], method.as_str());
            assert_eq!(asked["extensions"].get("sign-in-with-x").is_some(), price == 0, "{path}");
            assert_eq!(answer.header("www-authenticate").starts_with("Payment id="), price > 0);
            assert!(answer.header("payment-required").len() < 3000, "{path}");
        }
    }
    assert_eq!(count_workspaces(&server).await, 1);
}

// rules: PAY-2
#[tokio::test]
async fn long_addresses_leave_room_in_the_header() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    for length in [100, 1000, 2000, 6000] {
        let path = format!("{BASE}/mailboxes/m/emails?q={}", "a".repeat(length));
        let answer = server.anonymous().get(&path).await;
        answer.expect(402, "payment_required");
        assert!(answer.header("payment-required").len() <= 4096);
        let asked = header(&answer, "payment-required");
        assert_eq!(asked["accepts"][0]["amount"], "0");
    }
}

// rules: PAY-5
#[tokio::test]
async fn two_payments_are_one_too_many() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    let path = format!("{BASE}/mailboxes");
    let one = server.anonymous().with("payment-signature", "a");
    for both in [
        one.with("x-payment", "b"),
        one.with("payment-signature", "b"),
        one.with("authorization", "Payment b"),
        server.anonymous().with("x-payment", "b").with("authorization", "payment c"),
    ] {
        both.post(&path, json!({ "name": "A" })).await.expect(400, "multiple_payment_credentials");
    }
}

// rules: PAY-8
#[tokio::test]
async fn headers_that_are_no_proofs_are_refused_and_asked_again() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    let path = format!("{BASE}/mailboxes");
    let long = "A".repeat(20_000);
    for (name, value) in [
        ("payment-signature", "e30="),
        ("payment-signature", "not base64!"),
        ("payment-signature", long.as_str()),
        ("x-payment", "e30="),
        ("sign-in-with-x", "e30="),
        ("authorization", "Payment e30"),
    ] {
        let answer = server.anonymous().with(name, value).get(&path).await;
        answer.expect(402, "payment_required");
        let asked = header(&answer, "payment-required");
        assert_ne!(asked["error"], "Payment required", "{name}");
        assert_eq!(answer.json()["error"], asked["error"]);
    }
}

// rules: PAY-15
#[both_engines]
async fn the_handshake_tells_a_wallet_who_it_is(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let answer = payer.get("/api").await;
    assert_eq!(
        answer.ok(),
        json!({ "agent_api_base_url": "http://mail.test/api/agent/v1", "wallet": payer.address() })
    );
    let told = header(&answer, "payment-response");
    assert_eq!((&told["success"], &told["transaction"]), (&json!(true), &json!("")));
    assert_eq!(count_workspaces(&server).await, 0, "a wallet that looks around leaves nothing behind");
    assert_eq!(payer.get(&format!("{BASE}/mailboxes")).await.ok(), json!([]));
}

// rules: PAY-16
#[tokio::test]
async fn the_keyless_interface_has_a_document_of_its_own() {
    let server = Server::start(testkit::Engine::Sqlite).await;
    let served = server.anonymous().get(&format!("{BASE}/openapi.json")).await.ok();
    assert_eq!(served, web::agent_document());
    let paths: Vec<&String> = served["paths"].as_object().unwrap().keys().collect();
    assert!(paths.iter().all(|path| *path == "/api" || path.starts_with(BASE)));
    let main = web::document();
    assert!(main["paths"].as_object().unwrap().keys().all(|path| !path.starts_with(BASE)));
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/agent-v1.json");
    assert!(
        std::fs::read_to_string(file).unwrap() == web::agent_openapi_json(),
        "openapi/agent-v1.json is not what the service describes. If the change is meant, write it anew and look at \
         the difference:\n\n    cargo run -p server -- openapi --agent > openapi/agent-v1.json\n"
    );
}

// rules: PAY-3
#[tokio::test]
async fn pages_of_configured_origins_can_read_what_they_are_asked_for() {
    let mut options = testkit::ServerOptions::default();
    options.web.cors_origins = vec!["https://app.example.com".to_owned()];
    let server = Server::with(testkit::Engine::Sqlite, options).await;
    let page = server.anonymous().with("origin", "https://app.example.com");
    let answer = page.get("/api").await;
    assert!(answer.header("access-control-expose-headers").contains("payment-required"));
    let other = server.anonymous().with("origin", "https://evil.example.com").get("/api").await;
    assert_eq!(other.header("access-control-expose-headers"), "");
}

/// What is signed is money until it is settled.
// rules: PAY-18
#[tokio::test]
async fn no_proof_is_ever_logged() {
    let logs = Logs::catch();
    let server = Server::start(testkit::Engine::Sqlite).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    let body = json!({ "name": "A" });
    let mut secrets = Vec::new();
    for protocol in
        [testkit::ProofProtocol::X402, testkit::ProofProtocol::X402V1, testkit::ProofProtocol::Mpp]
    {
        let (name, value) = payer.prove(protocol, Method::POST, &path, Some(body.clone())).await;
        server.anonymous().with(&name, &value).post(&path, body.clone()).await.ok();
        secrets.push(value);
    }
    let (name, value) = payer.prove(testkit::ProofProtocol::Siwx, Method::GET, &path, None).await;
    server.anonymous().with(&name, &value).get(&path).await.ok();
    secrets.push(value);
    let text = logs.text();
    for secret in secrets {
        assert!(!text.contains(secret.trim_start_matches("Payment ")));
    }
    assert!(!Value::from(text).to_string().contains("\"signature\""));
}
