//! `kill -9` while messages are sent and their counters are folded: what was acknowledged is sent and counted, once.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Home, Server,
    mail::Inbox,
    outbound::{Sink, relaying},
    text, try_post,
};

/// Callers that send at the same time.
const CALLERS: usize = 8;
const ROUNDS: usize = 4;

/// A message by its subject, which is also its idempotency key.
struct Attempt {
    inbox: usize,
    subject: String,
    /// False while it is unknown whether it was accepted.
    accepted: bool,
}

fn try_send(server: &Server, inbox: &Inbox, subject: &str) -> Option<(u16, String)> {
    let input = json!({ "to": "out@remote.test", "subject": subject, "text": "x" });
    try_post(server.address, &inbox.key, &format!("{}/emails", inbox.path), subject, &input)
}

/// Sends from several callers and kills the server in the middle of it.
fn one_round(server: &Server, inboxes: &[Inbox], round: usize) -> Vec<Attempt> {
    let (stop, next, accepted) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let history = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let (inbox, subject) = (number % inboxes.len(), format!("s-{round}-{number}"));
                    let outcome = try_send(server, &inboxes[inbox], &subject);
                    let known = outcome.is_some();
                    if let Some((status, body)) = outcome {
                        assert_eq!(status, 202, "{body}");
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                    history.lock().unwrap().push(Attempt { inbox, subject, accepted: known });
                    if !known {
                        break;
                    }
                }
            });
        }
        // A different number each time, so that the kills fall into different moments.
        let started = Instant::now();
        while accepted.load(Ordering::SeqCst) < 30 + 17 * round && started.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        server.signal("KILL");
        stop.store(true, Ordering::SeqCst);
    });
    history.into_inner().unwrap()
}

/// The messages of this month and of the days, as the usage pages count them.
fn counted(server: &Server, inbox: &Inbox) -> (Value, u64) {
    let usage = |rest: &str| {
        let path = format!("/api/v1/workspaces/{}/usage/{rest}", inbox.workspace);
        server.call(&inbox.key, "GET", &path, &Value::Null).json()
    };
    let history = usage("history?days=2");
    let days = history["days"].as_array().unwrap().iter();
    (usage("email")["used"].clone(), days.map(|day| day["mails_out"].as_u64().unwrap()).sum())
}

/// rules: SEND-6, STORE-1, IDEM-8, METER-2
#[test]
fn kill_9_during_sends_loses_none_and_counts_each_once() {
    for home in Home::on_each_engine() {
        let sink = Sink::start();
        let home = relaying(home, &sink);
        let mut server = home.serve();
        let one = Inbox::new(&home, &server, "enterprise");
        let two = Inbox::add(&server, one.workspace.clone(), one.key.clone());
        let inboxes = [one, two];
        let mut history = Vec::new();
        for round in 0..ROUNDS {
            history.extend(one_round(&server, &inboxes, round));
            server.wait(Duration::from_secs(5));
            server = home.serve();
        }
        let unknown = history.iter().filter(|attempt| !attempt.accepted).count();
        println!("{} messages, {unknown} of them unanswered", history.len());
        assert!(history.len() > unknown + 50, "too few messages to tell");
        // Sending once more with the same key settles what is unknown, and changes nothing of what is not.
        for attempt in &history {
            let (status, body) = try_send(&server, &inboxes[attempt.inbox], &attempt.subject).unwrap();
            assert_eq!(status, 202, "{}: {body}", attempt.subject);
        }
        let mut kept: HashMap<String, u32> = HashMap::new();
        for inbox in &inboxes {
            for mail in inbox.list(&server) {
                *kept.entry(text(&mail, "subject")).or_default() += 1;
            }
        }
        for attempt in &history {
            assert_eq!(kept.remove(&attempt.subject), Some(1), "{}", attempt.subject);
        }
        assert!(kept.is_empty(), "never sent: {kept:?}");
        let expected = history.len() as u64;
        assert_eq!(counted(&server, &inboxes[0]), (json!(expected), expected));
        check_folded(&home, &mut server, &inboxes[0], expected);
        server.stop();
    }
}

/// The figures stay the same until everything is folded, also when the server is killed meanwhile.
fn check_folded(home: &Home, server: &mut Server, inbox: &Inbox, expected: u64) {
    for _ in 0..3 {
        server.signal("KILL");
        server.wait(Duration::from_secs(5));
        *server = home.serve();
        assert_eq!(counted(server, inbox), (json!(expected), expected));
    }
}
