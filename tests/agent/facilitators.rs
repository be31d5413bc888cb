//! Facilitators that refuse, hang, lie, and answer too late; and the ledger.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use testkit::{
    Answer, Caller, Engine, Payer, ProofProtocol, Receiver, Reply, Server, ServerOptions, both_engines,
};

use super::{BASE, count_mailboxes, count_workspaces, header, mailbox, payments};

/// A facilitator whose answers to `/verify` and `/settle` the test sets.
struct Stub {
    verify: Receiver,
    settle: Receiver,
    url: url::Url,
    _router: tokio::task::JoinHandle<()>,
}

const PATIENCE: Duration = Duration::from_millis(500);

impl Stub {
    async fn start() -> Self {
        let (verify, settle) = (Receiver::start().await, Receiver::start().await);
        let (first, second) = (verify.url(), settle.url());
        // One address that leads to either.
        let router = axum::Router::new()
            .route("/verify", axum::routing::post(async move || axum::response::Redirect::temporary(&first)))
            .route(
                "/settle",
                axum::routing::post(async move || axum::response::Redirect::temporary(&second)),
            );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let stub = Self { verify, settle, url, _router: task };
        stub.verify.reply(reply(200, &json!({ "isValid": true })));
        stub
    }

    async fn server(&self, engine: testkit::Engine) -> Server {
        let facilitator = Some((self.url.clone(), PATIENCE));
        Server::with(engine, ServerOptions { facilitator, ..ServerOptions::default() }).await
    }

    /// Settles everything from now on.
    fn work(&self) {
        self.settle
            .reply(reply(200, &json!({ "success": true, "transaction": hash(), "network": "eip155:84532" })));
    }
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply::Status(status, body.to_string())
}

fn hash() -> String {
    format!("0x{}", "ab".repeat(32))
}

/// A signed request for a mailbox that can be sent again and again.
struct Signed {
    caller: Caller,
    path: String,
}

impl Signed {
    async fn new(server: &Server, payer: &Payer, protocol: ProofProtocol) -> Self {
        let path = format!("{BASE}/mailboxes");
        let (name, value) = payer.prove(protocol, Method::POST, &path, Some(json!({ "name": "A" }))).await;
        Self { caller: server.anonymous().with(&name, &value), path }
    }

    async fn send(&self) -> Answer {
        self.caller.post(&self.path, json!({ "name": "A" })).await
    }
}

