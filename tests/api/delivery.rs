//! What becomes of mail for other servers: the queue, its attempts, reports, and mail that nobody writes.

use std::time::Duration;

use model::{Plan, sending::OutboundMode};
use operations::{Outbound, ports::HandoverOutcome, sending::worker};
use serde_json::{Value, json};
use testkit::{Engine, Hop, Server, ServerOptions, both_engines};

use super::mails::{Inbox, message, plain, texts};

pub(super) async fn server(engine: Engine, mode: OutboundMode) -> (Server, Hop) {
    let hop = Hop::default();
    let mut outbound = Outbound::new(mode);
    outbound.send_window = Duration::from_millis(300);
    let options = ServerOptions { outbound, next_hop: Some(hop.clone()), ..ServerOptions::default() };
    (Server::with(engine, options).await, hop)
}

pub(super) fn mail(to: impl Into<Value>) -> Value {
    json!({ "to": to.into(), "subject": "Out", "text": "Hello" })
}

/// Lets a mailbox pass its mail on.
pub(super) async fn forward(inbox: &Inbox, to: &str) {
    let settings = json!({ "settings": { "forwarding": { "enabled": true, "email": to } } });
    inbox.key.put(&inbox.path, settings).await.ok();
}

async fn kinds(inbox: &Inbox) -> Vec<String> {
    let path = format!("/api/v1/workspaces/{}/events?limit=500", inbox.workspace);
    texts(&inbox.key.get(&path).await.ok()["events"], "type")
}

pub(super) async fn states(inbox: &Inbox, id: &str) -> (Value, Vec<String>) {
    let delivery = inbox.get(&format!("emails/{id}/delivery")).await;
    (delivery["delivery_status"].clone(), texts(&delivery["recipients"], "state"))
}

