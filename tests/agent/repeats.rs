//! Each proof counts once: repeats, races, and proofs that are used for something else.

use axum::http::Method;
use serde_json::json;
use testkit::{Engine, ProofProtocol, Server, ServerOptions, both_engines};
use tokio::task::JoinSet;

use super::{BASE, count_mailboxes, inside, mailbox, payments};

// rules: PAY-10
#[both_engines]
async fn a_repeat_of_the_same_request_repeats_its_answer(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    let body = json!({ "name": "A" });
    for protocol in [ProofProtocol::X402, ProofProtocol::X402V1, ProofProtocol::Mpp] {
        let (name, value) = payer.prove(protocol, Method::POST, &path, Some(body.clone())).await;
        let caller = server.anonymous().with(&name, &value);
        let first = caller.post(&path, body.clone()).await;
        // Also when the authorisation has ended meanwhile.
        server.clock.advance(1000);
        let second = caller.post(&path, body.clone()).await;
        assert_eq!((first.status, &first.bytes), (201, &second.bytes), "{protocol:?}: {}", second.text());
        assert_eq!(second.status, 201);
        for header in ["payment-response", "x-payment-response"] {
            assert_eq!(first.headers.get(header), second.headers.get(header));
        }
    }
    assert_eq!((count_mailboxes(&server).await, payments(&server).await.len()), (3, 3));
    // A read too, as it was: nobody who sees the proof sees what came later.
    let own = payer.get(&path).await.ok()[0].clone();
    let emails = inside(&own, "/emails");
    for protocol in [ProofProtocol::X402, ProofProtocol::Siwx] {
        let (name, value) = payer.prove(protocol, Method::GET, &emails, None).await;
        let caller = server.anonymous().with(&name, &value);
        let first = caller.get(&emails).await;
        server.receive(own["email"].as_str().unwrap(), "Subject: New\r\n\r\nT\r\n").await;
        assert_eq!(caller.get(&emails).await.bytes, first.bytes);
    }
    assert_eq!(payer.get(&emails).await.ok()["totalCount"], 2);
}

// rules: PAY-10
#[both_engines]
async fn a_proof_is_bound_to_method_path_query_and_body(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let (own, other) = (mailbox(&payer, "A").await, mailbox(&payer, "B").await);
    let emails = inside(&own, "/emails");
    let (name, value) = payer.prove(ProofProtocol::X402, Method::GET, &emails, None).await;
    let caller = server.anonymous().with(&name, &value);
    caller.get(&emails).await.ok();
    for path in [inside(&other, "/emails"), inside(&own, "/folders"), format!("{emails}?limit=1")] {
        let answer = caller.get(&path).await;
        let reason = answer.expect(402, "payment_required").json()["error"].clone();
        assert_eq!(reason, "invalid_exact_evm_nonce_already_used", "{path}");
    }
    // A payment for one thing buys nothing else of the same price.
    let mail = json!({ "to": other["email"], "subject": "S", "text": "T" });
    let (name, value) = payer.prove(ProofProtocol::X402, Method::POST, &emails, Some(mail.clone())).await;
    let caller = server.anonymous().with(&name, &value);
    caller.post(&emails, mail.clone()).await.ok();
    let changed = json!({ "to": own["email"], "subject": "S", "text": "T" });
    for (path, body) in [(emails.clone(), changed), (inside(&own, "/drafts"), json!({ "body": "T" }))] {
        let reason = caller.post(&path, body).await.expect(402, "payment_required").json()["error"].clone();
        assert_eq!(reason, "invalid_exact_evm_nonce_already_used");
    }
    // The challenge itself says what for.
    let (name, value) = payer.prove(ProofProtocol::Mpp, Method::POST, &emails, Some(mail.clone())).await;
    let caller = server.anonymous().with(&name, &value);
    let drafts = inside(&own, "/drafts");
    let refused = caller.post(&drafts, json!({ "body": "T" })).await;
    assert_eq!(refused.expect(402, "payment_required").json()["error"], "invalid_challenge");
    caller.post(&emails, mail).await.ok();
    // A sign-in is for its own address, and once.
    let (name, value) = payer.prove(ProofProtocol::Siwx, Method::GET, &emails, None).await;
    let caller = server.anonymous().with(&name, &value);
    caller.get(&emails).await.ok();
    let head = caller.send(Method::HEAD, &emails, None).await;
    assert_eq!(head.status, 402);
    assert_eq!(payments(&server).await.len(), 4);
}

