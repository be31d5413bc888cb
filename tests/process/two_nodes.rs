//! Two nodes under load, while PostgreSQL goes and comes back, one of them ends, or the schema becomes newer: nothing that
//! was acknowledged is lost, and both serve again within seconds.

use std::{
    collections::BTreeSet,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use store::{DatabaseLocation, Db};

use super::{
    Home, Server, execute,
    faults::OwnPostgres,
    load::{Addresses, Load, StopAtEnd, WAIT_LIMIT, check},
    mail::{Inbox, Smtp, message},
    outbound::{Sink, relaying},
    try_post,
};

/// How long service may be away after PostgreSQL is back: five seconds, and as much again for a machine that does other
/// things as well.
const MAX_AWAY: Duration = Duration::from_secs(10);
/// A process that is told to end has so much time for what it has begun, and a moment more to stop.
const MAX_DRAIN: Duration = Duration::from_secs(11);

fn url_of(home: &Home) -> String {
    let DatabaseLocation::Postgres(location) = home.database() else { unreachable!() };
    location.url
}

/// PostgreSQL goes and comes back in the middle of everything.
fn while_postgresql_is_away(goes: impl FnOnce(&mut OwnPostgres)) {
    let mut postgres = OwnPostgres::durable();
    let home = Home::postgres_at(&postgres.url).with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let (one, two) = (home.serve(), home.serve());
    let inbox = Inbox::new(&home, &one, "enterprise");
    let (at_one, at_two) = (Addresses::of(&one), Addresses::of(&two));
    let loads = [Load::new("one"), Load::new("two")];
    let loads = [&loads[0], &loads[1]];
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&loads);
        loads[0].start(scope, &at_one, &inbox);
        loads[1].start(scope, &at_two, &inbox);
        for load in loads {
            load.wait_for(50);
        }
        for load in loads {
            load.wait_for_drafts(5);
        }
        goes(&mut postgres);
        let back = Instant::now();
        for load in loads {
            load.wait_for(1);
        }
        for load in loads {
            load.wait_for_drafts(1);
        }
        let away = back.elapsed();
        println!("both nodes answered {away:?} after PostgreSQL was back");
        assert!(away < MAX_AWAY, "{away:?}");
        for load in loads {
            load.wait_for(25);
        }
    });
    check(&one, &inbox, &loads);
    check(&two, &inbox, &loads);
}

/// rules: STORE-7, RECV-26
#[test]
fn two_nodes_lose_nothing_when_postgresql_is_killed() {
    while_postgresql_is_away(|postgres| {
        postgres.signal("KILL");
        postgres.start_again();
    });
}

/// rules: STORE-7, RECV-26
#[test]
fn two_nodes_lose_nothing_when_postgresql_is_restarted() {
    while_postgresql_is_away(|postgres| {
        // It ends all sessions, in the middle of whatever they do.
        postgres.signal("INT");
        postgres.start_again();
    });
}

/// rules: STORE-7, RECV-26
#[test]
fn two_nodes_lose_nothing_when_postgresql_is_stopped_for_half_a_minute() {
    while_postgresql_is_away(|postgres| {
        postgres.signal("STOP");
        std::thread::sleep(Duration::from_secs(30));
        postgres.signal("CONT");
    });
}

