//! The server as a process: its welcome, admin commands beside it, its limits, and its end.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use http::Version;
use serde_json::{Value, json};

use super::{Home, PASSWORD, free_port, head, mail::Inbox, read_answer, request, text};

/// rules: CLI-1
#[test]
fn what_the_welcome_offers_works_when_pasted() {
    for home in Home::on_each_engine() {
        let home = home.with("HTTP__LISTEN", &format!("127.0.0.1:{}", free_port()));
        let server = home.serve();
        let line = server.welcome.lines().find(|line| line.contains("admin account create")).unwrap();
        // As a shell would run it: the welcome was printed for one that has the same environment.
        let template = home.command(&[]);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line.trim()).current_dir(home.folder.path()).stdin(Stdio::piped());
        shell.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
        let finished = super::Finished::from(child.wait_with_output().unwrap()).succeeded();
        let key =
            finished.stdout.split("x-api-key: ").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
        assert_eq!(server.get("/api/v1/mailboxes", &[("x-api-key", key)]).json(), json!([]));
        for page in ["/", "/docs", "/openapi.json"] {
            assert_eq!(server.get(page, &[]).status, 200, "{page}");
        }
        server.stop();

        let again = home.serve();
        let url = format!("http://{}/api/v1/mailboxes", again.address);
        assert!(again.welcome.contains(&format!("curl -H 'x-api-key: YOUR_KEY' {url}")), "{}", again.welcome);
        assert_eq!(again.status_with(key), 200);
    }
}

#[test]
fn what_lies_on_disk_is_private() {
    let home = Home::sqlite();
    home.serve().stop();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.data()), 0o700);
    for name in ["master.key", "agent-mailbox.db", "serve.lock"] {
        assert_eq!(mode(&home.data().join(name)), 0o600, "{name}");
    }
}

/// rules: CLI-8
#[test]
fn operators_work_beside_a_running_server() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let workspace = home.create_account("ada@example.com", "enterprise");
        let (_, key) = home.create_key(&workspace, &[]);
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                let mut statuses = Vec::new();
                for number in 0..40 {
                    let body = json!({ "name": format!("Mailbox {number}") });
                    statuses.push(server.call(&key, "POST", "/api/v1/mailboxes", &body).status);
                }
                statuses
            });
            for number in 0..3 {
                home.create_account(&format!("person{number}@example.com"), "free");
                home.admin(&["workspace", "set-plan", &workspace, "enterprise"]);
            }
            assert_eq!(calls.join().unwrap(), [201; 40]);
        });
        assert_eq!(home.admin(&["workspace", "list"])[0]["mailbox_count"], json!(40));
    }
}

#[test]
fn an_admin_command_leaves_the_servers_credits_alone() {
    let home = Home::sqlite();
    let server = home.serve();
    let workspace = home.create_account("ada@example.com", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    let path = format!("/api/v1/workspaces/{workspace}/usage/credits");
    for used in 1..=5 {
        let credits = server.call(&key, "GET", &path, &Value::Null);
        assert_eq!(credits.json()["used"], json!(used), "{}", credits.body);
        // It opens the store, as a server does at its start.
        home.admin(&["workspace", "list"]);
    }
}

/// rules: CLI-6
#[test]
fn a_key_ends_when_it_should() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let workspace = home.create_account("ada@example.com", "developer");
        let (_, short) = home.create_key(&workspace, &["--expires-in", "1s"]);
        let made = Instant::now();
        let (id, long) = home.create_key(&workspace, &["--expires-in", "1h"]);
        std::thread::sleep(Duration::from_millis(1010).saturating_sub(made.elapsed()));
        assert_eq!(server.status_with(&short), 401, "it was for one second");
        assert_eq!(server.status_with(&long), 200);
        home.admin(&["key", "revoke", &id]);
        let revoked = Instant::now();
        while server.status_with(&long) != 401 {
            assert!(revoked.elapsed() < Duration::from_secs(1), "a revoked key still works");
        }
    }
}

