//! What became of a message, by the word of the store.

use model::sending::OutboundMode;
use operations::{ErrorKind, ports::HandoverOutcome, sending::worker, trace};
use serde_json::{Value, json};
use testkit::{Engine, both_engines};

use super::{
    delivery::{forward, mail, server},
    mails::{Inbox, message, plain},
};

/// What is traced of a message, as JSON.
async fn traced(server: &testkit::Server, named: &str) -> Value {
    serde_json::to_value(trace::find(&server.app, named).await.unwrap()).unwrap()
}

// rules: CLI-15
#[both_engines]
async fn a_message_is_traced_in_all_mailboxes_by_any_of_its_ids(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let (inbox, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    hop.answer("slow@remote.test", HandoverOutcome::Deferred("451 4.3.0 Not now".to_owned()));
    let key = inbox.key.with("prefer", "respond-async");
    let letter = mail(json!(["slow@remote.test", other.address]));
    let sent = key.post(&format!("{}/emails", inbox.path), letter).await.ok();
    worker::run_due(&server.app).await.unwrap();
    let (id, message_id) = (sent["id"].as_str().unwrap(), sent["message_id"].as_str().unwrap());
    let found = traced(&server, message_id).await;
    let copy = other.get("emails?limit=1").await["emails"][0]["id"].as_str().unwrap().to_owned();
    for named in [&format!("<{message_id}>"), id, &copy] {
        assert_eq!(traced(&server, named).await, found, "{named}");
    }
    assert_eq!(found["message_ids"], json!([message_id]));
    let mut emails: Vec<Value> = found["emails"].as_array().unwrap().clone();
    emails.sort_by_key(|email| email["outgoing"].as_bool());
    assert_eq!(emails.len(), 2, "{found}");
    for (email, inbox, id, folder) in
        [(&emails[0], &other, copy.as_str(), "inbox"), (&emails[1], &inbox, id, "sent")]
    {
        assert_eq!(
            (&email["id"], &email["mailbox"], &email["folder"], &email["workspace_id"]),
            (&json!(id), &json!(inbox.address), &json!(folder), &json!(inbox.workspace))
        );
    }
    assert_eq!(emails[0]["scan_status"], "clean");
    let sends = found["sends"].as_array().unwrap();
    assert_eq!((sends.len(), &sends[0]["queue_id"]), (1, &json!(id)));
    let slow = &sends[0]["recipients"][0];
    assert_eq!(
        (&slow["state"], &slow["attempts"], &slow["last_reply"]),
        (&json!("queued"), &json!(1), &json!("451 4.3.0 Not now"))
    );
    assert!(slow["next_attempt_at"].is_string() && slow["last_attempt_at"].is_string(), "{slow}");
    assert_eq!(sends[0]["recipients"][1]["destination"], "local");
    for nothing in ["nobody@remote.test", "", "x", "' OR 1=1"] {
        let error = trace::find(&server.app, nothing).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{nothing}");
    }
}

/// A copy for another address is in the queue until it has left; an answer that came first takes a Message-ID to its own
/// thread.
// rules: CLI-15
#[both_engines]
async fn copies_in_the_queue_and_mails_that_came_late_are_traced(engine: Engine) {
    let (server, _) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    forward(&inbox, "home@remote.test").await;
    server.receive(&inbox.address, plain("Copied", "Text")).await;
    let found = traced(&server, "Copied@remote.test").await;
    let sends = found["sends"].as_array().unwrap();
    assert_eq!((sends.len(), &sends[0]["kind"]), (1, &json!("forward")), "{found}");
    let by_queue_id = traced(&server, sends[0]["queue_id"].as_str().unwrap()).await;
    assert_eq!(by_queue_id, found);
    // The thread of the answer knows the Message-ID, and the mail itself joins another one.
    server.receive(&inbox.address, plain("First", "Text")).await;
    let answer = message("Answer", "In-Reply-To: <Late@remote.test>", "Text\r\n");
    server.receive(&inbox.address, answer).await;
    let late = message("Late", "References: <First@remote.test>", "Text\r\n");
    let late = server.receive(&inbox.address, late).await;
    let found = traced(&server, "Late@remote.test").await;
    assert_eq!((found["emails"].as_array().unwrap().len(), &found["emails"][0]["id"]), (1, &json!(late)));
}