/// Sends messages to another server, each until it is acknowledged, while there are two nodes or one.
fn send_all(servers: [&Server; 2], inbox: &Inbox, number: usize) {
    for message in 0..number {
        let (subject, started) = (format!("out-{message}"), Instant::now());
        let input = json!({ "to": "out@remote.test", "subject": subject, "text": "x" });
        let path = format!("{}/emails", inbox.path);
        // After a failure at the other node.
        for attempt in 0.. {
            let server = servers[(message + attempt) % 2];
            match try_post(server.address, &inbox.key, &path, &subject, &input) {
                Some((202, _)) => break,
                Some((status, body)) => assert!([503, 409].contains(&status), "{status}: {body}"),
                None => {}
            }
            assert!(started.elapsed() < WAIT_LIMIT, "{subject} is not taken");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// One of two nodes is told to end: its clients only get errors after which they can try again, and the other node goes on
/// with everything.
/// rules: CLI-12, STORE-1
#[test]
fn a_node_that_ends_under_load_leaves_everything_to_the_other() {
    let Some(home) = Home::postgres() else { return };
    let sink = Sink::start();
    let home = relaying(home, &sink).with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let (mut one, two) = (home.serve(), home.serve());
    let inbox = Inbox::new(&home, &one, "enterprise");
    let (at_one, at_two) = (Addresses::of(&one), Addresses::of(&two));
    let loads = [Load::new("one"), Load::new("two")];
    let loads = [&loads[0], &loads[1]];
    let sent = 60;
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&loads);
        loads[0].start(scope, &at_one, &inbox);
        loads[1].start(scope, &at_two, &inbox);
        for load in loads {
            load.wait_for(50);
        }
        let taken = sink.taken().len();
        std::thread::scope(|sending| {
            let all = sending.spawn(|| send_all([&one, &two], &inbox, sent));
            while sink.taken().len() < taken + 10 {
                assert!(!all.is_finished(), "too few messages to tell");
                std::thread::sleep(Duration::from_millis(5));
            }
            one.signal("TERM");
        });
        let ended = one.wait(MAX_DRAIN);
        assert_eq!(ended.code(), Some(0));
        loads[1].wait_for(50);
        loads[1].wait_for_drafts(5);
    });
    let check_sent = || {
        let subjects = sink.taken().into_iter().filter_map(|mail| {
            mail.content.lines().find_map(|line| line.strip_prefix("Subject: ").map(ToOwned::to_owned))
        });
        let mut subjects: Vec<String> = subjects.filter(|subject| subject.starts_with("out-")).collect();
        subjects.sort();
        let all = subjects.len();
        subjects.dedup();
        (all, subjects.len())
    };
    let started = Instant::now();
    while check_sent().1 < sent {
        assert!(started.elapsed() < WAIT_LIMIT, "{:?}", check_sent());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(check_sent(), (sent, sent), "none is sent twice");
    let mine = |mail: &Value| !mail["subject"].as_str().unwrap().starts_with("out-");
    assert!(inbox.list(&two).iter().any(mine));
    check(&two, &inbox, &loads);
}

/// Both nodes start on the data of the version before, while clients try to reach them: the schema is migrated once, what
/// was there is there, and so is all that comes.
/// rules: STORE-16
#[test]
fn two_nodes_migrate_old_data_under_load() {
    let (Some(older), Some(home)) = (Home::postgres(), Home::postgres()) else { return };
    let superuser = std::env::var("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER");
    let Ok(superuser) = superuser else { return println!("skipped: copying data needs an administrator") };
    let home = home.with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let server = older.serve();
    let inbox = Inbox::new(&older, &server, "enterprise");
    for number in 0..30 {
        let sent = Smtp::connect(server.smtp).send(&inbox.address, &message(&format!("old {number}"), "x"));
        assert_eq!(sent.unwrap().0, 250);
    }
    server.stop();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let version = async || {
        let db = Db::open(&home.database()).await.unwrap();
        db.schema_version().await.unwrap()
    };
    runtime.block_on(async {
        let db = Db::open(&home.database()).await.unwrap();
        let now = model::Timestamp::from_micros(0);
        db.migrate_to(Db::newest_schema() - 1, now).await.unwrap();
    });
    copy_data(&superuser, &url_of(&older), &url_of(&home));
    for name in ["master.key", "blobs"] {
        home.make_folder();
        std::fs::rename(older.data().join(name), home.data().join(name)).unwrap();
    }
    let (http, smtp) = (super::free_port(), super::free_port());
    let (http, smtp) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{smtp}"));
    let addresses = Addresses::at(http.parse().unwrap(), smtp.parse().unwrap());
    let load = Load::new("new");
    let nodes = std::thread::scope(|scope| {
        let all = [&load];
        let _stop = StopAtEnd(&all);
        load.start(scope, &addresses, &inbox);
        let own = [("HTTP__LISTEN", http.as_str()), ("SMTP__LISTEN", smtp.as_str())];
        let (one, two) = (home.folder.path().join("one.log"), home.folder.path().join("two.log"));
        let one = scope.spawn({
            let home = &home;
            move || home.serve_with_own(&own, &one)
        });
        let two = home.serve_with_own(&[], &two);
        let one = one.join().unwrap();
        load.wait_for(25);
        load.wait_for_drafts(3);
        assert_eq!(runtime.block_on(version()), Db::newest_schema());
        [one, two]
    });
    for server in &nodes {
        check(server, &inbox, &[&load]);
        let all = inbox.list(server);
        let old = all.iter().filter(|mail| mail["subject"].as_str().unwrap().starts_with("old "));
        assert_eq!(old.count(), 30);
        assert_eq!(inbox.only(server, "old 7")["body"].as_str().map(str::trim), Some("x"));
    }
}

/// Copies the rows of a database into another one with an older schema, as far as that has their tables.
fn copy_data(superuser: &str, from: &str, to: &str) {
    let as_superuser = |url: &str| {
        let (server, _) = superuser.rsplit_once('/').unwrap();
        let name = url.rsplit_once('/').unwrap().1.split('?').next().unwrap().to_owned();
        format!("{server}/{name}")
    };
    drop_newer_columns(from, to);
    let copy = "(echo 'SET session_replication_role = replica;'; \
        pg_dump --data-only --column-inserts --exclude-table-data=schema_migration --exclude-table-data=migration \"$0\") | psql -q \"$1\" 2>&1";
    let copied =
        Command::new("sh").args(["-c", copy, &as_superuser(from), &as_superuser(to)]).output().unwrap();
    println!("{}", String::from_utf8_lossy(&copied.stdout).lines().take(5).collect::<Vec<_>>().join("\n"));
    assert!(copied.status.success(), "{copied:?}");
}

/// Drops what a database has in tables of an older schema that does not have it.
fn drop_newer_columns(newer: &str, older: &str) {
    let columns = |url: &str| -> BTreeSet<String> {
        let sql = "SELECT format('%I ALTER_DROP %I', table_name, column_name) FROM information_schema.columns
            WHERE table_schema = 'public'";
        let found = Command::new("psql").args(["-Atq", url, "-c", sql]).output().unwrap();
        assert!(found.status.success(), "{found:?}");
        String::from_utf8(found.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
    };
    let (new, old) = (columns(newer), columns(older));
    let table = |column: &str| column.split(' ').next().unwrap().to_owned();
    let tables: BTreeSet<String> = old.iter().map(|column| table(column)).collect();
    for column in new.difference(&old).filter(|column| tables.contains(&table(column))) {
        execute(newer, &format!("ALTER TABLE {}", column.replace("ALTER_DROP", "DROP COLUMN")));
    }
}

/// A newer program migrates the schema under load, in a way that this one can live with; then a node of this version is
/// started again. Both serve, and nothing is lost.
/// rules: STORE-16
#[test]
fn an_older_node_serves_again_beside_a_newer_one() {
    let Some(home) = Home::postgres() else { return };
    let home = home.with("SMTP__CONNECTIONS_PER_MINUTE", "100000");
    let (one, two) = (home.serve(), home.serve());
    let inbox = Inbox::new(&home, &one, "enterprise");
    let (at_one, at_two) = (Addresses::of(&one), Addresses::of(&two));
    let loads = [Load::new("one"), Load::new("two")];
    let loads = [&loads[0], &loads[1]];
    let one = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&loads);
        loads[0].start(scope, &at_one, &inbox);
        loads[1].start(scope, &at_two, &inbox);
        for load in loads {
            load.wait_for(25);
        }
        let current = Db::newest_schema();
        let newer = format!(
            "BEGIN; ALTER TABLE email ADD COLUMN next_thing TEXT;
             CREATE TABLE next_table (id TEXT NOT NULL PRIMARY KEY);
             INSERT INTO migration (version, name, checksum, applied_at, usable_since)
               VALUES ({}, 'next', 'x', 0, {current}); COMMIT",
            current + 1
        );
        execute(&url_of(&home), &newer);
        for load in loads {
            load.wait_for(25);
        }
        one.stop();
        loads[1].wait_for(10);
        let again = home.serve();
        at_one.change(&again);
        for load in loads {
            load.wait_for(25);
        }
        for load in loads {
            load.wait_for_drafts(3);
        }
        again
    });
    check(&one, &inbox, &loads);
    check(&two, &inbox, &loads);
}
