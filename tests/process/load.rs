//! Mail and drafts that come all the time while something breaks, and what was acknowledged of them.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::Scope,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    Server,
    mail::{Inbox, Smtp, message},
    try_post,
};

/// Sessions that deliver at the same time, and callers that write drafts.
const SESSIONS: usize = 6;
const CALLERS: usize = 2;
/// Before something is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a test waits for anything.
pub const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// The clients of one node, and what it has acknowledged so far.
pub struct Load {
    name: &'static str,
    stop: AtomicBool,
    next: AtomicUsize,
    messages: Mutex<Vec<String>>,
    drafts: Mutex<Vec<String>>,
}

impl Load {
    /// Each of a test has another name.
    pub fn new(name: &'static str) -> Self {
        let (messages, drafts) = Default::default();
        Self { name, stop: false.into(), next: 0.into(), messages, drafts }
    }

    /// Starts the clients.
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        at: &'scope Addresses,
        inbox: &'scope Inbox,
    ) {
        for _ in 0..SESSIONS {
            scope.spawn(|| self.deliver(at, inbox));
        }
        for _ in 0..CALLERS {
            scope.spawn(|| self.write_drafts(at, inbox));
        }
    }

    /// Lets the clients end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn acknowledged(&self) -> usize {
        self.messages.lock().unwrap().len()
    }

    pub fn acknowledged_drafts(&self) -> usize {
        self.drafts.lock().unwrap().len()
    }

    fn runs(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Delivers messages, over a new connection after each failure.
    fn deliver(&self, at: &Addresses, inbox: &Inbox) {
        while self.runs() {
            let Ok(mut client) = Smtp::try_connect(at.smtp(), "EHLO") else {
                std::thread::sleep(PAUSE);
                continue;
            };
            while self.runs() {
                let subject = format!("{}-m-{}", self.name, self.number());
                match client.send(&inbox.address, &message(&subject, "some words")) {
                    Ok((250, _)) => self.messages.lock().unwrap().push(subject),
                    Ok((code, reply)) => {
                        assert_eq!(code / 100, 4, "it is put off, not refused: {reply}");
                        std::thread::sleep(PAUSE);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }

    /// Writes drafts, each until it is acknowledged.
    fn write_drafts(&self, at: &Addresses, inbox: &Inbox) {
        while self.runs() {
            let subject = format!("{}-d-{}", self.name, self.number());
            let body = json!({ "subject": subject, "body": "x", "to": ["a@remote.test"] });
            while self.runs() {
                let path = format!("{}/drafts", inbox.path);
                match try_post(at.http(), &inbox.key, &path, &subject, &body) {
                    Some((201, _)) => {
                        self.drafts.lock().unwrap().push(subject);
                        break;
                    }
                    Some((status, body)) => assert!([503, 409].contains(&status), "{status}: {body}"),
                    None => {}
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Waits until so many more messages are acknowledged, and returns how long that took.
    pub fn wait_for(&self, more: usize) -> Duration {
        let (wanted, started) = (self.acknowledged() + more, Instant::now());
        while self.acknowledged() < wanted {
            assert!(started.elapsed() < WAIT_LIMIT, "no message is taken by {}", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
        started.elapsed()
    }

    /// The same for drafts.
    pub fn wait_for_drafts(&self, more: usize) {
        let (wanted, started) = (self.acknowledged_drafts() + more, Instant::now());
        while self.acknowledged_drafts() < wanted {
            assert!(started.elapsed() < WAIT_LIMIT, "no draft is taken by {}", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Where a node is reached; another process may come in its place.
pub struct Addresses(Mutex<(std::net::SocketAddr, std::net::SocketAddr)>);

impl Addresses {
    pub fn of(server: &Server) -> Self {
        Self(Mutex::new((server.address, server.smtp)))
    }

    /// The addresses of a node that may not have started yet.
    pub fn at(http: std::net::SocketAddr, smtp: std::net::SocketAddr) -> Self {
        Self(Mutex::new((http, smtp)))
    }

    /// Lets the clients go to another process.
    pub fn change(&self, server: &Server) {
        *self.0.lock().unwrap() = (server.address, server.smtp);
    }

    fn http(&self) -> std::net::SocketAddr {
        self.0.lock().unwrap().0
    }

    fn smtp(&self) -> std::net::SocketAddr {
        self.0.lock().unwrap().1
    }
}

/// Stops the clients when it is dropped: a test that fails must not wait for them.
pub struct StopAtEnd<'a>(pub &'a [&'a Load]);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|load| load.stop());
    }
}

/// Every acknowledged message and draft is there, and no message twice.
pub fn check(server: &Server, inbox: &Inbox, loads: &[&Load]) {
    let mut stored: BTreeMap<String, usize> = BTreeMap::new();
    for mail in inbox.list(server) {
        *stored.entry(mail["subject"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(stored.values().all(|times| *times == 1), "{stored:?}");
    let listed = list_drafts(server, inbox);
    for load in loads {
        let messages = load.messages.lock().unwrap();
        let lost: Vec<&String> = messages.iter().filter(|subject| !stored.contains_key(*subject)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        let drafts = load.drafts.lock().unwrap();
        let lost: Vec<&String> = drafts.iter().filter(|subject| !listed.contains(subject)).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        println!(
            "{}: {} messages and {} drafts acknowledged; {} and {} are stored in all",
            load.name,
            messages.len(),
            drafts.len(),
            stored.len(),
            listed.len()
        );
    }
}

fn list_drafts(server: &Server, inbox: &Inbox) -> Vec<String> {
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = inbox.get(server, &format!("/drafts?limit=100{cursor}"));
        let drafts = page["drafts"].as_array().unwrap();
        listed.extend(drafts.iter().map(|draft| draft["subject"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return listed,
        }
    }
}