/// rules: CLI-7, CLI-8
#[test]
fn a_plan_changes_on_a_running_server() {
    let home = Home::sqlite();
    let server = home.serve();
    let workspace = home.create_account("ada@example.com", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    let path = format!("/api/v1/workspaces/{workspace}/usage/credits");
    let plan = || text(&server.call(&key, "GET", &path, &Value::Null).json(), "plan");
    assert_eq!(plan(), "free");
    home.admin(&["workspace", "set-plan", &workspace, "developer"]);
    let changed = Instant::now();
    while plan() != "developer" {
        assert!(changed.elapsed() < Duration::from_secs(1), "the plan did not arrive");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn sqlite_has_one_server_and_postgresql_several() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        if home.is_postgres() {
            let second = home.serve();
            let workspace = home.create_account("ada@example.com", "free");
            let (_, key) = home.create_key(&workspace, &[]);
            assert_eq!((server.status_with(&key), second.status_with(&key)), (200, 200));
            continue;
        }
        let refused = home.run(&["serve"]).failed(1);
        let who = format!("is already served by process {}", server.id());
        assert!(refused.stderr.contains(&who), "{}", refused.stderr);
        // A crash leaves the file behind, but not the lock.
        server.signal("KILL");
        drop(server);
        home.serve().stop();
    }
}

#[test]
fn a_call_in_flight_is_finished_before_the_end() {
    for home in Home::on_each_engine() {
        let mut server = home.serve();
        let mut silent = TcpStream::connect(server.address).unwrap();
        let body = json!({ "email": "ada@example.com", "password": PASSWORD }).to_string();
        let (first, second) = body.split_at(10);
        let mut slow = TcpStream::connect(server.address).unwrap();
        let headers = [("content-type", "application/json")];
        slow.write_all(head("POST", "/api/console/sign-up", &headers, body.len()).as_bytes()).unwrap();
        slow.write_all(first.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        server.signal("TERM");
        std::thread::sleep(Duration::from_millis(300));
        assert!(TcpStream::connect(server.address).is_err(), "nobody new is let in");
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "who has not asked is let go");
        slow.write_all(second.as_bytes()).unwrap();
        assert_eq!(read_answer(&mut slow).status, 201);
        let status = server.wait(Duration::from_secs(3));
        assert_eq!(status.code(), Some(0));
    }
}

/// Whoever waits for a mail is told at once that there is none yet, and where to go on.
/// rules: CLI-12
#[test]
fn a_call_that_waits_is_answered_before_the_end() {
    for home in Home::on_each_engine() {
        let mut server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let body = json!({ "timeout_seconds": 60 }).to_string();
        let headers = [("content-type", "application/json"), ("x-api-key", inbox.key.as_str())];
        let mut waiting = TcpStream::connect(server.address).unwrap();
        let path = format!("{}/emails/wait", inbox.path);
        waiting.write_all(head("POST", &path, &headers, body.len()).as_bytes()).unwrap();
        waiting.write_all(body.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        server.signal("TERM");
        let answer = read_answer(&mut waiting);
        assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("timeout")), "{}", answer.body);
        assert!(answer.json()["cursor"].is_string(), "{}", answer.body);
        assert_eq!(server.wait(Duration::from_secs(3)).code(), Some(0));
    }
}

#[test]
fn a_call_that_does_not_end_is_cut_off() {
    let home = Home::sqlite();
    let mut server = home.serve();
    let mut stuck = TcpStream::connect(server.address).unwrap();
    stuck
        .write_all(
            head("POST", "/api/console/sign-up", &[("content-type", "application/json")], 100).as_bytes(),
        )
        .unwrap();
    stuck.write_all(b"{").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let told = Instant::now();
    server.signal("INT");
    assert_eq!(server.wait(Duration::from_secs(14)).code(), Some(0));
    assert!(told.elapsed() > Duration::from_secs(9), "it had its ten seconds");
}