// rules: PAY-11, PAY-12
#[both_engines]
async fn a_facilitator_settles_what_the_server_has_verified(engine: Engine) {
    let stub = Stub::start().await;
    stub.work();
    let server = stub.server(engine).await;
    let payer = server.wallet("anna");
    for protocol in [ProofProtocol::X402, ProofProtocol::X402V1, ProofProtocol::Mpp] {
        let answer = Signed::new(&server, &payer, protocol).await.send().await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let asked = stub.settle.received();
    assert_eq!((asked.len(), stub.verify.received().len()), (3, 3));
    for one in asked {
        let body = one.json();
        assert_eq!((&body["x402Version"], &body["paymentPayload"]["x402Version"]), (&json!(2), &json!(2)));
        assert_eq!(body["paymentRequirements"]["amount"], "100000");
        assert_eq!(body["paymentPayload"]["accepted"], body["paymentRequirements"]);
        let authorization = &body["paymentPayload"]["payload"]["authorization"];
        assert_eq!(
            (&authorization["from"], &authorization["value"]),
            (&json!(payer.address()), &json!("100000"))
        );
    }
    // Reads never reach it.
    payer.get(&format!("{BASE}/mailboxes")).await.ok();
    assert_eq!(stub.settle.received().len(), 3);
}

// rules: PAY-11
#[both_engines]
async fn a_refusal_leaves_nothing_behind(engine: Engine) {
    let stub = Stub::start().await;
    let server = stub.server(engine).await;
    let payer = server.wallet("anna");
    // Known before anything is claimed: the same payment can be good later.
    let signed = Signed::new(&server, &payer, ProofProtocol::X402).await;
    let bad = json!({ "isValid": false, "invalidReason": "insufficient_funds" });
    for status in [200, 400] {
        stub.verify.reply(reply(status, &bad));
        assert_eq!(signed.send().await.expect(402, "payment_required").json()["error"], "insufficient_funds");
    }
    for fault in [Reply::Status(500, "oops".to_owned()), Reply::Hang, Reply::Endless] {
        stub.verify.reply(fault);
        let answer = signed.send().await;
        answer.expect(503, "facilitator_unavailable");
        assert_eq!(answer.header("retry-after"), "5");
    }
    stub.verify.reply(reply(200, &json!({ "isValid": true })));
    assert!(payments(&server).await.is_empty());
    // Known only when it is settled.
    stub.settle.reply(reply(
        400,
        &json!({ "success": false, "errorReason": "insufficient_funds", "transaction": "" }),
    ));
    for protocol in [ProofProtocol::X402, ProofProtocol::X402V1] {
        let signed = Signed::new(&server, &payer, protocol).await;
        for _ in 0..2 {
            let answer = signed.send().await;
            answer.expect(402, "settlement_failed");
            let name =
                if protocol == ProofProtocol::X402 { "payment-response" } else { "x-payment-response" };
            let told = header(&answer, name);
            assert_eq!(
                (&told["success"], &told["errorReason"]),
                (&json!(false), &json!("insufficient_funds"))
            );
            assert!(!answer.header("payment-required").is_empty());
        }
    }
    assert_eq!((count_mailboxes(&server).await, count_workspaces(&server).await), (0, 0));
    let all = payments(&server).await;
    assert!(
        all.iter()
            .all(|(state, reason, _)| state == "failed" && reason.as_deref() == Some("insufficient_funds"))
    );
    assert_eq!((all.len(), stub.settle.received().len()), (2, 2));
}

// rules: PAY-11, PAY-20
#[both_engines]
async fn what_nobody_knows_is_found_out_later(engine: Engine) {
    let pending = json!({ "success": false, "errorReason": "settlement_pending", "transaction": hash() });
    let lies = json!({ "success": true, "transaction": hash(), "payer": "0x0000000000000000000000000000000000000001" });
    for fault in [
        Reply::Hang,
        Reply::Status(500, "<html>oops</html>".to_owned()),
        reply(200, &pending),
        reply(200, &lies),
        reply(200, &json!({ "success": true, "transaction": "" })),
    ] {
        let stub = Stub::start().await;
        let server = stub.server(engine).await;
        let payer = server.wallet("anna");
        let signed = Signed::new(&server, &payer, ProofProtocol::X402).await;
        stub.settle.reply(fault.clone());
        let answer = signed.send().await;
        answer.expect(503, "settlement_pending");
        assert!(!answer.header("retry-after").is_empty());
        assert_eq!(payments(&server).await[0].0, "pending", "{fault:?}");
        // A repeat does not pay again, and gets nothing yet.
        signed.send().await.expect(503, "settlement_pending");
        operations::payments::reconcile(&server.app).await.unwrap();
        assert_eq!((count_mailboxes(&server).await, payments(&server).await.len()), (0, 1));
        // It turns out to have been settled, long after the authorisation has ended.
        stub.work();
        server.clock.advance(1000);
        assert_eq!(operations::payments::reconcile(&server.app).await.unwrap(), 1);
        assert_eq!(payments(&server).await[0].0, "settled");
        assert_eq!(count_mailboxes(&server).await, 0);
        let settled = stub.settle.received().len();
        assert_eq!(signed.send().await.status, 201);
        assert_eq!(stub.settle.received().len(), settled, "it is paid for already");
        assert_eq!(payments(&server).await[0].0, "fulfilled");
    }
}

// rules: PAY-20
#[both_engines]
async fn a_repeat_goes_on_where_the_first_call_stopped(engine: Engine) {
    let stub = Stub::start().await;
    let server = stub.server(engine).await;
    let payer = server.wallet("anna");
    let signed = Signed::new(&server, &payer, ProofProtocol::X402).await;
    stub.settle.reply(Reply::Hang);
    signed.send().await.expect(503, "settlement_pending");
    stub.work();
    server.clock.advance(60);
    assert_eq!(signed.send().await.status, 201);
    assert_eq!(payments(&server).await[0].0, "fulfilled");
    // What is never known is given up when it can move no money any more.
    let signed = Signed::new(&server, &payer, ProofProtocol::X402).await;
    stub.settle.reply(Reply::Hang);
    signed.send().await.expect(503, "settlement_pending");
    server.clock.advance(2 * 3600);
    operations::payments::reconcile(&server.app).await.unwrap();
    let lost = payments(&server).await.remove(1);
    assert_eq!((lost.0.as_str(), lost.1.as_deref()), ("failed", Some("settlement_unconfirmed")));
    signed.send().await.expect(402, "settlement_failed");
    assert_eq!(count_mailboxes(&server).await, 1);
}

// rules: PAY-13
#[both_engines]
async fn the_ledger_gives_test_money_and_counts_it(engine: Engine) {
    let mut options = ServerOptions::default();
    options.payments.ledger_gift = 250_000;
    let server = Server::with(engine, options).await;
    let payer = server.wallet("anna");
    mailbox(&payer, "A").await;
    mailbox(&payer, "B").await;
    let poor = payer.post(&format!("{BASE}/mailboxes"), json!({ "name": "C" })).await;
    assert_eq!(poor.expect(402, "payment_required").json()["error"], "insufficient_funds");
    mailbox(&server.wallet("bert"), "D").await;
    let sql = "SELECT address, balance FROM ledger_account ORDER BY balance";
    let found = server.app.db().system_read(async move |tx| tx.all::<(String, i64)>(sql, &[]).await).await;
    let balances: Vec<i64> = found.unwrap().into_iter().map(|(_, balance)| balance).collect();
    assert_eq!(balances, [50_000, 150_000, 300_000], "what one pays another gets");
}
