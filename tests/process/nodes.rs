//! Two real processes on one PostgreSQL share a workspace's credits and requests exactly.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Home, Server, text};

/// Work that one node does for all: expiry, domains, search-index, counters, statistics, indexes.
const LEASES: usize = 6;

fn calls(servers: &[&Server], key: &str, number: usize) -> u32 {
    let passed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let passed = &passed;
            scope.spawn(move || {
                for call in 0..number / 8 {
                    let server = servers[(thread + call) % servers.len()];
                    let answer = server.call(key, "GET", "/api/v1/rag/credentials", &json!(null));
                    match answer.status {
                        200 => {
                            passed.fetch_add(1, Ordering::SeqCst);
                        }
                        402 | 429 => {}
                        status => panic!("{status}: {}", answer.body),
                    }
                }
            });
        }
    });
    passed.into_inner()
}

/// rules: METER-6, METER-8
#[test]
fn two_processes_share_credits_and_requests_exactly() {
    let Some(home) = Home::postgres() else { return };
    let home = home
        .with("PLANS__FREE__CREDITS_PER_PERIOD", "137")
        .with("PLANS__FREE__RPM", "unlimited")
        .with("PLANS__DEVELOPER__RPM", "61");
    let (one, two) = (home.serve(), home.serve());
    let workspace = home.create_account("credits@people.test", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    assert_eq!(calls(&[&one, &two], &key, 400), 137);
    let path = format!("/api/v1/workspaces/{workspace}/usage/credits");
    for server in [&one, &two] {
        assert_eq!(server.call(&key, "GET", &path, &json!(null)).json()["used"], 137);
    }

    let workspace = home.create_account("requests@people.test", "developer");
    let (_, key) = home.create_key(&workspace, &[]);
    // A window that ends half-way would let more through, rightly.
    loop {
        let started = seconds();
        let passed = calls(&[&one, &two], &key, 160);
        if seconds() / 60 == started / 60 {
            assert_eq!(passed, 61);
            break;
        }
        std::thread::sleep(Duration::from_secs(61 - seconds() % 60));
    }
}

/// What one node does for all is done by one, and by another as soon as that one ends.
#[test]
fn work_for_all_moves_on_when_its_node_ends() {
    let Some(home) = Home::postgres() else { return };
    let one = home.serve();
    let listed = || home.admin(&["nodes"])["nodes"].clone();
    let leases = |process: u32| -> usize {
        let nodes = listed();
        let own = nodes.as_array().unwrap().iter().find(|node| node["process"] == process);
        own.map_or(0, |node| node["leases"].as_array().unwrap().len())
    };
    let wait_for = |what: &dyn Fn() -> bool| {
        let started = std::time::Instant::now();
        while !what() {
            assert!(started.elapsed() < Duration::from_mins(1), "{}", listed());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_for(&|| leases(one.id()) == LEASES);
    let two = home.serve();
    let second = two.id();
    wait_for(&|| listed().as_array().unwrap().len() == 2);
    assert_eq!((leases(one.id()), leases(second)), (LEASES, 0));
    // A node that ends gives its leases up; one that is killed keeps them until they expire.
    one.stop();
    wait_for(&|| leases(second) == LEASES);
    assert!(listed().as_array().unwrap().len() == 1, "{}", listed());
    two.signal("KILL");
    let three = home.serve();
    wait_for(&|| leases(three.id()) == LEASES);
    assert!(listed().as_array().unwrap().iter().all(|node| node["faults"].as_array().is_some()));
}

/// Waits until what a command says satisfies a condition, and returns it.
fn wait_for<T: std::fmt::Debug>(read: impl Fn() -> T, is_wanted: impl Fn(&T) -> bool) -> T {
    let started = std::time::Instant::now();
    loop {
        let found = read();
        if is_wanted(&found) {
            return found;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{found:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What doctor says of the nodes: a status and a text for each line.
fn doctor(home: &Home) -> Vec<(String, String)> {
    let report = home.run(&["doctor", "--json"]).json();
    let checks = report["checks"].as_array().unwrap().iter();
    let of_nodes = checks.filter(|check| check["check"] == "nodes");
    of_nodes.map(|check| (text(check, "status"), text(check, "message"))).collect()
}

/// Doctor on any machine names what is wrong with the nodes on others, and nothing while all is well.
/// rules: CLI-10
#[test]
fn what_is_wrong_with_a_node_is_named_by_doctor_and_admin_nodes() {
    let Some(home) = Home::postgres() else { return };
    let one = home.serve();
    let well = |running: usize| vec![("ok".to_owned(), format!("{running} running, and nothing is wrong"))];
    wait_for(|| doctor(&home), |lines| *lines == well(1));
    let two = home.serve();
    wait_for(|| doctor(&home), |lines| *lines == well(2));
    let listed = || home.admin(&["nodes"]);
    let node = |overview: &Value, server: &Server| -> Value {
        let nodes = overview["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["process"] == server.id()).unwrap().clone()
    };
    wait_for(listed, |overview| node(overview, &one)["leases"].as_array().unwrap().len() == LEASES);
    let overview = listed();
    for server in [&one, &two] {
        let node = node(&overview, server);
        assert_eq!(node["address"], server.address.to_string());
        assert_eq!((&node["version"], &node["pool_size"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(20)));
        assert_eq!((&node["sending"], &node["faults"]), (&json!(0), &json!([])));
    }
    assert_eq!((&overview["connections"]["max"], &overview["faults"]), (&json!(42), &json!([])));
    assert_eq!(overview["standbys"], json!([]));
    let people = home.run(&["admin", "nodes"]).succeeded().stdout;
    for shown in
        [&one.address.to_string(), "leases counters, domains", "outbound 0 s", "at most 42 to PostgreSQL"]
    {
        assert!(people.contains(shown), "{shown}: {people}");
    }

    // One stops without ending. As if time had passed:
    two.signal("STOP");
    let stopped = two.id();
    home.execute(&format!("UPDATE node SET seen_at = seen_at - 40000000 WHERE process = {stopped}"));
    let lines = doctor(&home);
    let named = format!("process {stopped}: not heard of for 4");
    assert!(lines.len() == 1 && lines[0].0 == "warn" && lines[0].1.contains(&named), "{lines:?}");
    let faults = node(&listed(), &two)["faults"].to_string();
    assert!(faults.contains("it has died or hangs"), "{faults}");
    two.signal("CONT");
    wait_for(|| doctor(&home), |lines| *lines == well(2));

    // One with settings of its own.
    drop(two);
    home.execute(&format!("DELETE FROM node WHERE process = {stopped}"));
    let mut command = home.command(&["serve"]);
    let three = Server::start({
        command.env("AGENT_MAILBOX__PLANS__FREE__RPM", "7");
        command
    });
    let named = format!("process {}: its setting plans differs from that of the other nodes", three.id());
    wait_for(|| doctor(&home), |lines| lines.len() == 1 && lines[0].1.contains(&named));
}

#[expect(clippy::disallowed_methods, reason = "real processes go by the real clock")]
fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