#[test]
fn a_second_signal_ends_at_once() {
    let home = Home::sqlite();
    let mut server = home.serve();
    let mut stuck = TcpStream::connect(server.address).unwrap();
    stuck
        .write_all(
            head("POST", "/api/console/sign-up", &[("content-type", "application/json")], 100).as_bytes(),
        )
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    assert_eq!(server.wait(Duration::from_secs(3)).code(), Some(0));
}

/// rules: HTTP-8
#[test]
fn one_listener_speaks_both_versions_of_http() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let workspace = home.create_account("ada@example.com", "enterprise");
        let (_, key) = home.create_key(&workspace, &[]);
        let url = format!("http://{}/api/v1/mailboxes", server.address);
        tokio::runtime::Runtime::new().unwrap().block_on(speak_both_versions(&url, &key));
        server.stop();
    }
}

async fn speak_both_versions(url: &str, key: &str) {
    let newer = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let older = reqwest::Client::builder().http1_only().build().unwrap();
    let create = |number: usize| {
        let body = json!({ "name": format!("Mailbox {number}") }).to_string();
        let request = newer.post(url).header("x-api-key", key).header("content-type", "application/json");
        tokio::spawn(request.body(body).send())
    };
    // All at once, which one connection carries as streams of its own.
    for call in (0..20).map(create).collect::<Vec<_>>() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!((answer.version(), answer.status().as_u16()), (Version::HTTP_2, 201));
    }
    let mut lists = Vec::new();
    for (client, version) in [(&newer, Version::HTTP_2), (&older, Version::HTTP_11)] {
        let answer = client.get(url).header("x-api-key", key).send().await.unwrap();
        assert_eq!((answer.version(), answer.status().as_u16()), (version, 200));
        assert_eq!(answer.headers()["content-type"], "application/json");
        lists.push(serde_json::from_str::<Vec<Value>>(&answer.text().await.unwrap()).unwrap());
        let refused = client.get(url).send().await.unwrap();
        assert_eq!((refused.version(), refused.status().as_u16()), (version, 401));
    }
    assert_eq!((lists[0].len(), &lists[0]), (20, &lists[1]));
}

/// rules: HTTP-15
#[test]
fn clients_that_do_not_finish_their_head_are_let_go() {
    let home = Home::sqlite();
    let server = home.serve();
    let started = Instant::now();
    let waiting: Vec<_> = ["GET /healthz HTTP/1.1\r\nX-Slow:", "PRI * HT"]
        .map(|start| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(start.as_bytes()).unwrap();
            std::thread::spawn(move || {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
                started.elapsed()
            })
        })
        .into();
    // Meanwhile a connection that was used may rest.
    let mut used = TcpStream::connect(server.address).unwrap();
    used.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut buffer = [0; 4096];
    assert!(used.read(&mut buffer).unwrap() > 0);
    for gone in waiting {
        let after = gone.join().unwrap();
        assert!(after > Duration::from_secs(9) && after < Duration::from_secs(13), "{after:?}");
    }
    used.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let count = used.read(&mut buffer).unwrap();
    assert!(buffer[..count].starts_with(b"HTTP/1.1 200"), "the rested connection still works");
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() {
    let home = Home::sqlite().with("HTTP__MAX_CONNECTIONS", "3");
    let server = home.serve();
    let first: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let mut late = TcpStream::connect(server.address).unwrap();
    late.write_all(head("GET", "/healthz", &[], 0).as_bytes()).unwrap();
    late.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(late.read(&mut [0]).is_err(), "there is no room yet");
    drop(first);
    assert_eq!(read_answer(&mut late).status, 200);
}

/// rules: HTTP-16
#[test]
fn running_out_of_descriptors_passes() {
    let home = Home::sqlite();
    let command = home.command(&["serve"]);
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg("ulimit -n 280 && exec \"$0\" \"$@\"")
        .arg(command.get_program())
        .args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(home.folder.path()).stdout(Stdio::piped());
    let server = super::Server::start(limited);
    let crowd: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(server.address).ok()).collect();
    std::thread::sleep(Duration::from_millis(500));
    drop(crowd);
    let freed = Instant::now();
    assert_eq!(server.get("/readyz", &[]).status, 200);
    assert!(freed.elapsed() < Duration::from_secs(2));
    server.stop();
}