// rules: PAY-10, PAY-11
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_repeats_at_once_have_one_effect(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    let body = json!({ "name": "A" });
    for protocol in [ProofProtocol::X402, ProofProtocol::Mpp] {
        let before = count_mailboxes(&server).await;
        let (name, value) = payer.prove(protocol, Method::POST, &path, Some(body.clone())).await;
        let caller = server.anonymous().with(&name, &value);
        let mut calls = JoinSet::new();
        for _ in 0..50 {
            let (caller, path, body) = (caller.clone(), path.clone(), body.clone());
            calls.spawn(async move { caller.post(&path, body).await });
        }
        let answers = calls.join_all().await;
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert!(!made.is_empty());
        assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
        for other in answers.iter().filter(|answer| answer.status != 201) {
            other.expect(409, "payment_in_progress");
            assert_eq!(other.header("retry-after"), "1");
        }
        assert_eq!(count_mailboxes(&server).await, before + 1);
        assert_eq!(caller.post(&path, body.clone()).await.bytes, made[0].bytes);
    }
    let paid = payments(&server).await;
    assert_eq!(paid.len(), 2);
    // And one answer of a read.
    let (name, value) = payer.prove(ProofProtocol::X402, Method::GET, &path, None).await;
    let caller = server.anonymous().with(&name, &value);
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (caller, path) = (caller.clone(), path.clone());
        calls.spawn(async move { caller.get(&path).await });
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.bytes == answers[0].bytes));
}

/// Free proofs are in the memory of a server that has its store alone: after a start none is taken that could have been.
// rules: PAY-10
#[both_engines]
async fn a_free_proof_does_not_count_again_after_a_restart(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let own = mailbox(&payer, "A").await;
    let (emails, folders) = (inside(&own, "/emails"), inside(&own, "/folders"));
    for protocol in [ProofProtocol::X402, ProofProtocol::Siwx] {
        let used = payer.prove(protocol, Method::GET, &emails, None).await;
        let unused = payer.prove(protocol, Method::GET, &folders, None).await;
        let first = server.anonymous().with(&used.0, &used.1).get(&emails).await;
        let restarted = server.another_node(ServerOptions::default()).await;
        let repeated = restarted.anonymous().with(&used.0, &used.1).get(&emails).await;
        let other = restarted.anonymous().with(&unused.0, &unused.1).get(&folders).await;
        if engine == Engine::Sqlite {
            repeated.expect(402, "payment_required");
            other.expect(402, "payment_required");
            // Who signs a few seconds later is not mistaken for somebody of before.
            server.clock.advance(6);
            restarted.wallet("anna").get(&folders).await.ok();
        } else {
            assert_eq!(repeated.bytes, first.bytes);
            other.ok();
        }
    }
}

