//! The queue under faults: several nodes that are killed one after the other, and servers that hang.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::TcpListener,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::NameServer;

use super::{
    Home, Server,
    mail::Inbox,
    outbound::{Sink, relaying, schedule, seconds_from_now},
    text,
};

const NODES: usize = 4;
const MAILS: usize = 120;
const KILLS: usize = 6;

/// None is lost, and a kill costs at most one duplicate: the mail whose last answer it swallowed.
// rules: DRAFT-11, SEND-10
#[test]
fn four_nodes_send_each_schedule_once_while_one_after_the_other_is_killed() {
    let Some(home) = Home::postgres() else { return };
    let sink = Sink::start();
    let home = relaying(home, &sink);
    let mut nodes: Vec<Server> = (0..NODES).map(|_| home.serve()).collect();
    let inbox = Inbox::new(&home, &nodes[0], "enterprise");
    // Over the whole time of the kills, so that each of them falls into work.
    for number in 0..MAILS {
        let second = 3 + i64::try_from(number * 2 * KILLS / MAILS).unwrap();
        let at = seconds_from_now(&nodes[number % NODES], &inbox, second);
        schedule(&nodes[number % NODES], &inbox, &["out@remote.test"], &format!("token-{number}"), &at);
    }
    for kill in 0..KILLS {
        std::thread::sleep(Duration::from_secs(2));
        let node = &mut nodes[kill % NODES];
        node.signal("KILL");
        node.wait(Duration::from_secs(5));
        *node = home.serve();
    }
    let subjects = || -> HashMap<String, usize> {
        let mut found = HashMap::new();
        for mail in sink.taken() {
            let subject = mail.content.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap();
            *found.entry(subject.trim().to_owned()).or_default() += 1;
        }
        found
    };
    let started = Instant::now();
    // What a node had taken on when it died is taken over a minute later.
    while subjects().len() < MAILS && started.elapsed() < Duration::from_secs(100) {
        std::thread::sleep(Duration::from_millis(200));
    }
    // Whatever is sent twice has had the time for it.
    std::thread::sleep(Duration::from_secs(2));
    let found = subjects();
    assert_eq!(found.len(), MAILS, "none is lost");
    let twice: usize = found.values().map(|count| count - 1).sum();
    assert!(twice <= KILLS, "{twice} duplicates for {KILLS} kills: {found:?}");
    for node in nodes {
        node.stop();
    }
}

/// A server that takes connections and then does one thing.
fn bad_server(address: &str, behave: fn(std::net::TcpStream)) {
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || behave(stream));
        }
    });
}

fn hang(mut stream: std::net::TcpStream) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

fn drip(mut stream: std::net::TcpStream) {
    while stream.write_all(b"2").is_ok() {
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn storm(mut stream: std::net::TcpStream) {
    let _ = stream.write_all(b"421 4.3.2 Come back later\r\n");
}

/// Servers that hang, drip or send everybody away keep mail for others from nothing.
// rules: SEND-7, SEND-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_delays_no_other() {
    let sink = Sink::start();
    let port = sink.address.port();
    for (host, behave) in [("127.0.0.2", hang as fn(_)), ("127.0.0.3", drip), ("127.0.0.4", storm)] {
        bad_server(&format!("{host}:{port}"), behave);
    }
    let domain = |name: &str, address: &str| format!("{name} MX 10 mx.{name}\nmx.{name} A {address}");
    let zone = [
        domain("good.test", "127.0.0.1"),
        domain("hangs.test", "127.0.0.2"),
        domain("drips.test", "127.0.0.3"),
        domain("storms.test", "127.0.0.4"),
    ]
    .join("\n");
    let names = NameServer::start(&zone).await;
    let home = Home::sqlite()
        .with("OUTBOUND__MODE", "direct")
        .with("OUTBOUND__ALLOW_PRIVATE", "true")
        .with("OUTBOUND__PORT", &port.to_string())
        .with("OUTBOUND__SEND_WINDOW", "0")
        .with("OUTBOUND__DNS_SERVERS", &names.address().to_string());
    tokio::task::spawn_blocking(move || others_go_on(&home, &sink)).await.unwrap();
}

fn others_go_on(home: &Home, sink: &Sink) {
    let server = home.serve();
    let inbox = Inbox::new(home, &server, "enterprise");
    let send = |to: &str| {
        let input = json!({ "to": to, "subject": to, "text": "x" });
        let answer = server.call(&inbox.key, "POST", &format!("{}/emails", inbox.path), &input);
        assert_eq!((answer.status, text(&answer.json(), "status")), (202, "queued".to_owned()));
        text(&answer.json(), "id")
    };
    for number in 0..20 {
        for domain in ["hangs.test", "drips.test", "storms.test"] {
            send(&format!("n{number}@{domain}"));
        }
    }
    let started = Instant::now();
    for number in 0..20 {
        send(&format!("n{number}@good.test"));
    }
    while sink.taken().len() < 20 {
        assert!(started.elapsed() < Duration::from_secs(20), "{} of 20 arrived", sink.taken().len());
        std::thread::sleep(Duration::from_millis(20));
    }
    // What was sent away is tried again, and says why.
    let id = send("again@storms.test");
    let path = format!("{}/emails/{id}/delivery", inbox.path);
    let delivery = server.call(&inbox.key, "GET", &path, &json!(null)).json();
    assert_eq!(delivery["recipients"][0]["state"], "queued");
    server.stop();
}