#[test]
fn metrics_have_a_door_of_their_own_if_wanted() {
    let home = Home::sqlite();
    let server = home.serve();
    let workspace = home.create_account("ada@example.com", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    server.status_with(&key);
    let metrics = server.get("/metrics", &[]).body;
    for part in [
        "http_requests_total{operation=\"listWorkspaces\",status=\"2xx\"} 1",
        "http_request_seconds_bucket{operation=\"listWorkspaces\",le=\"+Inf\"} 1",
        "# TYPE process_resident_memory_bytes gauge",
        "process_open_fds ",
        "process_uptime_seconds ",
        "http_connections ",
        "engine=\"SQLite\"",
    ] {
        assert!(metrics.contains(part), "{part} is missing: {metrics}");
    }
    assert!(!metrics.contains(&key));
    server.stop();

    let own = format!("127.0.0.1:{}", free_port());
    let home = home.with("HTTP__METRICS_LISTEN", &own);
    let server = home.serve();
    assert_eq!(server.get("/metrics", &[]).status, 404);
    let answer = request(own.parse().unwrap(), "GET", "/metrics", &[], "");
    assert!(answer.head.contains("text/plain") && answer.body.contains("process_open_fds"), "{answer:?}");
    assert_eq!(request(own.parse().unwrap(), "GET", "/healthz", &[], "").status, 404);
    server.stop();
}

/// rules: AUTH-27
#[test]
fn a_public_server_prints_the_code_for_its_first_account() {
    for home in Home::on_each_engine() {
        let home = home.with("HTTP__TRUST_PROXY", "true");
        let server = home.serve();
        let code = server.welcome.split("  Code     ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let sign_up = |code: Option<&str>| {
            let body = json!({ "email": "ada@example.com", "password": PASSWORD, "code": code }).to_string();
            let headers = [("content-type", "application/json")];
            request(server.address, "POST", "/api/console/sign-up", &headers, &body)
        };
        assert_eq!(sign_up(None).status, 403);
        assert_eq!(sign_up(Some(&code)).status, 201);
        server.stop();
        let again = home.serve();
        assert!(!again.welcome.contains("Code"), "{}", again.welcome);
        again.stop();
    }
}

/// rules: HTTP-17
#[test]
fn nothing_secret_is_logged() {
    let home = Home::sqlite().with("LOG__LEVEL", "trace").with("LOG__FORMAT", "json");
    let log = home.folder.path().join("log");
    let workspace = home.create_account("ada@example.com", "free");
    let (_, key) = home.create_key(&workspace, &[]);
    let server = home.serve_with_log(&log);
    server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": "Tell nobody" }));
    let login = json!({ "email": "ada@example.com", "password": PASSWORD }).to_string();
    let headers = [("content-type", "application/json")];
    assert_eq!(request(server.address, "POST", "/api/console/login", &headers, &login).status, 200);
    server.stop();
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.lines().count() >= 3, "{log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "not JSON: {line}");
    }
    for secret in [key.as_str(), PASSWORD, "Tell nobody", "ada@example.com", "argon2"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}

#[test]
fn a_server_starts_quickly() {
    let home = Home::sqlite();
    home.serve().stop();
    let again = home.serve();
    // The bound of the promise is 0.3 s; this build is not optimised, and other tests run beside it.
    assert!(again.ready_after < Duration::from_secs(5), "{:?}", again.ready_after);
}

/// rules: CLI-2
#[test]
fn a_worker_alone_does_not_listen() {
    let home = Home::sqlite();
    let mut child = home.command(&["serve", "--roles", "worker"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "it goes on working");
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let finished = super::Finished::from(child.wait_with_output().unwrap()).succeeded();
    assert!(!finished.stdout.contains("Console"), "{}", finished.stdout);
}