// rules: SEND-6, SEND-8, SEND-9, SEND-12
#[both_engines]
async fn sent_means_that_the_next_host_has_taken_it(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    // Nobody works on the queue: it stays there.
    let sent = inbox.post("emails", mail(json!(["a@remote.test", inbox.address.clone()]))).await.ok();
    assert_eq!(sent["status"], "queued");
    let id = sent["id"].as_str().unwrap().to_owned();
    assert_eq!(states(&inbox, &id).await, (json!("queued"), vec!["queued".to_owned(), "sent".to_owned()]));
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(states(&inbox, &id).await.0, "sent");
    assert_eq!(inbox.get(&format!("emails/{id}")).await["delivery_status"], "sent");
    let handed = hop.handovers();
    assert_eq!(handed.len(), 1);
    assert_eq!(
        (handed[0].sender.as_deref(), handed[0].recipients.as_slice()),
        (Some(inbox.address.as_str()), &["a@remote.test".to_owned()][..])
    );
    let delivery = inbox.get(&format!("emails/{id}/delivery")).await;
    assert_eq!(
        (&delivery["recipients"][0]["last_reply"], &delivery["recipients"][0]["attempts"]),
        (&json!("250 2.0.0 Taken"), &json!(1))
    );
    assert_eq!(kinds(&inbox).await.last().unwrap(), "message.sent");
    // With somebody at work the answer waits for it, unless the caller does not want to wait.
    let worker = {
        let app = server.app.clone();
        tokio::spawn(async move {
            loop {
                worker::run_due(&app).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    let key = inbox.key.with("idempotency-key", "one");
    let path = format!("{}/emails", inbox.path);
    let first = key.post(&path, mail(json!("b@remote.test"))).await;
    assert_eq!(first.ok()["status"], "sent");
    let again = key.post(&path, mail(json!("b@remote.test"))).await;
    assert_eq!((again.header("idempotent-replayed"), again.text()), ("true", first.text()));
    hop.slow_down("(relay)", Duration::from_secs(1));
    let at_once = inbox.key.with("prefer", "respond-async").post(&path, mail(json!("c@remote.test"))).await;
    assert_eq!(at_once.ok()["status"], "queued");
    worker.abort();
}

/// A recipient that is put off beyond the window keeps the caller no longer than it takes to learn of it.
/// rules: SEND-6
#[both_engines]
async fn nobody_waits_for_what_is_put_off(engine: Engine) {
    let hop = Hop::default();
    let mut outbound = Outbound::new(OutboundMode::Relay);
    outbound.send_window = Duration::from_secs(40);
    let options = ServerOptions { outbound, next_hop: Some(hop.clone()), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    hop.answer("slow@remote.test", HandoverOutcome::Deferred("451 4.3.0 Not now".to_owned()));
    let working = async {
        while hop.handovers().is_empty() {
            worker::run_due(&server.app).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let sending = inbox.post("emails", mail("slow@remote.test"));
    let both = async { tokio::join!(sending, working).0 };
    let sent = tokio::time::timeout(Duration::from_secs(20), both).await.expect("it does not wait").ok();
    assert_eq!(sent["status"], "queued");
}

// rules: SEND-7, SEND-9, SEND-10
#[both_engines]
async fn what_is_put_off_is_tried_for_two_days_and_then_comes_back(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Direct).await;
    let inbox = Inbox::new(&server).await;
    let key = inbox.key.with("prefer", "respond-async");
    let sent = key.post(&format!("{}/emails", inbox.path), mail(json!("slow@remote.test"))).await.ok();
    let id = sent["id"].as_str().unwrap().to_owned();
    for _ in 0..100 {
        hop.answer("slow@remote.test", HandoverOutcome::Deferred("451 4.3.0 Not now".to_owned()));
    }
    let start = server.clock.now();
    let (mut pauses, mut last) = (Vec::new(), 0);
    loop {
        worker::run_due(&server.app).await.unwrap();
        let delivery = inbox.get(&format!("emails/{id}/delivery")).await;
        let recipient = &delivery["recipients"][0];
        if recipient["state"] != "queued" {
            break;
        }
        assert_eq!(recipient["last_reply"], "451 4.3.0 Not now");
        let next = recipient["next_attempt_at"].as_str().unwrap();
        server.clock.set(next);
        let passed = (server.clock.now().as_micros() - start.as_micros()) / 1_000_000;
        pauses.push(passed - last);
        last = passed;
        assert!(pauses.len() < 60, "{pauses:?}");
    }
    assert!((47 * 3600..=48 * 3600 + 1).contains(&last), "{pauses:?}");
    assert!(pauses[0] >= 48 && pauses[0] <= 72 && pauses[5] > pauses[1] * 5, "{pauses:?}");
    assert_eq!(states(&inbox, &id).await, (json!("bounced"), vec!["bounced".to_owned()]));
    // All attempts were the same mail.
    let ids: Vec<String> = hop
        .handovers()
        .iter()
        .map(|one| {
            let text = String::from_utf8_lossy(&one.message).into_owned();
            text.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned()
        })
        .collect();
    assert!(ids.iter().all(|one| *one == ids[0]) && ids[0].contains(sent["message_id"].as_str().unwrap()));
    assert_eq!(kinds(&inbox).await.iter().filter(|kind| *kind == "message.deferred").count(), 1);
    assert_report(&inbox, &sent, "slow@remote.test").await;
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(inbox.get("emails?folder=inbox").await["totalCount"], 1, "one report");
}

/// A delivery report lies in the mailbox, in the thread of the mail.
async fn assert_report(inbox: &Inbox, sent: &Value, recipient: &str) {
    let list = inbox.get("emails?folder=inbox").await;
    let report = inbox.get(&format!("emails/{}", list["emails"][0]["id"].as_str().unwrap())).await;
    assert_eq!(report["thread_id"], sent["thread_id"], "{report}");
    assert_eq!(report["provider_metadata"]["automatic"], "delivery_report", "{report}");
    assert!(report["body"].as_str().unwrap().contains(recipient), "{report}");
}

// rules: SEND-7, SEND-8
#[both_engines]
async fn a_refusal_is_final_and_is_told_once(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    hop.answer("no@remote.test", HandoverOutcome::Refused("550 5.1.1 Nobody here".to_owned()));
    hop.answer("later@remote.test", HandoverOutcome::Deferred("450 4.2.1 Busy".to_owned()));
    let key = inbox.key.with("prefer", "respond-async");
    let to = json!(["no@remote.test", "yes@remote.test", "later@remote.test"]);
    let sent = key.post(&format!("{}/emails", inbox.path), mail(to)).await.ok();
    let id = sent["id"].as_str().unwrap().to_owned();
    worker::run_due(&server.app).await.unwrap();
    let (status, each) = states(&inbox, &id).await;
    assert_eq!(
        (status, each),
        (json!("queued"), vec!["bounced".to_owned(), "sent".to_owned(), "queued".to_owned()])
    );
    assert_eq!(inbox.get("emails?folder=inbox").await["totalCount"], 0, "not before everything is known");
    server.clock.advance(120);
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(states(&inbox, &id).await.0, "partial");
    assert_report(&inbox, &sent, "no@remote.test").await;
    let told = kinds(&inbox).await;
    for kind in ["message.bounced", "message.deferred", "message.sent"] {
        assert_eq!(told.iter().filter(|one| *one == kind).count(), 1, "{told:?}");
    }
    // A mail that is deleted while it waits still goes.
    let sent = key.post(&format!("{}/emails", inbox.path), mail(json!("x@remote.test"))).await.ok();
    inbox.delete(&format!("emails/{}?permanent=true", sent["id"].as_str().unwrap())).await.ok();
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().last().unwrap().recipients, ["x@remote.test"]);
    let left = server.app.db().read(&inbox.workspace, async |tx| {
        tx.one::<(i64,)>("SELECT count(*) FROM outbound WHERE workspace_id = $1 AND email_id IS NULL", &[])
            .await
    });
    assert_eq!(left.await.unwrap().unwrap().0, 0);
}

// rules: SEND-15
#[both_engines]
async fn a_slow_destination_delays_no_other(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Direct).await;
    let inbox = Inbox::new(&server).await;
    hop.slow_down("tar.test", Duration::from_secs(30));
    let key = inbox.key.with("prefer", "respond-async");
    let path = format!("{}/emails", inbox.path);
    for n in 0..12 {
        key.post(&path, mail(json!(format!("{n}@tar.test")))).await.ok();
    }
    let tasks = worker::start_due(&server.app).await.unwrap();
    assert!((1..=4).contains(&tasks.len()), "{} connections to one destination", tasks.len());
    let sent = key.post(&path, mail(json!("quick@fast.test"))).await.ok();
    for task in worker::start_due(&server.app).await.unwrap() {
        task.await.unwrap();
    }
    assert_eq!(states(&inbox, sent["id"].as_str().unwrap()).await.0, "sent");
    for task in tasks {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    // Mail that no connection was at goes on at once, the other a minute later.
    hop.slow_down("tar.test", Duration::ZERO);
    let before = hop.handovers().len();
    for task in worker::start_due(&server.app).await.unwrap() {
        task.await.unwrap();
    }
    assert_eq!(hop.handovers().len(), before + 8);
    // One that cannot be reached rests, for all its mail.
    hop.answer("a@gone.test", HandoverOutcome::Unreachable("No route".to_owned()));
    key.post(&path, mail(json!("a@gone.test"))).await.ok();
    worker::start_due(&server.app).await.unwrap().pop().unwrap().await.unwrap();
    key.post(&path, mail(json!("b@gone.test"))).await.ok();
    let before = hop.handovers().len();
    assert!(worker::start_due(&server.app).await.unwrap().is_empty());
    server.clock.advance(60);
    for task in worker::start_due(&server.app).await.unwrap() {
        task.await.unwrap();
    }
    assert!(hop.handovers()[before..].iter().any(|one| one.recipients == ["b@gone.test"]));
}

// rules: SEND-15
#[both_engines]
async fn one_connection_asks_whether_a_destination_can_be_reached_again(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Direct).await;
    let inbox = Inbox::new(&server).await;
    let key = inbox.key.with("prefer", "respond-async");
    let path = format!("{}/emails", inbox.path);
    hop.answer("0@gone.test", HandoverOutcome::Unreachable("No route".to_owned()));
    key.post(&path, mail(json!("0@gone.test"))).await.ok();
    worker::run_due(&server.app).await.unwrap();
    for n in 1..9 {
        key.post(&path, mail(json!(format!("{n}@gone.test")))).await.ok();
    }
    server.clock.advance(90);
    hop.slow_down("gone.test", Duration::from_millis(20));
    let probe = worker::start_due(&server.app).await.unwrap();
    assert_eq!(probe.len(), 1, "one asks first");
    assert!(worker::start_due(&server.app).await.unwrap().is_empty(), "and the others wait for it");
    for task in probe {
        task.await.unwrap();
    }
    worker::run_due(&server.app).await.unwrap();
    // It rests no longer, so that others join.
    for n in 10..18 {
        key.post(&path, mail(json!(format!("{n}@gone.test")))).await.ok();
    }
    assert_eq!(worker::start_due(&server.app).await.unwrap().len(), 4);
}

// rules: SEND-15
#[both_engines]
async fn a_mail_that_takes_long_keeps_no_other_from_its_destination(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Direct).await;
    let inbox = Inbox::new(&server).await;
    hop.slow_down("0@tar.test", Duration::from_mins(1));
    let key = inbox.key.with("prefer", "respond-async");
    for n in 0..12 {
        key.post(&format!("{}/emails", inbox.path), mail(json!(format!("{n}@tar.test")))).await.ok();
    }
    let tasks = worker::start_due(&server.app).await.unwrap();
    let all_others = async {
        while hop.handovers().len() < 11 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all_others).await.unwrap();
    for task in tasks {
        task.abort();
    }
}

// rules: SEND-12
#[both_engines]
async fn the_sandbox_takes_everything_and_sends_nothing(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Sandbox).await;
    let inbox = Inbox::new(&server).await;
    let sent = inbox.post("emails", mail(json!("a@remote.test"))).await.ok();
    assert_eq!(sent["status"], "sent");
    let id = sent["id"].as_str().unwrap();
    assert_eq!(states(&inbox, id).await, (json!("sandboxed"), vec!["sandboxed".to_owned()]));
    worker::run_due(&server.app).await.unwrap();
    assert!(hop.handovers().is_empty());
}

pub(super) fn bounce(message_id: &str, recipient: &str, action: &str) -> String {
    let headers = "From: mailer-daemon@remote.test\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary=cut";
    let body = format!(
        "--cut\r\nContent-Type: text/plain\r\n\r\nSorry.\r\n--cut\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; remote.test\r\n\r\nFinal-Recipient: rfc822; {recipient}\r\nAction: {action}\r\nStatus: 5.1.1\r\n\
         --cut\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <{message_id}>\r\nSubject: Out\r\n\r\n--cut--\r\n"
    );
    message(&format!("Report {action}"), headers, &body)
}

// rules: SEND-8
#[both_engines]
async fn reports_that_come_in_move_the_status_of_what_was_really_sent(engine: Engine) {
    let (server, _) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let key = inbox.key.with("prefer", "respond-async");
    let to = json!(["a@remote.test", "b@remote.test"]);
    let sent = key.post(&format!("{}/emails", inbox.path), mail(to)).await.ok();
    let (id, message_id) = (sent["id"].as_str().unwrap(), sent["message_id"].as_str().unwrap());
    worker::run_due(&server.app).await.unwrap();
    let report = async |raw: String| server.try_receive(None, &inbox.address, raw).await.unwrap();
    // Nothing that was not sent, and nobody it was not sent to.
    report(bounce("made.up@agents.test", "a@remote.test", "failed")).await;
    report(bounce(message_id, "c@remote.test", "failed")).await;
    assert_eq!(states(&inbox, id).await.0, "sent");
    let delivered = report(bounce(message_id, "a@remote.test", "delivered")).await;
    assert_eq!(states(&inbox, id).await, (json!("sent"), vec!["delivered".to_owned(), "sent".to_owned()]));
    let shown = inbox.get(&format!("emails/{delivered}")).await;
    assert_eq!(shown["thread_id"], sent["thread_id"]);
    report(bounce(message_id, "b@remote.test", "failed")).await;
    assert_eq!(states(&inbox, id).await.0, "partial");
    assert_eq!(inbox.get(&format!("emails/{id}")).await["delivery_status"], "partial");
    let complaint = message(
        "Complaint",
        "From: fbl@remote.test\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=feedback-report; boundary=cut",
        &format!(
            "--cut\r\nContent-Type: text/plain\r\n\r\nAbuse.\r\n--cut\r\nContent-Type: message/feedback-report\r\n\r\n\
                 Feedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <a@remote.test>\r\n\r\n\
                 --cut\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <{message_id}>\r\n\r\n--cut--\r\n"
        ),
    );
    report(complaint).await;
    assert_eq!(states(&inbox, id).await.0, "complained");
    let told = kinds(&inbox).await;
    for kind in ["message.delivered", "message.bounced", "message.complained"] {
        assert_eq!(told.iter().filter(|one| *one == kind).count(), 1, "{told:?}");
    }
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(inbox.get("emails?folder=inbox").await["totalCount"], 5, "no report of our own on top");
}

/// The sender of a copy is the mailbox's own domain, for SPF, and leads back to whoever wrote the mail.
async fn report_about_copy_goes_back(server: &Server, hop: &Hop, inbox: &Inbox) {
    let sender = hop.handovers()[0].sender.clone().unwrap();
    let (local, domain) = inbox.address.split_once('@').unwrap();
    assert!(
        sender.starts_with(&format!("{local}+SRS0=")) && sender.ends_with(&format!("@{domain}")),
        "{sender}"
    );
    assert!(sender.contains("=remote.test=sender@"), "{sender}");
    server.try_receive(None, &sender, plain("Undelivered", "Text")).await.unwrap();
    // A sender that we did not write leads to nobody, and neither does an ordinary mail.
    let forged = sender.replace("=sender@", "=victim@");
    server.try_receive(None, &forged, plain("Forged", "Text")).await.unwrap();
    worker::run_due(&server.app).await.unwrap();
    let handed = hop.handovers();
    let mut back: Vec<_> =
        handed[1..].iter().map(|one| (one.sender.clone(), one.recipients.clone())).collect();
    // They leave at the same time, in any order.
    back.sort();
    let expected =
        [(None, vec!["home@remote.test".to_owned()]), (None, vec!["sender@remote.test".to_owned()])];
    assert_eq!(back, expected, "the second is a copy like any other");
}

// rules: SEND-29, SEND-33
#[both_engines]
async fn copies_go_on_and_never_round(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    forward(&one, "home@remote.test").await;
    server.receive(&one.address, plain("Copy me", "Text")).await;
    one.import("message/rfc822", plain("Old", "imported")).await.ok();
    worker::run_due(&server.app).await.unwrap();
    let handed = hop.handovers();
    assert_eq!((handed.len(), handed[0].recipients.as_slice()), (1, &["home@remote.test".to_owned()][..]));
    let text = String::from_utf8_lossy(&handed[0].message).into_owned();
    assert!(text.starts_with("Received: by mx.agents.test;") && text.contains("Subject: Copy me"), "{text}");
    report_about_copy_goes_back(&server, &hop, &one).await;
    // Two mailboxes that pass their mail to each other: each gets it once.
    forward(&one, &two.address).await;
    forward(&two, &one.address).await;
    server.receive(&one.address, plain("Round", "Text")).await;
    for _ in 0..5 {
        worker::run_due(&server.app).await.unwrap();
    }
    let count = async |inbox: &Inbox| inbox.search("subject:Round").await.len();
    assert_eq!((count(&one).await, count(&two).await), (2, 1), "there, and back once");
    forward(&one, &one.address.replace('@', "+x@")).await;
    server.receive(&one.address, plain("Self", "Text")).await;
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(one.search("subject:Self").await.len(), 1);
    assert_eq!(hop.handovers().len(), 3);
}

// rules: SEND-30
#[both_engines]
async fn an_automatic_answer_goes_once_a_week_and_never_to_machines(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let settings = json!({ "settings": { "autoReply": { "enabled": true, "subject": "Away", "message": "Back soon." } } });
    inbox.key.put(&inbox.path, settings.clone()).await.ok();
    let bring = async |from: Option<&str>, subject: &str, headers: &str| {
        let raw = message(subject, headers, "Hi\r\n").replace("me@agents.test", &inbox.address);
        server.try_receive(from, &inbox.address, raw).await.unwrap();
        worker::run_due(&server.app).await.unwrap();
        hop.handovers().len()
    };
    assert_eq!(bring(Some("ann@remote.test"), "First", "").await, 1);
    let answer = hop.handovers()[0].clone();
    assert_eq!((answer.sender, answer.recipients), (None, vec!["ann@remote.test".to_owned()]));
    let text = String::from_utf8_lossy(&answer.message).into_owned();
    for line in
        ["Auto-Submitted: auto-replied", "Subject: Away", "In-Reply-To: <First@remote.test>", "Back soon."]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(bring(Some("Ann@remote.test"), "Second", "").await, 1, "once a week");
    for (from, subject, headers) in [
        (None, "Null", ""),
        (Some("bob@remote.test"), "Auto", "Auto-Submitted: auto-generated"),
        (Some("bob@remote.test"), "List", "List-Id: <l.remote.test>"),
        (Some("bob@remote.test"), "Bulk", "Precedence: bulk"),
        (Some("mailer-daemon@remote.test"), "Daemon", ""),
        (Some("no-reply@remote.test"), "Machine", ""),
        (Some(inbox.address.as_str()), "Own", ""),
    ] {
        assert_eq!(bring(from, subject, headers).await, 1, "{subject}");
    }
    // An answer that cannot be written keeps no mail out.
    let long = json!({ "enabled": true, "subject": "\u{6f22}".repeat(200), "message": "Back soon." });
    inbox.key.put(&inbox.path, json!({ "settings": { "autoReply": long } })).await.ok();
    assert_eq!(bring(Some("dora@remote.test"), "Long", "").await, 1);
    assert_eq!(inbox.search("subject:Long").await.len(), 1);
    inbox.key.put(&inbox.path, settings.clone()).await.ok();
    // Not named in it: a blind copy tells nobody that somebody reads it.
    server.try_receive(Some("eve@remote.test"), &inbox.address, plain("Blind", "x")).await.unwrap();
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 1);
    server.clock.advance(7 * 86_400);
    assert_eq!(bring(Some("ann@remote.test"), "Third", "").await, 2);
}

// rules: SEND-28
#[both_engines]
async fn an_invitation_goes_out_as_a_mail(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let tenant = server.tenant(Plan::Developer).await;
    let path = format!("/api/v1/workspaces/{}/invites", tenant.workspace);
    let invite = tenant.key.post(&path, json!({ "email": "guest@people.test" })).await.ok();
    worker::run_due(&server.app).await.unwrap();
    let handed = hop.handovers();
    assert_eq!((handed.len(), handed[0].recipients.as_slice()), (1, &["guest@people.test".to_owned()][..]));
    let text = String::from_utf8_lossy(&handed[0].message).replace("=\r\n", "").replace("=3D", "=");
    assert!(text.contains(invite["link"].as_str().unwrap()), "{text}");
    let resend = format!("{path}/{}/resend", invite["id"].as_str().unwrap());
    tenant.key.post(&resend, json!({})).await.ok();
    worker::run_due(&server.app).await.unwrap();
    assert_eq!(hop.handovers().len(), 2);
    // Nothing is left behind.
    let left = server.app.db().read(&tenant.workspace, async |tx| {
        tx.one::<(i64,)>("SELECT count(*) FROM content WHERE workspace_id = $1", &[]).await
    });
    assert_eq!(left.await.unwrap().unwrap().0, 0);
}
