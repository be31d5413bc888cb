//! `kill -9` in the middle of writes: nothing acknowledged is lost, nothing happens twice, and the books add up.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::json;

use super::{Home, Server, text, try_post};

/// One write: the name of a folder, which is also its idempotency key.
#[derive(Clone, Debug)]
struct Attempt {
    mailbox: String,
    name: String,
    /// The body of a 201; `None` while it is unknown whether the write happened.
    answer: Option<String>,
}

/// A call that may end in nothing, because the server is killed. `None` is unknown.
fn try_create(address: SocketAddr, key: &str, attempt: &Attempt) -> Option<(u16, String)> {
    let path = format!("/api/v1/mailboxes/{}/folders", attempt.mailbox);
    try_post(address, key, &path, &attempt.name, &json!({ "name": attempt.name }))
}

/// Writes from eight threads until told to stop, and notes what became of each.
fn write_until(
    stop: &AtomicBool,
    server: &Server,
    key: &str,
    mailboxes: &[String],
    round: u32,
) -> Vec<Attempt> {
    let (history, counter) = (Mutex::new(Vec::new()), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let number = counter.fetch_add(1, Ordering::SeqCst);
                    let mailbox = mailboxes[number as usize % mailboxes.len()].clone();
                    let mut attempt = Attempt { mailbox, name: format!("f-{round}-{number}"), answer: None };
                    match try_create(server.address, key, &attempt) {
                        Some((201, body)) => attempt.answer = Some(body),
                        Some((status, body)) => panic!("{status}: {body}"),
                        None => {}
                    }
                    let unknown = attempt.answer.is_none();
                    history.lock().unwrap().push(attempt);
                    if unknown {
                        break;
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(u64::from(150 + 97 * round % 400)));
        server.signal("KILL");
        stop.store(true, Ordering::SeqCst);
    });
    history.into_inner().unwrap()
}

/// rules: STORE-1, STORE-3, IDEM-8, METER-2, METER-6, CLI-12
#[test]
fn kill_9_during_writes_loses_nothing_and_does_nothing_twice() {
    for home in Home::on_each_engine() {
        let home =
            home.with("PLANS__DEVELOPER__RPM", "unlimited").with("PLANS__DEVELOPER__MAILBOXES", "unlimited");
        let workspace = home.create_account("owner@people.test", "developer");
        let (_, key) = home.create_key(&workspace, &[]);
        let mut server = home.serve();
        let mailboxes: Vec<String> = (0..8)
            .map(|_| {
                text(
                    &server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": "Box" })).json(),
                    "public_id",
                )
            })
            .collect();
        let mut history = Vec::new();
        for round in 0..6 {
            let stop = Arc::new(AtomicBool::new(false));
            history.extend(write_until(&stop, &server, &key, &mailboxes, round));
            server.wait(Duration::from_secs(5));
            server = home.serve();
            assert!(server.ready_after < Duration::from_secs(20), "{:?}", server.ready_after);
        }
        let unknown = history.iter().filter(|attempt| attempt.answer.is_none()).count();
        println!("{} writes, {unknown} of them unanswered", history.len());
        assert!(history.len() > unknown + 20, "too few writes to tell");
        check(&server, &key, &workspace, &mailboxes, &mut history);
    }
}

/// Every acknowledged write is there exactly once and answers the same again; repeating an unanswered one settles it.
fn check(server: &Server, key: &str, workspace: &str, mailboxes: &[String], history: &mut [Attempt]) {
    for attempt in history.iter_mut() {
        let (status, body) = try_create(server.address, key, attempt).unwrap();
        assert_eq!(status, 201, "{attempt:?}: {body}");
        match &attempt.answer {
            Some(known) => assert_eq!(*known, body, "another answer than before the crash"),
            None => attempt.answer = Some(body),
        }
    }
    let mut reads = 0;
    let mut present = Vec::new();
    for mailbox in mailboxes {
        let folders =
            server.call(key, "GET", &format!("/api/v1/mailboxes/{mailbox}/folders"), &json!(null)).json();
        reads += 1;
        let own = folders.as_array().unwrap().iter().filter(|folder| folder["system"] == false);
        present.extend(own.map(|folder| text(folder, "id")));
    }
    let mut expected: Vec<String> = history.iter().map(|attempt| attempt.name.clone()).collect();
    present.sort_unstable();
    expected.sort_unstable();
    assert_eq!(present, expected);
    let path = format!("/api/v1/workspaces/{workspace}/usage/credits");
    let used = server.call(key, "GET", &path, &json!(null)).json()["used"].as_u64().unwrap();
    let priced = 10 * mailboxes.len() + 2 * history.len() + reads + 1;
    assert_eq!(used, priced as u64, "the ledger does not add up");
}

/// Reads with a key until the pool is empty or `most` were answered; tells how many were.
fn read_some(server: &Server, key: &str, most: u32) -> u32 {
    (0..most).take_while(|_| server.status_with(key) == 200).fold(0, |answered, _| answered + 1)
}

/// A pool of a hundred serves a hundred reads, whenever the process is killed.
/// rules: METER-16, METER-6
#[test]
fn kill_9_gives_no_credits_back_and_takes_none() {
    for home in Home::on_each_engine() {
        let home = home.with("PLANS__FREE__CREDITS_PER_PERIOD", "100").with("PLANS__FREE__RPM", "unlimited");
        let workspace = home.create_account("owner@people.test", "free");
        let (_, key) = home.create_key(&workspace, &[]);
        let mut answered = 0;
        for _ in 0..2 {
            let mut server = home.serve();
            answered += read_some(&server, &key, 40);
            server.signal("KILL");
            server.wait(Duration::from_secs(5));
        }
        assert_eq!(answered, 80);
        let server = home.serve();
        assert_eq!(read_some(&server, &key, 100), 20);
        server.stop();
        let server = home.serve();
        assert_eq!(read_some(&server, &key, 1), 0);
    }
}
