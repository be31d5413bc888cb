//! `doctor` on set-ups that are right, and on several that are not.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::{Finished, Home, free_port};

fn lines<'a>(finished: &'a Finished, kind: &str) -> Vec<&'a str> {
    finished.stdout.lines().filter(|line| line.starts_with(kind)).collect()
}

/// rules: CLI-10
#[test]
fn a_good_set_up_has_nothing_to_fail() {
    for home in Home::on_each_engine() {
        let home = home.with("HTTP__LISTEN", &format!("127.0.0.1:{}", free_port()));
        let before = home.run(&["doctor"]).succeeded();
        assert_eq!(lines(&before, "FAIL"), [""; 0]);
        assert!(!home.data().exists(), "looking makes nothing");

        home.create_account("ada@example.com", "free");
        let after = home.run(&["doctor"]).succeeded();
        for part in
            ["schema version", "mode 0600", "1 of 1 open", "is readable and writable", " is free", "clock: 2"]
        {
            assert!(lines(&after, "ok").iter().any(|line| line.contains(part)), "{part}: {}", after.stdout);
        }
        assert_eq!(after.stdout.contains("row-level security applies"), home.is_postgres());

        let server = home.serve();
        let serving = home.run(&["doctor"]).succeeded();
        assert!(serving.stdout.contains("is served by Agent Mailbox"), "{}", serving.stdout);
        server.stop();
    }
}

#[test]
fn a_key_that_others_may_read_is_found() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    let key = home.data().join("master.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let report = home.run(&["doctor"]).failed(1);
    assert_eq!(lines(&report, "FAIL").len(), 1, "{}", report.stdout);
    assert!(lines(&report, "FAIL")[0].contains("chmod 600"), "{}", report.stdout);
    assert!(home.run(&["serve"]).failed(1).stderr.contains("chmod 600"));
}

#[test]
fn another_master_key_is_found() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    let home = home.with("VAULT__MASTER_KEY", &"7f".repeat(32));
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("1 of 1 do not open"), "{}", report.stdout);
    let refused = home.run(&["serve"]).failed(1).stderr;
    assert!(refused.contains("not the master key that the data was made with"), "{refused}");
}

#[test]
fn a_lost_master_key_is_found_and_not_made_anew() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    fs::remove_file(home.data().join("master.key")).unwrap();
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("master.key is missing"), "{}", report.stdout);
    // Nor does a start make a new one, with which nothing old could be read.
    let refused = home.run(&["serve"]).failed(1).stderr;
    assert!(refused.contains("There is no master key at"), "{refused}");
    assert!(!home.data().join("master.key").exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_found() {
    let home = Home::sqlite();
    // Not even root can write here.
    let report = home.run(&["--data-dir", "/proc", "doctor"]);
    // The last of two options would win; clap refuses them, so the setting has to come from elsewhere.
    assert_eq!(report.code(), 2);
    fs::write(home.data(), "a file").unwrap();
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("is not a folder"), "{}", report.stdout);
    fs::remove_file(home.data()).unwrap();
    std::os::unix::fs::symlink("/proc", home.data()).unwrap();
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("is not writable"), "{}", report.stdout);
}

#[test]
fn a_port_of_somebody_else_is_found() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::sqlite().with("HTTP__LISTEN", &taken.local_addr().unwrap().to_string());
    let report = home.run(&["doctor"]).failed(1);
    let line = lines(&report, "FAIL")[0];
    assert!(line.contains("used by another program") && line.contains("http.listen"), "{}", report.stdout);
    // The system tells who it is: this very test.
    assert!(line.contains(&format!("process {}", std::process::id())), "{line}");
    let refused = home.run(&["serve"]).failed(1);
    assert!(refused.stderr.contains("Another program uses it"), "{}", refused.stderr);
}

/// rules: CLI-20
#[test]
fn a_server_of_another_folder_is_another_program() {
    let listen = format!("127.0.0.1:{}", free_port());
    let (other, home) =
        (Home::sqlite().with("HTTP__LISTEN", &listen), Home::sqlite().with("HTTP__LISTEN", &listen));
    let server = other.serve();
    assert!(other.run(&["doctor"]).succeeded().stdout.contains("is served by Agent Mailbox"));
    for has_store in [false, true] {
        if has_store {
            home.create_account("ada@example.com", "free");
        }
        let report = home.run(&["doctor"]).failed(1);
        let line = lines(&report, "FAIL")[0];
        assert!(line.contains("another Agent Mailbox"), "{}", report.stdout);
        assert!(line.contains(other.data().to_str().unwrap()), "{line}");
        assert!(line.contains(home.data().to_str().unwrap()), "{line}");
    }
    server.stop();
    assert!(home.run(&["doctor"]).succeeded().stdout.contains(" is free"));
}

/// rules: CLI-10, CLI-21
#[test]
fn programs_get_the_report_as_json() {
    let home = Home::sqlite();
    let fine = home.run(&["doctor", "--json"]).succeeded();
    let report = fine.json();
    assert_eq!((&report["ok"], &report["failures"]), (&json!(true), &json!(0)), "{report}");
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(report["passed"], checks.iter().filter(|check| check["status"] == "ok").count());
    assert!(
        checks.iter().all(|check| check["check"].is_string() && check["message"].is_string()),
        "{report}"
    );
    assert_eq!(fine.stderr, "");
    let home = home.with("LOG__LEVEL", "loud");
    let report = home.run(&["doctor", "--json"]).failed(1).json();
    assert_eq!((&report["ok"], &report["checks"][0]["status"]), (&json!(false), &json!("fail")), "{report}");
}

#[test]
fn mistakes_in_the_configuration_come_first() {
    let home = Home::sqlite().with("LOG__LEVEL", "loud");
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("log.level"), "{}", report.stdout);
}

#[test]
fn a_public_address_that_misleads_is_pointed_out() {
    let listen = format!("0.0.0.0:{}", free_port());
    let home = Home::sqlite().with("HTTP__LISTEN", &listen);
    assert!(lines(&home.run(&["doctor"]).succeeded(), "warn")[0].contains("set http.public_url"));
    let home = home.with("HTTP__PUBLIC_URL", "http://mail.example.com");
    assert!(lines(&home.run(&["doctor"]).succeeded(), "warn")[0].contains("not encrypted"));
    let home = home.with("HTTP__PUBLIC_URL", "https://mail.example.com");
    assert_eq!(lines(&home.run(&["doctor"]).succeeded(), "warn"), [""; 0]);
}

#[test]
fn a_superuser_of_postgresql_is_found() {
    let (Some(home), Ok(superuser)) =
        (Home::postgres(), std::env::var("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER"))
    else {
        return;
    };
    let store::DatabaseLocation::Postgres(store::PostgresLocation { url, .. }) = home.database() else {
        panic!("not PostgreSQL")
    };
    let (_, database) = url.rsplit_once('/').unwrap();
    let (server, _) = superuser.rsplit_once('/').unwrap();
    let home = home.with("DATABASE__URL", &format!("{server}/{database}"));
    let report = home.run(&["doctor"]).failed(1);
    assert!(lines(&report, "FAIL")[0].contains("BYPASSRLS"), "{}", report.stdout);
}
