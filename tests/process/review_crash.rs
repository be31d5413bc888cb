//! `kill -9` while messages are sent under a policy and people decide about them: a decision is whole or was not made, and
//! nothing leaves that nobody let out.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
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

/// Messages that people decide about, and people who do it at the same time.
const MESSAGES: usize = 90;
const PEOPLE: usize = 6;
const ROUNDS: usize = 3;

/// A message in review.
struct Asked {
    subject: String,
    review: String,
    digest: String,
}

impl Asked {
    /// Half of them are approved, the others rejected.
    fn is_good(&self) -> bool {
        self.subject.ends_with("good")
    }
}

fn send(server: &Server, inbox: &Inbox, to: &str, subject: &str) -> Option<(u16, String)> {
    let input = json!({ "to": to, "subject": subject, "text": "x" });
    try_post(server.address, &inbox.key, &format!("{}/emails", inbox.path), subject, &input)
}

fn ask(server: &Server, inbox: &Inbox, number: usize) -> Asked {
    let subject = format!("m-{number}-{}", if number.is_multiple_of(2) { "good" } else { "bad" });
    let (status, body) = send(server, inbox, "out@remote.test", &subject).unwrap();
    assert_eq!(status, 202, "{body}");
    let sent: Value = serde_json::from_str(&body).unwrap();
    let review = text(&sent, "review_id");
    let digest = text(&state(server, inbox, &review), "digest");
    Asked { subject, review, digest }
}

fn state(server: &Server, inbox: &Inbox, review: &str) -> Value {
    let path = format!("/api/v1/workspaces/{}/reviews/{review}", inbox.workspace);
    let answer = server.call(&inbox.key, "GET", &path, &Value::Null);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// Decides about messages from several threads, with messages that the policy forbids in between, and kills the server in the
/// middle of it. Returns the reviews whose decisions were answered.
fn one_round(
    server: &Server,
    inbox: &Inbox,
    (decider, round): (&str, usize),
    pending: &[&Asked],
) -> BTreeSet<String> {
    let (next, answered) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..PEOPLE {
            scope.spawn(|| {
                while let Some(asked) = pending.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let (rest, body) = if asked.is_good() {
                        ("approve", json!({ "digest": asked.digest }))
                    } else {
                        ("reject", json!({}))
                    };
                    let path =
                        format!("/api/v1/workspaces/{}/reviews/{}/{rest}", inbox.workspace, asked.review);
                    let name = format!("{round}-{}", asked.subject);
                    match try_post(server.address, decider, &path, &name, &body) {
                        Some((status, body)) => assert_eq!(status, 200, "{body}"),
                        None => break,
                    }
                    answered.lock().unwrap().insert(asked.review.clone());
                    if let Some((status, body)) =
                        send(server, inbox, "a@never.test", &format!("never-{name}"))
                    {
                        assert_eq!(status, 403, "{body}");
                    }
                }
            });
        }
        let started = Instant::now();
        let enough = 7 + 9 * round;
        while answered.lock().unwrap().len() < enough.min(pending.len()) {
            assert!(started.elapsed() < Duration::from_mins(1), "the decisions take too long");
            std::thread::sleep(Duration::from_millis(2));
        }
        server.signal("KILL");
    });
    answered.into_inner().unwrap()
}

/// rules: REVIEW-2, REVIEW-6, POLICY-10, STORE-1
#[test]
fn kill_9_during_decisions_keeps_each_whole() {
    for home in Home::on_each_engine() {
        let sink = Sink::start();
        let home = relaying(home, &sink);
        let mut server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let (_, decider) = home.create_key(&inbox.workspace, &[]);
        let path = format!("/api/v1/workspaces/{}/send-policy", inbox.workspace);
        let policy = json!({ "review": "all", "recipients": { "block": ["@never.test"] } });
        assert_eq!(server.call(&decider, "PUT", &path, &policy).status, 200);
        let all: Vec<Asked> = (0..MESSAGES).map(|number| ask(&server, &inbox, number)).collect();
        let mut pending: Vec<&Asked> = all.iter().collect();
        for round in 0..ROUNDS {
            let answered = one_round(&server, &inbox, (&decider, round), &pending);
            server.wait(Duration::from_secs(5));
            server = home.serve();
            pending.retain(|asked| check(&server, &inbox, asked, answered.contains(&asked.review)));
        }
        let decided = MESSAGES - pending.len();
        assert!(decided >= 3 * 7, "too few decisions to tell");
        let good: BTreeSet<&str> =
            all.iter().filter(|asked| asked.is_good()).map(|asked| asked.subject.as_str()).collect();
        let approved: BTreeSet<&str> = good
            .iter()
            .copied()
            .filter(|subject| !pending.iter().any(|asked| asked.subject == *subject))
            .collect();
        let subjects = || -> BTreeSet<String> {
            let line = |content: &str| {
                content.lines().find_map(|line| line.strip_prefix("Subject: ").map(ToOwned::to_owned))
            };
            sink.taken().iter().filter_map(|taken| line(&taken.content)).collect()
        };
        let started = Instant::now();
        while subjects().len() < approved.len() {
            assert!(started.elapsed() < Duration::from_mins(1), "approved messages do not leave");
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = subjects();
        let left: BTreeSet<&str> = left.iter().map(String::as_str).collect();
        assert_eq!(left, approved, "what was approved has left, and nothing else");
        server.stop();
    }
}

/// Checks that a message is where its review says, and returns whether nobody has decided about it.
fn check(server: &Server, inbox: &Inbox, asked: &Asked, was_answered: bool) -> bool {
    let review = state(server, inbox, &asked.review);
    let state = text(&review, "state");
    let folder = inbox.get(server, &format!("/emails/{}", text(&review, "email_id")))["folder_id"].clone();
    let decided = if asked.is_good() { ("approved", "sent") } else { ("rejected", "draft") };
    if state == "pending" {
        assert!(!was_answered, "{}: an answered decision is lost", asked.subject);
        assert_eq!(folder, "review");
        return true;
    }
    assert_eq!((state.as_str(), &folder), (decided.0, &json!(decided.1)), "{}", asked.subject);
    false
}
