//! Send policies and wallets: a policy is asked before a payment is settled, and nobody can be asked for a review.

use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{inside, mailbox, payments};

async fn with_floor(engine: Engine, floor: Value) -> Server {
    let mut options = ServerOptions::default();
    let policy: model::send_policies::NewSendPolicy = serde_json::from_value(floor).unwrap();
    options.send_policy.floor = policy.alone();
    Server::with(engine, options).await
}

// rules: POLICY-14, PAY-9
#[both_engines]
async fn a_forbidden_message_is_not_paid_for(engine: Engine) {
    for (floor, reason) in [
        (json!({ "recipients": { "block": ["never@agents.test"] } }), "recipient_blocked"),
        (json!({ "review": "all" }), "review_needed"),
        (json!({ "new_recipient": "review" }), "new_recipient"),
    ] {
        let server = with_floor(engine, floor).await;
        let payer = server.wallet("anna");
        let mailbox = mailbox(&payer, "A").await;
        let source = "From: a@remote.test\r\nSubject: S\r\nMessage-ID: <1@remote.test>\r\n\r\nHello\r\n";
        let id = server.receive(mailbox["email"].as_str().unwrap(), source).await;
        let mail = json!({ "to": "never@agents.test", "subject": "S", "text": "T" });
        for (rest, body) in [
            ("/emails".to_owned(), mail),
            (format!("/emails/{id}/reply"), json!({ "text": "T", "to": "never@agents.test" })),
            (format!("/emails/{id}/forward"), json!({ "text": "T", "to": "never@agents.test" })),
        ] {
            let answer = payer.post(&inside(&mailbox, &rest), body).await;
            answer.expect(403, "send_blocked");
            assert_eq!(answer.json()["details"][0]["message"], reason, "{}", answer.text());
        }
        assert_eq!(payments(&server).await.len(), 1, "only the mailbox was paid for");
    }
}
