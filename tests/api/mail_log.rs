//! The mail log about mail that goes out.

use model::sending::OutboundMode;
use operations::{ports::HandoverOutcome, sending::worker};
use serde_json::json;
use testkit::{Engine, Logs, both_engines};

use super::{
    delivery::{forward, mail, server},
    mails::{Inbox, plain},
};

/// The lines about mail that are found by a name.
fn lines(logs: &Logs, target: &str) -> Vec<String> {
    let target = format!(" {target}: ");
    logs.text().lines().filter(|line| line.contains(&target)).map(ToOwned::to_owned).collect()
}

/// A field of a line, without quotation marks.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("no {name} in {line}"));
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap(),
        None => rest.split(' ').next().unwrap(),
    }
}

// rules: SEND-36, OBS-2
#[both_engines]
async fn every_attempt_is_a_line(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Direct).await;
    let (inbox, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let forged = "250 2.0.0 Ok\r\n2026-07-14T09:00:00Z  INFO mail.sent: forged\u{1b}[2K\u{2028}x";
    hop.answer("slow@remote.test", HandoverOutcome::Deferred("451 4.3.0 Not now".to_owned()));
    hop.answer("slow@remote.test", HandoverOutcome::Accepted(forged.to_owned()));
    hop.answer("no@remote.test", HandoverOutcome::Refused("550 5.1.1 Nobody here".to_owned()));
    let logs = Logs::catch();
    let key = inbox.key.with("prefer", "respond-async").with("x-request-id", "the-request");
    let to = json!(["slow@remote.test", "no@remote.test", other.address]);
    let letter = json!({ "to": to, "subject": "Quietest subject", "text": "Quietest body" });
    let sent = key.post(&format!("{}/emails", inbox.path), letter).await.ok();
    let (id, message_id) = (sent["id"].as_str().unwrap(), sent["message_id"].as_str().unwrap());
    let submitted = lines(&logs, "mail.submitted");
    assert_eq!(submitted.len(), 1, "{}", logs.text());
    assert!(submitted[0].contains("the-request"), "the call that it came by: {}", submitted[0]);
    assert_eq!(
        ["queue_id", "email_id", "message_id", "kind", "from", "waiting"]
            .map(|name| field(&submitted[0], name)),
        [id, id, message_id, "mail", &inbox.address, "2"]
    );
    let recipients = field(&submitted[0], "recipients");
    assert!(recipients.starts_with("<slow@remote.test> remote.test, "), "{recipients}");
    assert!(recipients.ends_with(&format!("<{}> local", other.address)), "{recipients}");
    let at_once = lines(&logs, "mail.sent");
    assert_eq!(at_once.len(), 1);
    assert_eq!(
        ["to", "destination", "result", "attempt", "delay"].map(|name| field(&at_once[0], name)),
        [&other.address, "local", "sent", "1", "0"]
    );
    server.clock.advance(2);
    worker::run_due(&server.app).await.unwrap();
    server.clock.advance(3600);
    worker::run_due(&server.app).await.unwrap();
    let attempts = lines(&logs, "mail.sent").split_off(1);
    let told = |line: &String| {
        ["to", "result", "reply", "attempt", "delay"].map(|name| field(line, name).to_owned())
    };
    let mut told: Vec<[String; 5]> = attempts.iter().map(told).collect();
    told[..2].sort();
    let shown = "250 2.0.0 Ok??2026-07-14T09:00:00Z  INFO mail.sent: forged?[2K?x";
    assert_eq!(
        told,
        [
            ["no@remote.test", "bounced", "550 5.1.1 Nobody here", "1", "2"],
            ["slow@remote.test", "deferred", "451 4.3.0 Not now", "1", "2"],
            ["slow@remote.test", "sent", shown, "2", "3602"],
        ]
    );
    let put_off = attempts.iter().find(|line| field(line, "result") == "deferred").unwrap();
    assert!(field(put_off, "next").starts_with("2026-07-14T09:"), "{put_off}");
    for line in &attempts {
        assert_eq!((field(line, "queue_id"), field(line, "message_id")), (id, message_id));
        let span = format!("queue{{queue_id=\"{id}\" workspace={}}}", inbox.workspace);
        assert!(line.contains(&span), "in its span: {line}");
    }
    for line in logs.text().lines().filter(|line| line.contains(" mail.")) {
        assert!(!line.contains("Quietest"), "{line}");
    }
}

/// A mail that is passed on to a mailbox of this server.
// rules: SEND-36
#[both_engines]
async fn copies_carry_the_message_id_of_what_they_are_copies_of(engine: Engine) {
    let (server, _) = server(engine, OutboundMode::Relay).await;
    let (inbox, other) = (Inbox::new(&server).await, Inbox::new(&server).await);
    forward(&inbox, &other.address).await;
    let logs = Logs::catch();
    server.receive(&inbox.address, plain("Pass on", "Text")).await;
    worker::run_due(&server.app).await.unwrap();
    let sent = lines(&logs, "mail.sent");
    assert_eq!(sent.len(), 1, "{}", logs.text());
    let copy = other.get("emails?limit=1").await["emails"][0]["id"].clone();
    assert_eq!(
        ["message_id", "kind", "to", "destination", "result", "stored_as"].map(|name| field(&sent[0], name)),
        ["Passon@remote.test", "forward", &other.address, "local", "sent", copy.as_str().unwrap()]
    );
}

// rules: SEND-36
#[both_engines]
async fn the_sandbox_is_told_of_too(engine: Engine) {
    let (server, _) = server(engine, OutboundMode::Sandbox).await;
    let inbox = Inbox::new(&server).await;
    let logs = Logs::catch();
    inbox.post("emails", mail("a@remote.test")).await.ok();
    let sent = lines(&logs, "mail.sent");
    assert_eq!(sent.len(), 1, "{}", logs.text());
    assert_eq!((field(&sent[0], "to"), field(&sent[0], "result")), ("a@remote.test", "sandboxed"));
}
