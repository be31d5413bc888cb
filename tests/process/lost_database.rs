//! One of two nodes loses the database while the other goes on: what it refuses, what it leaves to the other, and how it
//! comes back.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use store::DatabaseLocation;
use testkit::{Cut, Relay};

use super::{
    Answer, Home, Server,
    load::{Addresses, Load, StopAtEnd, WAIT_LIMIT, check},
    mail::{Inbox, Smtp, message},
};

/// How soon a call is refused: two seconds, and as much again for a machine that does other things as well.
const MAX_REFUSAL: Duration = Duration::from_secs(4);
/// How soon the node answers again.
const MAX_AWAY: Duration = Duration::from_secs(5);
/// How long a call waits for mail that does not come.
const POLL_SECONDS: u64 = 12;
/// What a node that can do nothing may use of a core, as a divisor, and the lines that it may write into its log.
const CPU_DIVISOR: u32 = 5;
const MAX_LINES_PER_SECOND: usize = 10;

/// Two nodes of which the second reaches the database through a relay, with the clients of each.
struct Pair {
    home: Home,
    relay: Relay,
    one: Server,
    two: Server,
    inbox: Inbox,
    /// Nothing comes here by itself.
    quiet: Inbox,
}

impl Pair {
    fn start() -> Option<Self> {
        let home = Home::postgres()?.with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
        let DatabaseLocation::Postgres(location) = home.database() else { unreachable!() };
        let (relay, url) = Relay::before(&location.url);
        // It starts first, so that it has the leases.
        let two = home.serve_with_own(&[("DATABASE__URL", &url)], &log_of(&home));
        let inbox = Inbox::new(&home, &two, "enterprise");
        let quiet = Inbox::add(&two, inbox.workspace.clone(), inbox.key.clone());
        wait_until("it has the leases", || leases(&home, &two) >= 5);
        let one = home.serve();
        Some(Self { home, relay, one, two, inbox, quiet })
    }

    /// Waits for mail in the quiet mailbox, and gives the answer with the time it took.
    fn poll(&self, server: &Server) -> (Answer, Duration) {
        let (path, started) = (format!("{}/emails/wait", self.quiet.path), Instant::now());
        let body = json!({ "timeout_seconds": POLL_SECONDS });
        (server.call(&self.quiet.key, "POST", &path, &body), started.elapsed())
    }

    fn draft(&self, server: &Server, subject: &str) -> Answer {
        let body = json!({ "subject": subject, "body": "x", "to": ["a@remote.test"] });
        server.call(&self.quiet.key, "POST", &format!("{}/drafts", self.quiet.path), &body)
    }

    fn read(&self, server: &Server) -> Answer {
        server.call(&self.quiet.key, "GET", &format!("{}/emails", self.quiet.path), &Value::Null)
    }

    /// What the second node answers while it has no database.
    fn assert_refuses(&self, half_way: &mut Smtp) {
        let started = Instant::now();
        assert_eq!(half_way.say("."), 451, "a message that has come but for its end");
        assert!(started.elapsed() < MAX_REFUSAL, "{:?}", started.elapsed());
        let calls: [&dyn Fn() -> Answer; 2] =
            [&|| self.read(&self.two), &|| self.draft(&self.two, "refused")];
        for call in calls {
            let started = Instant::now();
            let answer = call();
            assert!(started.elapsed() < MAX_REFUSAL, "{:?}", started.elapsed());
            let found = (answer.status, &answer.json()["code"]);
            assert_eq!(found, (503, &json!("storage_unavailable")), "{}", answer.body);
            assert!(answer.head.to_lowercase().contains("retry-after: "), "{}", answer.head);
        }
        // Nobody knows whether this address exists, so it is not refused for good.
        for to in [self.quiet.address.as_str(), "nobody-here@agents.localhost"] {
            let started = Instant::now();
            let (code, reply) = Smtp::connect(self.two.smtp).send(to, &message("Refused", "x")).unwrap();
            assert_eq!(code, 451, "{to}: {reply}");
            assert!(started.elapsed() < MAX_REFUSAL, "{:?}", started.elapsed());
        }
        assert_eq!(self.two.get("/readyz", &[]).status, 503);
        assert_eq!(self.two.get("/healthz", &[]).status, 200);
    }

    /// The second node answers, takes mail, and hears of what happens on the first.
    fn assert_back(&self, since: Instant) {
        let mut number = 0;
        let mut answers = || {
            number += 1;
            self.read(&self.two).status == 200
                && self.draft(&self.two, &format!("back {number}")).status == 201
        };
        while !answers() {
            assert!(since.elapsed() < MAX_AWAY, "still away");
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("it answered {:?} after the database could be reached", since.elapsed());
        let sent = Smtp::connect(self.two.smtp).send(&self.quiet.address, &message("Back", "x")).unwrap();
        assert_eq!(sent.0, 250, "{}", sent.1);
        assert!(since.elapsed() < MAX_AWAY, "{:?}", since.elapsed());
        assert_eq!(self.two.get("/readyz", &[]).status, 200);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| self.poll(&self.two));
            std::thread::sleep(Duration::from_millis(500));
            let sent = Smtp::connect(self.one.smtp).send(&self.quiet.address, &message("News", "x")).unwrap();
            assert_eq!(sent.0, 250, "{}", sent.1);
            let (answer, took) = waiting.join().unwrap();
            assert_eq!(
                (answer.status, &answer.json()["outcome"]),
                (200, &json!("matched")),
                "{}",
                answer.body
            );
            assert!(took < Duration::from_secs(POLL_SECONDS), "it was woken: {took:?}");
        });
    }
}

