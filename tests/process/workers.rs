//! Workers of the real program that panic: seen, restarted, and the end of the process when that does not help.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Home, Server, free_port,
    mail::{Inbox, Smtp, message},
    outbound::{Sink, relaying},
    text,
};

/// Only debug builds of the program can be made to panic.
fn is_debug_build() -> bool {
    std::env::var_os("AGENT_MAILBOX_BIN").is_none()
}

fn worker(server: &Server, name: &str) -> (String, Value) {
    let readiness = server.get("/readyz", &[]);
    assert_eq!(readiness.status, 200, "{}", readiness.body);
    let readiness = readiness.json();
    let workers = readiness["workers"].as_array().unwrap();
    let found = workers.iter().find(|worker| worker["name"] == name);
    (text(&readiness, "status"), found.unwrap_or_else(|| panic!("no {name} in {readiness}")).clone())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn metric(server: &Server, name: &str) -> Option<String> {
    let metrics = server.get("/metrics", &[]).body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map(|value| value.trim().to_owned())
}

/// rules: CLI-16
#[test]
fn a_worker_that_waits_for_its_restart_is_shown() {
    if !is_debug_build() {
        return;
    }
    let home = Home::sqlite().with("HTTP__LISTEN", &format!("127.0.0.1:{}", free_port()));
    let home = home.with_panics("vectors", 1, Duration::from_hours(1));
    let server = home.serve();
    wait_until("it is down", || worker(&server, "vectors").0 == "degraded");
    let vectors = worker(&server, "vectors").1;
    assert_eq!((&vectors["state"], &vectors["failures"]), (&json!("restarting"), &json!(1)));
    assert_eq!(metric(&server, "worker_up{worker=\"vectors\"}").as_deref(), Some("0"));
    assert_eq!(metric(&server, "worker_up{worker=\"queue\"}").as_deref(), Some("1"));
    let report = home.run(&["doctor"]).succeeded().stdout;
    assert!(report.contains("vectors is down after 1 failure in a row and will be restarted"), "{report}");
    // Nobody waits for the restart at the end.
    server.stop();
}

/// rules: CLI-16
#[test]
fn a_worker_that_panics_comes_back() {
    if !is_debug_build() {
        return;
    }
    for home in Home::on_each_engine() {
        let sink = Sink::start();
        let home = relaying(home, &sink).with("HTTP__LISTEN", &format!("127.0.0.1:{}", free_port()));
        let home = home.with_panics("queue", 1, Duration::from_millis(500));
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let mail = json!({ "to": "ann@remote.test", "subject": "Out", "text": "Hello" });
        let answer = server.call(&inbox.key, "POST", &format!("{}/emails", inbox.path), &mail);
        assert_eq!(answer.status, 202, "{}", answer.body);
        wait_until("the mail goes out", || sink.taken().len() == 1);
        let (status, queue) = worker(&server, "queue");
        assert_eq!(
            (status.as_str(), &queue["state"], &queue["restarts"]),
            ("ready", &json!("running"), &json!(1))
        );
        assert_eq!(metric(&server, "worker_restarts_total{worker=\"queue\"}").as_deref(), Some("1"));
        assert_eq!(metric(&server, "worker_restarts_total{worker=\"smtp\"}").as_deref(), Some("0"));
        assert_eq!(metric(&server, "worker_up{worker=\"queue\"}").as_deref(), Some("1"));
        let report = home.run(&["doctor"]).succeeded().stdout;
        assert!(report.contains("queue was restarted 1 time since the start"), "{report}");
        server.stop();
    }
}

/// rules: CLI-16
#[test]
fn listeners_that_panic_keep_their_clients() {
    if !is_debug_build() {
        return;
    }
    for name in ["http", "smtp", "process-metrics"] {
        let home = Home::sqlite().with_panics(name, 1, Duration::from_millis(200));
        // Clients that connect meanwhile are accepted afterwards.
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "free");
        let reply = Smtp::connect(server.smtp).send(&inbox.address, &message("Hello", "there")).unwrap();
        assert_eq!(reply.0, 250, "{}", reply.1);
        wait_until("it runs again", || worker(&server, name).1["restarts"] == 1);
        server.stop();
    }
}

/// rules: CLI-17
#[test]
fn a_worker_that_cannot_be_brought_back_ends_the_process() {
    if !is_debug_build() {
        return;
    }
    let home = Home::sqlite().with_panics("metering", 10, Duration::from_millis(1));
    let ended = home.run(&["serve"]).failed(1);
    let log = ended.stderr.as_str();
    assert_eq!(log.matches("worker failed; restarting").count(), 9, "{log}");
    let gave_up: Vec<&str> = log.lines().filter(|line| line.contains("stopping the process")).collect();
    assert_eq!(gave_up.len(), 1, "{log}");
    assert!(gave_up[0].contains("ERROR") && gave_up[0].contains("metering"), "{log}");
    assert!(gave_up[0].contains("panicked: a test made this worker panic"), "{log}");
    assert!(
        log.lines().any(|line| line.contains("INFO") && line.ends_with("stopped")),
        "in good order: {log}"
    );
}
