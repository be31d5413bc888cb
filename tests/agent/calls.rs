//! Every route, called by wallets in every way that it takes.

use axum::http::Method;
use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, ProofProtocol, Server, both_engines};

use super::{BASE, header, inside, mailbox, payments};

const MAIL: &str = "From: a@remote.test\r\nSubject: Your code\r\nMessage-ID: <1@remote.test>\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nYour code is 123456\r\n\
    --b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n1;2\r\n--b--\r\n";

// rules: PAY-3, PAY-6, PAY-12, PAY-14
#[both_engines]
async fn reads_take_authorisations_over_nothing_and_sign_ins(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let mailbox = mailbox(&payer, "A").await;
    let id = server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
    let email = payer.get(&inside(&mailbox, &format!("/emails/{id}"))).await.ok();
    let file = email["attachments"][0]["id"].as_str().unwrap();
    let thread = email["thread_id"].as_str().unwrap();
    for rest in [
        String::new(),
        "/emails".to_owned(),
        "/emails?limit=5".to_owned(),
        format!("/emails/{id}"),
        format!("/emails/{id}/context?limit=5"),
        "/search?query=code".to_owned(),
        format!("/threads/{thread}"),
        format!("/attachments/{file}"),
        "/folders".to_owned(),
        "/custom-labels".to_owned(),
    ] {
        let path = inside(&mailbox, &rest);
        let mut answers = Vec::new();
        for protocol in [ProofProtocol::X402, ProofProtocol::X402V1, ProofProtocol::Siwx] {
            let answer = payer.call(protocol, Method::GET, &path, None).await;
            assert_eq!(answer.status, 200, "{protocol:?} {path}: {}", answer.text());
            let told = match protocol {
                ProofProtocol::X402 => header(&answer, "payment-response"),
                ProofProtocol::X402V1 => header(&answer, "x-payment-response"),
                _ => Value::Null,
            };
            if protocol != ProofProtocol::Siwx {
                assert_eq!((&told["success"], &told["transaction"]), (&json!(true), &json!("")));
                assert_eq!(told["payer"], payer.address());
                assert_eq!(answer.header("cache-control"), "private, no-store");
            }
            answers.push(answer.bytes);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}");
    }
    let wait = inside(&mailbox, "/emails/wait");
    let input = json!({ "timeout_seconds": 1, "after": "2026-07-14T00:00:00Z" });
    let (name, value) = payer.prove(ProofProtocol::Siwx, Method::POST, &wait, Some(input.clone())).await;
    let caller = server.anonymous().with(&name, &value);
    let found = caller.post(&wait, input.clone()).await;
    assert_eq!(found.ok()["email"]["id"], id.as_str());
    assert_eq!(caller.post(&wait, input).await.bytes, found.bytes);
    assert_eq!(payments(&server).await.len(), 1, "only the mailbox was paid for");
}

// rules: PAY-3, PAY-4, PAY-7, PAY-12, PAY-14
#[both_engines]
async fn writes_take_every_payment_protocol(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    for (number, protocol) in
        [ProofProtocol::X402, ProofProtocol::X402V1, ProofProtocol::Mpp].into_iter().enumerate()
    {
        let path = format!("{BASE}/mailboxes");
        let body = json!({ "name": "Box", "email": format!("box-{number}@agents.test") });
        let answer = payer.call(protocol, Method::POST, &path, Some(body)).await;
        assert_eq!(answer.status, 201, "{protocol:?}: {}", answer.text());
        let made = answer.ok();
        assert_eq!(made["email"], format!("box-{number}@agents.test"));
        let settings = &made["settings"];
        assert_eq!(settings["agentInbox"]["mode"], "verification");
        assert_eq!(settings["agentInbox"]["automationsEnabled"], false);
        assert_eq!(settings["autoDraft"]["enabled"], false);
        if protocol == ProofProtocol::Mpp {
            let receipt: Value = pay::encoding::from_url_safe(answer.header("payment-receipt")).unwrap();
            assert_eq!((&receipt["status"], &receipt["method"]), (&json!("success"), &json!("evm")));
            assert!(receipt["reference"].as_str().unwrap().starts_with("0x"));
            continue;
        }
        let name = if protocol == ProofProtocol::X402 { "payment-response" } else { "x-payment-response" };
        let told = header(&answer, name);
        assert_eq!((&told["success"], &told["amount"]), (&json!(true), &json!("100000")));
        assert_eq!(told["extra"]["settledBy"], "ledger");
        assert_eq!(told["transaction"].as_str().unwrap().len(), 66);
    }
    let all = payer.get(&format!("{BASE}/mailboxes")).await.ok();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let paid = payments(&server).await;
    assert!(paid.iter().all(|(state, _, amount)| state == "fulfilled" && amount == "0.100000"), "{paid:?}");
}

