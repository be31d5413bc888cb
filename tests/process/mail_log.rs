//! The mail log of the real program: a message is followed through it, refusals are told of and counted, and nobody
//! outside writes a line of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Home, Server,
    mail::{Inbox, Smtp, message},
    outbound::{Sink, relaying},
    text,
};

/// The file that a server of this home logs into.
fn log(home: &Home) -> PathBuf {
    home.folder.path().join("log")
}

/// Waits until a line of the log has all of these, and gives it.
fn line_with(log: &Path, parts: &[&str]) -> String {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(log).unwrap();
        let found = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        if let Some(line) = found {
            return line.to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "no line with {parts:?}: {text}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What the store tells of a message once it has left the queue.
fn trace_when_sent(home: &Home, about: &str) -> Value {
    let started = Instant::now();
    loop {
        let traced = home.admin(&["trace", about]);
        if traced["sends"] == json!([]) {
            return traced;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "still queued: {traced}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The fields of a line in JSON.
fn line_in_json(log: &Path, parts: &[&str]) -> Value {
    serde_json::from_str(&line_with(log, parts)).unwrap()
}

/// The names of the fields of a line of text: what stands before an equals sign, outside of quotation marks.
fn names_in_text(line: &str) -> Vec<String> {
    let (_, fields) = line.split_once(" mail.").unwrap().1.split_once(": ").unwrap();
    let outside = fields.replace("\\\"", "").split('"').step_by(2).collect::<String>();
    let names = outside.split(' ').filter_map(|word| word.split_once('='));
    names.map(|(name, _)| name.to_owned()).collect()
}

fn forward_to(server: &Server, inbox: &Inbox, to: &str) {
    let settings = json!({ "settings": { "forwarding": { "enabled": true, "email": to } } });
    let set = server.call(&inbox.key, "PUT", &inbox.path, &settings);
    assert_eq!(set.status, 200, "{}", set.body);
}

/// By its Message-ID alone, from the client that brought it to what the next server said.
// rules: RECV-31, SEND-36, CLI-15
#[test]
fn a_message_is_followed_from_smtp_to_the_remote_reply() {
    for home in Home::on_each_engine() {
        let (sink, log) = (Sink::start(), log(&home));
        let home = relaying(home, &sink);
        let server = home.serve_with_log(&log);
        let inbox = Inbox::new(&home, &server, "enterprise");
        forward_to(&server, &inbox, "ann@remote.test");
        let mut client = Smtp::connect(server.smtp);
        let message = message("Unspeakable subject", "Unspeakable body");
        assert_eq!(client.send(&inbox.address, &message).unwrap().0, 250);
        let id = text(&inbox.only(&server, "Unspeakable subject"), "id");
        let about = "Unspeakable.subject@remote.test";
        line_with(&log, &[about, "mail.sent"]);
        let whole = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = whole.lines().filter(|line| line.contains(about)).collect();
        let [received, sent] = lines.as_slice() else { panic!("{whole}") };
        let address = format!("<{}> 250 2.0.0 Stored as {id}", inbox.address);
        for part in [
            " INFO smtp{session=\"smtp_",
            "mail.received: session=\"smtp_",
            " client=127.0.0.1:",
            " protocol=\"ESMTP\" tls=\"none\" helo=\"client.test\" from=\"ann@remote.test\"",
            &format!("recipients=\"{address}\" accepted=1 refused=0 size={}", message.len()),
            &format!("emails=\"{id}\" verdict=\"clean\""),
            &format!("result=\"stored\" reply=\"250 2.0.0 Stored as {id}\" seconds=0."),
        ] {
            assert!(received.contains(part), "{part} is not in {received}");
        }
        for part in [
            " INFO queue{queue_id=",
            "kind=\"forward\"",
            "to=\"ann@remote.test\" destination=\"(relay)\" host=\"127.0.0.1\"",
            &format!("address=\"{}\" tls=\"none\" result=\"sent\" reply=\"250 2.0.0 Taken\"", sink.address),
            "attempt=1 delay=",
        ] {
            assert!(sent.contains(part), "{part} is not in {sent}");
        }
        assert!(!whole.contains("Unspeakable subject") && !whole.contains("Unspeakable body"), "{whole}");
        // And from the store, while the server runs. An attempt is logged before it is stored; then the message is done.
        let traced = trace_when_sent(&home, about);
        assert_eq!(
            (&traced["emails"][0]["id"], &traced["emails"][0]["folder"]),
            (&json!(id), &json!("inbox"))
        );
        assert_eq!(home.admin(&["trace", &id]), traced);
        let shown = home.run(&["admin", "trace", &format!("<{about}>")]).succeeded().stdout;
        for part in [format!("Message-ID  <{about}>"), format!("in {}", inbox.address), "clean".to_owned()] {
            assert!(shown.contains(&part), "{part} is not in {shown}");
        }
        assert!(!shown.contains("Unspeakable subject"), "{shown}");
        let nothing = home.run(&["admin", "trace", "nobody@remote.test"]).failed(1);
        assert!(nothing.stderr.contains("Message not found"), "{}", nothing.stderr);
        let nothing = home.run(&["admin", "trace", "nobody@remote.test", "--json"]).failed(1);
        assert_eq!(nothing.json()["code"], json!("not_found"));
        server.stop();
    }
}

/// One server sends to another: both tell of the same encryption, and the reply names the email that it became.
// rules: RECV-31, SEND-36, CLI-15
#[test]
fn two_servers_tell_the_same_story() {
    let (one, two) = (Home::sqlite(), Home::sqlite());
    let (first_log, second_log) = (log(&one), log(&two));
    let two = two.with("LOG__FORMAT", "json");
    let second = two.serve_with_log(&second_log);
    let far = Inbox::new(&two, &second, "enterprise");
    let one = one
        .with("LOG__FORMAT", "json")
        .with("HOSTED_DOMAINS", "first.test")
        .with("OUTBOUND__MODE", "relay")
        .with("OUTBOUND__RELAY_URL", &format!("smtp://{}", second.smtp))
        .with("OUTBOUND__ALLOW_PRIVATE", "true");
    let first = one.serve_with_log(&first_log);
    let near = Inbox::new(&one, &first, "enterprise");
    let input = json!({ "to": far.address, "subject": "Out", "text": "Hello" });
    let sent = first.call(&near.key, "POST", &format!("{}/emails", near.path), &input).json();
    let (id, message_id) = (text(&sent, "id"), text(&sent, "message_id"));
    let submitted = line_in_json(&first_log, &["mail.submitted", &message_id]);
    assert_eq!((text(&submitted, "queue_id"), text(&submitted, "email_id")), (id.clone(), id.clone()));
    let told = line_in_json(&first_log, &["mail.sent", &message_id]);
    assert_eq!((text(&told, "result"), text(&told, "to")), ("sent".to_owned(), far.address.clone()));
    assert_eq!((&told["span"]["queue_id"], &told["queue_id"]), (&json!(id), &json!(id)));
    let heard = line_in_json(&second_log, &["mail.received", &message_id]);
    assert_eq!(heard["span"]["session"], heard["session"]);
    let arrived = text(&heard, "emails");
    assert_eq!(text(&far.only(&second, "Out"), "id"), arrived);
    assert_eq!(text(&told, "reply"), format!("250 2.0.0 Stored as {arrived}"));
    let tls = text(&heard, "tls");
    assert!(tls.starts_with("TLSv1"), "{tls}");
    assert_eq!(text(&told, "tls"), format!("{tls} unverified"));
    // The same by the word of the store, for people.
    let shown = one.run(&["admin", "trace", &message_id]).succeeded().stdout;
    assert!(shown.contains(&format!("{}  sent by (relay), 1 attempt", far.address)), "{shown}");
    assert!(shown.contains(&format!("250 2.0.0 Stored as {arrived}")), "{shown}");
    first.stop();
    second.stop();
}

// rules: RECV-31
#[test]
fn refusals_are_told_of_and_counted() {
    for home in Home::on_each_engine() {
        let log = log(&home);
        let home = home.with("SMTP__MAX_MESSAGE_BYTES", "200000");
        let server = home.serve_with_log(&log);
        let inbox = Inbox::new(&home, &server, "enterprise");
        let mut client = Smtp::connect(server.smtp);
        assert_eq!(client.say("MAIL FROM:<first@remote.test>"), 250);
        for to in ["nobody@agents.localhost", "x@elsewhere.test", "a%b@agents.localhost", "odd"] {
            assert!(client.say(&format!("RCPT TO:<{to}>")) >= 500, "{to}");
        }
        assert_eq!(client.say(&format!("RCPT TO:<{}>", inbox.address)), 250);
        assert_eq!(client.say("RSET"), 250);
        let line = line_with(&log, &["mail.received", "first@remote.test"]);
        for part in [
            "<nobody@agents.localhost> 550 5.1.1 There is no such mailbox here, ",
            "<x@elsewhere.test> 550 5.7.1 This server does not take mail for that domain, ",
            "<a%b@agents.localhost> 550 5.7.1 We do not relay, <odd> 501 5.1.3 ",
            &format!("<{}> 250 2.1.5 Ok\" accepted=1 refused=4 size=0 result=\"reset\"", inbox.address),
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert!(client.say("MAIL FROM:<large@remote.test> SIZE=99999999") >= 500);
        line_with(&log, &["mail.received", "large@remote.test", "result=\"refused\" reply=\"552 5.3.4"]);
        assert_eq!(client.say("MAIL FROM:<gone@remote.test>"), 250);
        drop(client);
        line_with(&log, &["mail.received", "gone@remote.test", "result=\"lost\""]);
        let metrics = server.get("/metrics", &[]).body;
        let counted: BTreeMap<&str, &str> = metrics
            .lines()
            .filter_map(|line| line.strip_prefix("smtp_recipients_refused_total{reason=\""))
            .filter_map(|line| line.split_once("\"} "))
            .filter(|(_, count)| *count != "0")
            .collect();
        let expected = BTreeMap::from([("address", "1"), ("relay", "2"), ("unknown", "1")]);
        assert_eq!(counted, expected, "{metrics}");
        server.stop();
    }
}

/// Whatever a client puts into names, addresses and headers, a line of the log is one that the server wrote.
// rules: RECV-31
#[test]
fn no_client_writes_a_line_of_its_own() {
    let forged = "INFO mail.sent: queue_id=forged";
    for format in ["text", "json"] {
        let home = Home::sqlite().with("LOG__FORMAT", format);
        let log = log(&home);
        let server = home.serve_with_log(&log);
        let inbox = Inbox::new(&home, &server, "enterprise");
        // Each in a session of its own: some of these end it.
        for said in [
            format!("HELO x\n{forged}\r\n"),
            format!("EHLO x\r{forged}\r\n"),
            format!("EHLO x\r\nMAIL FROM:<a@b.test\n{forged}>\r\n"),
            format!("EHLO x\r\nMAIL FROM:<a@b.test\u{85}{forged}>\r\n"),
            format!("EHLO x\r\nMAIL FROM:<\"a\u{2028}{forged}\"@b.test> SMTPUTF8\r\n"),
            format!("EHLO x\r\nMAIL FROM:<\"a\\\" {forged}\"@b.test>\r\n"),
            format!("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a\u{1b}[2K\u{2029}{forged}@b.test>\r\n"),
            format!("EHLO x\r\nMAIL FROM:<> SMTPUTF8\r\nRCPT TO:<a\u{202e}\u{2028}{forged}@b.test>\r\n"),
            format!(
                "EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<{}>\r\nDATA\r\nMessage-ID: <a\u{2028}b\u{1b}c\u{202e}@b.test>\r\n\
                 Subject: {forged}\r\n\r\nx\r\n.\r\n",
                inbox.address
            ),
        ] {
            let mut client = Smtp::try_connect(server.smtp, "NOOP").unwrap();
            let mut content = false;
            for line in said.split_inclusive("\r\n") {
                // Some are hung up on.
                let _ = client.write(line.as_bytes());
                content &= line != ".\r\n";
                if !content {
                    let _ = client.reply();
                }
                content |= line == "DATA\r\n";
            }
            let _ = client.write(b"QUIT\r\n");
            while client.reply().is_ok() {}
        }
        server.stop();
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.matches("mail.received").count() >= 6, "{text}");
        for line in text.lines() {
            assert!(
                !line.contains(|c: char| c.is_control() || "\u{2028}\u{2029}\u{202e}".contains(c)),
                "{line:?}"
            );
            assert!(!line.contains("Subject"), "{line}");
            let (level, target) = if format == "json" {
                let line: Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                (text_of(&line, "level"), text_of(&line, "target"))
            } else {
                let mut words = line.split_whitespace().skip(1);
                let level = words.next().unwrap_or_default().to_owned();
                let target =
                    words.find(|word| word.ends_with(':') && !word.contains('{')).unwrap_or_default();
                (level, target.trim_end_matches(':').to_owned())
            };
            assert!(["INFO", "WARN"].contains(&level.as_str()), "{line}");
            assert_ne!(target, "mail.sent", "{line}");
        }
    }
}

fn text_of(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

// rules: RECV-31
#[test]
fn a_line_has_the_same_fields_as_text_and_as_json() {
    let fields = |format: &str| -> Vec<String> {
        let home = Home::sqlite().with("LOG__FORMAT", format);
        let log = log(&home);
        let server = home.serve_with_log(&log);
        let inbox = Inbox::new(&home, &server, "enterprise");
        let sent = Smtp::connect(server.smtp).send(&inbox.address, &message("Fields", "Text"));
        assert_eq!(sent.unwrap().0, 250);
        let line = line_with(&log, &["mail.received"]);
        server.stop();
        let mut names = if format == "text" {
            names_in_text(&line)
        } else {
            let line: Value = serde_json::from_str(&line).unwrap();
            let beside = ["timestamp", "level", "target", "span", "spans"];
            let names = line.as_object().unwrap().keys().cloned();
            names.filter(|name| !beside.contains(&name.as_str())).collect()
        };
        names.sort();
        names
    };
    let in_text = fields("text");
    assert_eq!(in_text, fields("json"));
    assert_eq!(in_text.len(), 17, "{in_text:?}");
}