// rules: PAY-10
#[both_engines]
async fn a_free_proof_is_for_a_read_or_for_a_write(engine: Engine) {
    let mut options = ServerOptions::default();
    options.payments.prices.draft = 0;
    let server = Server::with(engine, options).await;
    let payer = server.wallet("anna");
    let own = mailbox(&payer, "A").await;
    let (drafts, folders) = (inside(&own, "/drafts"), inside(&own, "/folders"));
    let body = json!({ "body": "T" });
    let proof = payer.prove(ProofProtocol::X402, Method::POST, &drafts, Some(body.clone())).await;
    let caller = server.anonymous().with(&proof.0, &proof.1);
    let saved = caller.post(&drafts, body.clone()).await;
    caller.get(&folders).await.expect(402, "payment_required");
    assert_eq!(caller.post(&drafts, body.clone()).await.bytes, saved.bytes);
    let proof = payer.prove(ProofProtocol::X402, Method::GET, &folders, None).await;
    let caller = server.anonymous().with(&proof.0, &proof.1);
    let read = caller.get(&folders).await;
    let refused = caller.post(&drafts, body.clone()).await;
    let reason = refused.expect(402, "payment_required").json()["error"].clone();
    assert_eq!(reason, "invalid_exact_evm_nonce_already_used");
    assert_eq!(caller.get(&folders).await.bytes, read.bytes);
    // What it saved is known after a restart as well.
    let proof = payer.prove(ProofProtocol::X402, Method::POST, &drafts, Some(body.clone())).await;
    let saved = server.anonymous().with(&proof.0, &proof.1).post(&drafts, body.clone()).await;
    let mut options = ServerOptions::default();
    options.payments.prices.draft = 0;
    let restarted = server.another_node(options).await;
    let repeated = restarted.anonymous().with(&proof.0, &proof.1).post(&drafts, body).await;
    assert_eq!((repeated.status, &repeated.bytes), (saved.status, &saved.bytes));
}

/// Money that moved and a call that failed: the same request comes through later, and pays nothing more.
// rules: PAY-19
#[both_engines]
async fn what_was_paid_for_and_not_done_can_be_repeated(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let path = format!("{BASE}/mailboxes");
    mailbox(&payer, "First").await;
    let body = json!({ "name": "A" });
    let (name, value) = payer.prove(ProofProtocol::X402, Method::POST, &path, Some(body.clone())).await;
    let caller = server.anonymous().with(&name, &value).meets_faults();
    let workspace = payer.get(&path).await.ok()[0]["workspace_id"].as_str().unwrap().to_owned();
    // The rehearsal goes well; what comes after the settlement does not.
    store::faults::fail_statement(&workspace.as_str().into(), "UPDATE payment SET state = 'fulfilled'", 1);
    let failed = caller.post(&path, body.clone()).await;
    assert!(failed.status >= 500, "{}", failed.text());
    let waiting = payments(&server).await.remove(1);
    assert_eq!((waiting.0.as_str(), waiting.2.as_str()), ("settled", "0.100000"));
    assert_eq!(count_mailboxes(&server).await, 1);
    assert!(store::faults::stop_failing(&workspace.as_str().into()));
    let again = caller.post(&path, body).await;
    assert_eq!(again.status, 201, "{}", again.text());
    assert_eq!(payments(&server).await.remove(1).0, "fulfilled");
    assert_eq!(count_mailboxes(&server).await, 2);
    let totals = operations::payments::totals(&server.app).await.unwrap();
    assert_eq!((totals.len(), totals[0].amount.as_str()), (1, "0.200000"));
}

// rules: PAY-10
#[both_engines]
async fn proofs_that_cost_nothing_are_forgotten_when_they_have_ended(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let (name, value) = payer.prove(ProofProtocol::X402, Method::GET, "/api", None).await;
    let caller = server.anonymous().with(&name, &value);
    caller.get("/api").await.ok();
    mailbox(&payer, "A").await;
    let count = async || {
        let sql = "SELECT count(*) FROM payment";
        server
            .app
            .db()
            .system_read(async move |tx| tx.one::<(i64,)>(sql, &[]).await)
            .await
            .unwrap()
            .unwrap()
            .0
    };
    operations::maintenance::run(&server.app).await.unwrap();
    let stored = if engine == Engine::Sqlite { 1 } else { 2 };
    assert_eq!(count().await, stored, "free proofs are in the store where several servers share it");
    server.clock.advance(600);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(count().await, 1, "what was paid stays");
    caller.get("/api").await.expect(402, "payment_required");
}