// rules: PAY-14, PAY-17
#[both_engines]
async fn mail_is_sent_answered_passed_on_and_drafted_for_a_cent(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let (one, two) = (mailbox(&payer, "One").await, mailbox(&payer, "Two").await);
    let mail = json!({ "to": two["email"], "subject": "S", "text": "T" });
    let sent = payer.post(&inside(&one, "/emails"), mail).await;
    assert_eq!((sent.status, sent.ok()["status"].as_str()), (202, Some("sent")));
    let list = payer.get(&inside(&two, "/emails")).await.ok();
    let id = list["emails"][0]["id"].as_str().unwrap();
    let reply = inside(&two, &format!("/emails/{id}/reply"));
    assert_eq!(payer.post(&reply, json!({ "text": "Yes" })).await.status, 202);
    let forward = inside(&two, &format!("/emails/{id}/forward"));
    assert_eq!(payer.post(&forward, json!({ "to": one["email"], "text": "See" })).await.status, 202);
    let draft = payer.post(&inside(&two, "/drafts"), json!({ "body": "Later" })).await;
    assert_eq!(draft.status, 201, "{}", draft.text());
    let paid: Vec<String> = payments(&server).await.into_iter().map(|(_, _, amount)| amount).collect();
    assert_eq!(paid, ["0.100000", "0.100000", "0.010000", "0.010000", "0.010000", "0.010000"]);
    // Whoever has an account here is not charged for what wallets do.
    let tenant = server.tenant(Plan::Free).await;
    let usage = format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace);
    assert_eq!(tenant.key.get(&usage).await.ok()["used"], 1);
    let used = "SELECT count(*) FROM credit_ledger";
    let rows = server.app.db().system_read(async move |tx| tx.one::<(i64,)>(used, &[]).await).await;
    assert_eq!(rows.unwrap().unwrap().0, 0);
    let totals = operations::payments::totals(&server.app).await.unwrap();
    assert_eq!(
        (totals[0].state.as_str(), totals[0].count, totals[0].amount.as_str()),
        ("fulfilled", 6, "0.240000")
    );
}

// rules: PAY-9
#[both_engines]
async fn what_is_refused_costs_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let payer = server.wallet("anna");
    let all = format!("{BASE}/mailboxes");
    let taken = json!({ "name": "A", "email": "taken@agents.test" });
    payer.post(&all, json!({ "name": "" })).await.expect(400, "validation_failed");
    payer.post(&all, json!({ "name": "A", "settings": {} })).await.expect(400, "validation_failed");
    payer
        .post(&all, json!({ "name": "A", "email": "a@elsewhere.test" }))
        .await
        .expect(400, "validation_failed");
    let own = payer.post(&all, taken.clone()).await.ok();
    // Known before there is a workspace, and with one.
    server.wallet("bert").post(&all, taken.clone()).await.expect(409, "mailbox_exists");
    payer.post(&all, taken).await.expect(409, "mailbox_exists");
    let emails = inside(&own, "/emails");
    let unknown = json!({ "to": own["email"], "subject": "S", "text": "T", "attachments": [{ "attachment_id": "att_1" }] });
    payer.post(&emails, unknown).await.expect(404, "not_found");
    let outside = json!({ "to": "a@elsewhere.test", "subject": "S", "text": "T" });
    payer.post(&emails, outside).await.expect(422, "outbound_not_configured");
    let many: Vec<String> = (0..11).map(|number| format!("b{number}@agents.test")).collect();
    let too_many = json!({ "to": many, "subject": "S", "text": "T" });
    payer.post(&emails, too_many).await.expect(400, "email_send_recipient_limit_exceeded");
    payer.post(&inside(&own, "/emails/eml_1/reply"), json!({ "text": "T" })).await.expect(404, "not_found");
    payer.get(&inside(&own, "/emails/eml_1")).await.expect(404, "not_found");
    payer.get(&inside(&own, "/emails?limit=0")).await.expect(400, "validation_failed");
    assert_eq!(payments(&server).await.len(), 1, "only the mailbox that was made");
    let sent = payer.get(&inside(&own, "/emails?folder=sent")).await.ok();
    assert_eq!(sent["totalCount"], 0, "a rehearsal leaves nothing behind");
}