fn log_of(home: &Home) -> std::path::PathBuf {
    home.folder.path().join("two.log")
}

fn lines(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap().lines().count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < WAIT_LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The leases that a node has.
fn leases(home: &Home, server: &Server) -> usize {
    let nodes = home.admin(&["nodes"]);
    let own = nodes["nodes"].as_array().unwrap().iter().find(|node| node["process"] == server.id());
    own.map_or(0, |node| node["leases"].as_array().unwrap().len())
}

/// The processor time that a process has used.
fn cpu_time(server: &Server) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
    // The name may contain spaces; after it come the state and further numbers. Ticks are hundredths of a second.
    let numbers: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |index: usize| numbers[index].parse::<u64>().unwrap();
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

fn lose_the_database(cut: Cut) {
    let Some(pair) = Pair::start() else { return };
    let log = log_of(&pair.home);
    let (at_one, at_two) = (Addresses::of(&pair.one), Addresses::of(&pair.two));
    let (on_one, before, after) = (Load::new("one"), Load::new("before"), Load::new("after"));
    std::thread::scope(|scope| {
        let all = [&on_one, &before, &after];
        let _stop = StopAtEnd(&all);
        on_one.start(scope, &at_one, &pair.inbox);
        before.start(scope, &at_two, &pair.inbox);
        for load in [&on_one, &before] {
            load.wait_for(50);
            load.wait_for_drafts(5);
        }
        let mut half_way = Smtp::connect(pair.two.smtp);
        for line in ["MAIL FROM:<ann@remote.test>", &format!("RCPT TO:<{}>", pair.quiet.address), "DATA"] {
            assert!(half_way.say(line) < 400);
        }
        half_way.write(&message("Half", "way")).unwrap();
        let waiting = scope.spawn(|| pair.poll(&pair.two));
        std::thread::sleep(Duration::from_millis(500));
        pair.relay.cut(cut);
        pair.assert_refuses(&mut half_way);
        before.stop();
        let (since, cpu, logged) = (Instant::now(), cpu_time(&pair.two), lines(&log));
        on_one.wait_for(50);
        on_one.wait_for_drafts(5);
        println!("the other node took 50 messages and 5 drafts in {:?}", since.elapsed());
        let (answer, took) = waiting.join().unwrap();
        assert!([200, 503].contains(&answer.status), "{}", answer.body);
        assert!(took < Duration::from_secs(POLL_SECONDS) + MAX_REFUSAL, "{took:?}");
        wait_until("the first node has the leases", || leases(&pair.home, &pair.one) >= 5);
        let (passed, cpu, logged) =
            (since.elapsed(), cpu_time(&pair.two).saturating_sub(cpu), lines(&log) - logged);
        println!("{cut:?}: {cpu:?} of a core and {logged} lines in {passed:?}");
        pair.relay.open();
        pair.assert_back(Instant::now());
        after.start(scope, &at_two, &pair.inbox);
        after.wait_for(20);
        let seconds = usize::try_from(passed.as_secs()).unwrap();
        assert!(cpu < passed / CPU_DIVISOR, "{cpu:?} in {passed:?}");
        assert!(logged < MAX_LINES_PER_SECOND * seconds, "{logged} lines in {passed:?}");
    });
    for server in [&pair.one, &pair.two] {
        check(server, &pair.inbox, &[&on_one, &before, &after]);
        let subjects: Vec<Value> =
            pair.quiet.list(server).into_iter().map(|mail| mail["subject"].clone()).collect();
        let is_draft = |subject: &&Value| subject.as_str().unwrap().starts_with("back ");
        let expected = |subject: &Value| *subject == "News" || *subject == "Back" || is_draft(&subject);
        assert!(subjects.iter().all(expected), "what was refused is not there: {subjects:?}");
        assert_eq!(subjects.iter().filter(is_draft).count(), 1, "{subjects:?}");
        assert_eq!(subjects.len(), 3, "{subjects:?}");
    }
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    assert_eq!(log.matches("PostgreSQL connection lost").count(), 1, "{log}");
    let readiness = pair.two.get("/readyz", &[]).json();
    assert_eq!(readiness["status"], "ready", "all workers run: {readiness}");
    pair.two.stop();
}

/// rules: STORE-7, API-7, RECV-26
#[test]
fn a_node_whose_database_refuses_connections_comes_back() {
    lose_the_database(Cut::Refuses);
}

/// rules: STORE-7, API-7, RECV-26
#[test]
fn a_node_whose_database_says_nothing_comes_back() {
    lose_the_database(Cut::Silent);
}
