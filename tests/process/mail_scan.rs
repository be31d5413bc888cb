//! Scanners beside the built-in one, as they are in real life: a clamd that answers, hangs or is gone, and block lists
//! that change.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::net::UnixListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Home, Server,
    mail::{Inbox, Smtp, message},
};

/// A clamd that knows one signature; gone when dropped.
struct Clamd {
    script: Child,
    socket: String,
    process: String,
}

impl Clamd {
    fn start() -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/clamd");
        let mut script = Command::new(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((socket, process)) = line.trim().split_once(' ') else {
            assert_eq!(script.wait().unwrap().code(), Some(3), "clamd does not start");
            println!("skipped: no clamd here");
            return None;
        };
        let (socket, process) = (socket.to_owned(), process.to_owned());
        Some(Self { script, socket, process })
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([&format!("-{name}"), &self.process]).status().unwrap().success());
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

fn send(server: &Server, inbox: &Inbox, subject: &str, words: &str) {
    let (code, reply) = Smtp::connect(server.smtp).send(&inbox.address, &message(subject, words)).unwrap();
    assert_eq!(code, 250, "{reply}");
}

/// Waits until a mail has a verdict.
fn judged(server: &Server, inbox: &Inbox, subject: &str, most: Duration) -> Value {
    let started = Instant::now();
    loop {
        let mail = inbox.only(server, subject);
        if !mail["scan_status"].is_null() {
            return mail;
        }
        assert!(started.elapsed() < most, "{subject} was never judged");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The kinds of the events that tell of a mail, and the scan status each told.
fn events(server: &Server, inbox: &Inbox, id: &Value) -> Vec<(String, Value)> {
    let path = format!("/api/v1/workspaces/{}/events", inbox.workspace);
    let log = server.call(&inbox.key, "GET", &path, &Value::Null).json();
    let of_mail = log["events"].as_array().unwrap().iter().filter(|event| event["data"]["email_id"] == *id);
    of_mail.map(|event| (super::text(event, "type"), event["data"]["scan_status"].clone())).collect()
}

/// rules: SCAN-1, SCAN-6, SCAN-8, SCAN-9, SCAN-10
#[test]
fn a_real_clamd_judges_mail() {
    for home in Home::on_each_engine() {
        let Some(clamd) = Clamd::start() else { return };
        let home = home.with("SCAN__CLAMD", &clamd.socket);
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        send(&server, &inbox, "Harmless", "nothing to see");
        let mail = judged(&server, &inbox, "Harmless", Duration::from_secs(10));
        assert_eq!(mail["scan_status"], "clean");
        let told = [("message.received", Value::Null), ("message.scanned", json!("clean"))];
        assert_eq!(
            events(&server, &inbox, &mail["id"]),
            told.map(|(kind, status)| (kind.to_owned(), status))
        );

        send(&server, &inbox, "Harmful", "here is FORBIDDEN-TOKEN-42 for you");
        let mail = judged(&server, &inbox, "Harmful", Duration::from_secs(10));
        assert_eq!(mail["scan_status"], "flagged", "{mail}");
        assert!(mail["scan_threats"].to_string().contains("Test.Token"), "{mail}");
        let raw = format!("{}/emails/{}/raw", inbox.path, mail["id"].as_str().unwrap());
        let withheld = server.call(&inbox.key, "GET", &raw, &Value::Null);
        assert_eq!((withheld.status, &withheld.json()["code"]), (403, &json!("content_withheld")));

        // It hangs: mail comes in all the same, and is not clean until it is judged.
        clamd.signal("STOP");
        send(&server, &inbox, "During", "patience");
        let during = inbox.only(&server, "During");
        assert_eq!(during["scan_status"], Value::Null);
        let context = inbox.get(&server, &format!("/emails/{}/context", during["id"].as_str().unwrap()));
        assert!(!context.to_string().contains("patience"), "{context}");
        clamd.signal("CONT");
        assert_eq!(judged(&server, &inbox, "During", Duration::from_secs(30))["scan_status"], "clean");

        drop(clamd);
        send(&server, &inbox, "After", "nobody looks");
        let mail = judged(&server, &inbox, "After", Duration::from_secs(10));
        assert_eq!(mail["scan_status"], "skipped");
        assert_eq!(events(&server, &inbox, &mail["id"]).last().unwrap().1, json!("skipped"));
    }
}

/// rules: SCAN-6
#[test]
fn a_scanner_that_never_answers_is_given_up() {
    let home = Home::sqlite();
    let socket = home.folder.path().join("clamd.sock");
    // It takes connections, and says nothing.
    let _mute = UnixListener::bind(&socket).unwrap();
    let home = home.with("SCAN__CLAMD", socket.to_str().unwrap());
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    let started = Instant::now();
    for number in 0..6 {
        send(&server, &inbox, &format!("Waiting {number}"), "still");
    }
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "mail waits for the scanner: {:?}",
        started.elapsed()
    );
    for number in 0..6 {
        let mail = judged(&server, &inbox, &format!("Waiting {number}"), Duration::from_mins(1));
        assert_eq!(mail["scan_status"], "skipped");
    }
    assert!(started.elapsed() < Duration::from_mins(1), "one after the other: {:?}", started.elapsed());
}

/// rules: SCAN-2, SCAN-7
#[test]
fn a_block_list_is_read_again_when_it_changes() {
    for home in Home::on_each_engine() {
        let list = home.folder.path().join("blocked.txt");
        fs::write(&list, "# hosts\nfirst-bad.test\n").unwrap();
        let home = home.with("SCAN__URL_BLOCKLIST", &format!("[\"{}\"]", list.display()));
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        send(&server, &inbox, "First", "see http://first-bad.test/x");
        assert_eq!(inbox.only(&server, "First")["scan_status"], "flagged");
        send(&server, &inbox, "Not yet", "see http://second-bad.test/x");
        assert_eq!(inbox.only(&server, "Not yet")["scan_status"], "clean");
        fs::write(&list, "second-bad.test\n").unwrap();
        let started = Instant::now();
        let mut number = 0;
        loop {
            let subject = format!("Second {number}");
            send(&server, &inbox, &subject, "see http://second-bad.test/x");
            if inbox.only(&server, &subject)["scan_status"] == "flagged" {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "the list was not read again");
            number += 1;
            std::thread::sleep(Duration::from_millis(500));
        }
        send(&server, &inbox, "Free again", "see http://first-bad.test/x");
        assert_eq!(inbox.only(&server, "Free again")["scan_status"], "clean");
        // Gone for a moment, as editors do it: the old list stays.
        fs::remove_file(&list).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        send(&server, &inbox, "Still", "see http://second-bad.test/x");
        assert_eq!(inbox.only(&server, "Still")["scan_status"], "flagged");
    }
}
