//! A node on a machine whose clock is wrong by ten minutes, beside one whose clock is right: it is named, and harms nobody.
//!
//! These nodes have clocks that run, and a database whose clock is right. What takes hours is brought about by changing
//! the stored times.

use std::{sync::Arc, time::Duration};

use model::{Limit, Plan, Role, Timestamp, api_keys::NewApiKey, sending::OutboundMode};
use operations::{
    Outbound, admin, confirmations, maintenance, nodes, scheduled_sends,
    sending::worker::{self, Dispatcher},
};
use serde_json::{Value, json};
use store::SystemTx;
use testkit::{Caller, Hop, Logs, PASSWORD, Server, ServerOptions, Tenant};
use tokio::sync::Semaphore;

use super::{
    delivery::{mail, states},
    help::encoded,
    mails::{Inbox, plain, texts},
    nodes::list as list_nodes,
};

const TEN_MINUTES: i64 = 600;
/// How long a test waits for anything.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

fn options(seed: u64) -> ServerOptions {
    let mut options = ServerOptions { seed, ..ServerOptions::default() };
    options.plans.free.mailboxes = Limit::UNLIMITED;
    options
}

/// A node whose clock is right, and one whose clock is so many seconds ahead.
async fn pair(ahead: i64) -> (Server, Server) {
    let right = Server::on_machine(0, options(1)).await;
    let wrong = right.another_machine(ahead, options(2)).await;
    (right, wrong)
}

/// Changes what is stored, and returns how many rows that were. `$1` is the right time, in microseconds.
async fn change(server: &Server, sql: &'static str) -> u64 {
    let now = server.app.now();
    let change = async move |tx: &mut SystemTx| tx.run(sql, &[now.into()]).await;
    let changed: store::Result<u64> = server.app.db().system_write(change).await;
    changed.unwrap()
}

async fn count(server: &Server, sql: &'static str) -> i64 {
    let count = async move |tx: &mut SystemTx| tx.one::<(i64,)>(sql, &[]).await;
    let found: store::Result<_> = server.app.db().system_read(count).await;
    found.unwrap().unwrap().0
}

async fn readiness(server: &Server) -> (Value, Value) {
    let answer = server.anonymous().get("/readyz").await.ok();
    (answer["status"].clone(), answer["clock_ahead_seconds"].clone())
}

/// rules: STORE-17, API-9
#[tokio::test]
async fn a_wrong_clock_is_named_until_it_is_right() {
    for (ahead, direction) in [(TEN_MINUTES, "ahead of"), (-TEN_MINUTES, "behind")] {
        let logs = Logs::catch();
        let lines = |text: &str| logs.text().lines().filter(|line| line.contains(text)).count();
        let (right, wrong) = pair(ahead).await;
        for server in [&right, &wrong, &right, &wrong] {
            nodes::announce_once(&server.app).await.unwrap();
        }
        assert_eq!(lines("the clock of this machine differs from the database's"), 1, "{}", logs.text());
        let listed = list_nodes(&right).await;
        let faults: Vec<_> = listed.iter().flat_map(|node| &node.faults).collect();
        assert!(
            faults.len() == 1 && faults[0].contains(&format!("s {direction} the database's")),
            "{faults:?}"
        );
        let off = listed.iter().map(|node| node.clock_ahead_seconds.abs()).max().unwrap();
        assert!((TEN_MINUTES - 20..=TEN_MINUTES).contains(&off), "{off}");
        assert_eq!(readiness(&right).await, (json!("ready"), Value::Null));
        let (status, shown) = readiness(&wrong).await;
        assert_eq!((status, shown.as_i64().unwrap().signum()), (json!("degraded"), ahead.signum()));
        // The operator sets the clock while the node runs.
        wrong.clock.advance(-ahead);
        nodes::announce_once(&wrong.app).await.unwrap();
        assert_eq!(lines("the clock of this machine agrees with the database's again"), 1, "{}", logs.text());
        assert_eq!(readiness(&wrong).await, (json!("ready"), Value::Null));
        let listed = list_nodes(&right).await;
        assert!(listed.iter().all(|node| node.faults.is_empty()), "{listed:?}");
    }
}

/// A clock that is set while its node runs changes nothing either.
/// rules: STORE-17
#[tokio::test]
async fn all_nodes_have_the_time_of_the_database() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let (right, wrong) = pair(ahead).await;
        let between = async || {
            let (before, there, after) = (right.app.now(), wrong.app.now(), right.app.now());
            // What the measurements at the start could not know.
            let (before, after) = (before.plus_seconds(-1), after.plus_seconds(1));
            assert!(before <= there && there <= after, "{before} {there} {after}");
        };
        between().await;
        wrong.clock.advance(-ahead * 7);
        between().await;
        nodes::announce_once(&wrong.app).await.unwrap();
        between().await;
    }
}

/// rules: STORE-17, DRAFT-11
#[tokio::test]
async fn scheduled_sends_leave_at_their_time() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let (right, wrong) = pair(ahead).await;
        let (from, to) = (Inbox::new(&right).await, Inbox::new(&right).await);
        let there = wrong.key(from.key.secret());
        let schedule = async |subject: &str, minutes: i64| {
            let at = right.app.now().plus_seconds(minutes * 60).to_string();
            let body = json!({ "to": to.address, "subject": subject, "body": "x", "scheduled_send_at": at });
            there.post(&format!("{}/scheduled-sends", from.path), body).await.ok()
        };
        schedule("due", 4).await;
        let due = "UPDATE draft SET scheduled_at = CAST($1 AS BIGINT) - 1000000";
        assert_eq!(change(&right, due).await, 1);
        let later = schedule("in five minutes", 5).await;
        let next = scheduled_sends::worker::run_due(&wrong.app).await.unwrap();
        assert_eq!(json!(next.unwrap().to_string()), later["scheduled_send_at"]);
        let arrived = to.get("emails").await;
        assert_eq!(texts(&arrived["emails"], "subject"), ["due"], "{ahead}");
    }
}

/// Two nodes with one hop, which keeps every message until it is let go.
async fn senders(ahead: i64, hop: &Hop) -> (Server, Server) {
    let options = |seed| {
        let outbound = Outbound::new(OutboundMode::Relay);
        ServerOptions { outbound, next_hop: Some(hop.clone()), ..options(seed) }
    };
    let right = Server::on_machine(0, options(1)).await;
    let wrong = right.another_machine(ahead, options(2)).await;
    (right, wrong)
}

async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Queues a message, without waiting for what becomes of it.
async fn send(inbox: &Inbox) -> Value {
    let key = inbox.key.with("prefer", "respond-async");
    key.post(&format!("{}/emails", inbox.path), mail("a@remote.test")).await.ok()
}

/// What one node is sending is not sent by the other as well, whichever of them has the wrong clock.
/// rules: STORE-17, SEND-9
#[tokio::test]
async fn claims_are_neither_stolen_nor_kept() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        for wrong_begins in [true, false] {
            let hop = Hop::default();
            let (right, wrong) = senders(ahead, &hop).await;
            let inbox = Inbox::new(&right).await;
            let gate = Arc::new(Semaphore::new(0));
            hop.gated_by(gate.clone());
            let sent = send(&inbox).await;
            let id = sent["id"].as_str().unwrap().to_owned();
            let (first, second) = if wrong_begins { (&wrong, &right) } else { (&right, &wrong) };
            let _running = [first, second].map(|server| Dispatcher::new(&server.app));
            worker::start_due(&first.app).await.unwrap();
            until("the first node sends it", async || hop.waiting() == 1).await;
            worker::renew(&first.app).await.unwrap();
            for _ in 0..3 {
                worker::start_due(&second.app).await.unwrap();
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            assert_eq!(hop.waiting(), 1, "it is sent twice: {ahead} {wrong_begins}");
            gate.add_permits(10);
            until("it is sent", async || states(&inbox, &id).await.0 == "sent").await;
            assert_eq!(hop.handovers().len(), 1);
        }
    }
}

/// A claim of a node that died ends when it should, and no ten minutes later.
/// rules: STORE-17
#[tokio::test]
async fn a_dead_nodes_claims_expire_in_time() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let hop = Hop::default();
        let (right, wrong) = senders(ahead, &hop).await;
        let inbox = Inbox::new(&right).await;
        let gate = Arc::new(Semaphore::new(0));
        hop.gated_by(gate.clone());
        send(&inbox).await;
        let _running = Dispatcher::new(&wrong.app);
        worker::start_due(&wrong.app).await.unwrap();
        until("the other node sends it", async || hop.waiting() == 1).await;
        let bounded = "UPDATE delivery SET attempts = attempts WHERE state = 'queued'
            AND claimed_until BETWEEN $1 AND CAST($1 AS BIGINT) + 120000000";
        assert_eq!(change(&right, bounded).await, 1, "claimed for as long as a claim lasts: {ahead}");
        gate.add_permits(10);
    }
}

async fn wait(key: &Caller, inbox: &Inbox, after: &Value) -> Value {
    let body = json!({ "after": after, "timeout_seconds": 20 });
    key.post(&format!("{}/emails/wait", inbox.path), body).await.ok()
}

/// Ids and times are ordered as things happened, so what a wait or a list continues from loses nothing.
/// rules: STORE-17, READ-22
#[tokio::test]
async fn waits_and_lists_lose_nothing() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let (right, wrong) = pair(ahead).await;
        let inbox = Inbox::new(&right).await;
        let there = wrong.key(inbox.key.secret());
        let mut subjects = Vec::new();
        let mut position = json!(right.app.now().to_string());
        for round in 0..3 {
            for (server, listener) in [(&wrong, &inbox.key), (&right, &there)] {
                // A time is shown in milliseconds.
                tokio::time::sleep(Duration::from_millis(5)).await;
                let subject = format!("Round {round} {}", subjects.len());
                let id = server.receive(&inbox.address, plain(&subject, "x")).await;
                let found = wait(listener, &inbox, &position).await;
                assert_eq!(
                    (&found["outcome"], &found["matches"]),
                    (&json!("matched"), &json!([id])),
                    "{ahead}"
                );
                position = found["cursor"].clone();
                subjects.push(subject);
            }
        }
        subjects.reverse();
        for key in [&inbox.key, &there] {
            let (mut listed, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = key.get(&format!("{}/emails?limit=1{cursor}", inbox.path)).await.ok();
                listed.extend(texts(&page["emails"], "subject"));
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={}", encoded(next));
            }
            assert_eq!(listed, subjects, "{ahead}");
        }
    }
}

/// A key of a workspace that ends in a while.
async fn key_until(server: &Server, tenant: &Tenant, end: Timestamp) -> String {
    let key = NewApiKey { expires_at: Some(end), ..NewApiKey::new("k", Role::Admin) };
    let made = admin::create_key(&server.app, tenant.workspace.clone(), key, &testkit::operator()).await;
    made.unwrap().key
}

/// rules: STORE-17, AUTH-9, AUTH-17
#[tokio::test]
async fn keys_and_sessions_end_when_they_should_and_not_before() {
    const ME: &str = "/api/console/me";
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let (right, wrong) = pair(ahead).await;
        let tenant = right.tenant(Plan::Enterprise).await;
        let log_in = async || {
            let body = json!({ "email": tenant.email, "password": PASSWORD });
            right.anonymous().post("/api/console/login", body).await.session_secret()
        };
        let in_five_minutes = right.app.now().plus_seconds(300);
        // Two that have ended a minute ago, which the wrong node is the first to see.
        let (old_key, old_session) = (key_until(&right, &tenant, in_five_minutes).await, log_in().await);
        let ended =
            "UPDATE api_key SET expires_at = CAST($1 AS BIGINT) - 60000000 WHERE expires_at IS NOT NULL";
        assert_eq!(change(&right, ended).await, 1);
        let ended = "UPDATE session SET expires_at = CAST($1 AS BIGINT) - 60000000";
        assert_eq!(change(&right, ended).await, 1);
        wrong.key(&old_key).get("/api/v1/mailboxes").await.expect(401, "unauthorized");
        wrong.cookie(&old_session).get(ME).await.expect(401, "unauthorized");
        // And two that have five minutes left.
        let (key, session) = (key_until(&right, &tenant, in_five_minutes).await, log_in().await);
        let nearly = "UPDATE session SET expires_at = CAST($1 AS BIGINT) + 300000000 WHERE expires_at > $1";
        assert_eq!(change(&right, nearly).await, 1);
        let made = key_until(&wrong, &tenant, in_five_minutes).await;
        maintenance::run(&wrong.app).await.unwrap();
        for server in [&wrong, &right] {
            server.key(&key).get("/api/v1/mailboxes").await.ok();
            server.key(&made).get("/api/v1/mailboxes").await.ok();
            server.cookie(&session).get(ME).await.ok();
        }
        // A token for a second call, which lasts five minutes.
        for (issuer, redeemer) in [(&right, &wrong), (&wrong, &right)] {
            let token = confirmations::issue(&issuer.app, &tenant.workspace, [7; 32]).await.unwrap().token;
            let redeemed =
                confirmations::redeem(&redeemer.app, &tenant.workspace, &token, [7; 32], None).await;
            assert!(redeemed.unwrap(), "{ahead}");
        }
    }
}

/// rules: STORE-17, IDEM-9, STORE-11
#[tokio::test]
async fn nothing_is_deleted_before_its_time() {
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let (right, wrong) = pair(ahead).await;
        let tenant = right.tenant(Plan::Enterprise).await;
        let create = async |server: &Server, name: &str| {
            let key = server.key(tenant.key.secret()).with("idempotency-key", name);
            key.post("/api/v1/mailboxes", json!({ "name": name })).await
        };
        let first = create(&right, "kept").await;
        let doomed = create(&right, "deleted").await.ok();
        tenant.key.delete(&super::help::path_of(&doomed)).await.ok();
        // Five minutes before the end of the day, of the week, of the ninety days.
        for sql in [
            "UPDATE idempotency SET created_at = CAST($1 AS BIGINT) - 86100000000",
            "UPDATE mailbox SET deleted_at = CAST($1 AS BIGINT) - 604500000000 WHERE deleted_at IS NOT NULL",
            "UPDATE audit SET at = CAST($1 AS BIGINT) - 7775700000000",
        ] {
            assert!(change(&right, sql).await > 0, "{sql}");
        }
        let audited = count(&right, "SELECT count(*) FROM audit").await;
        maintenance::run_for_all(&wrong.app).await.unwrap();
        let again = create(&wrong, "kept").await;
        assert_eq!((again.header("idempotent-replayed"), &again.bytes), ("true", &first.bytes), "{ahead}");
        assert_eq!(count(&right, "SELECT count(*) FROM mailbox").await, 2, "{ahead}");
        assert_eq!(count(&right, "SELECT count(*) FROM audit").await, audited, "{ahead}");
        // And not ten minutes after it.
        for sql in [
            "UPDATE idempotency SET created_at = CAST($1 AS BIGINT) - 86460000000",
            "UPDATE mailbox SET deleted_at = CAST($1 AS BIGINT) - 604860000000 WHERE deleted_at IS NOT NULL",
        ] {
            change(&right, sql).await;
        }
        maintenance::run_for_all(&wrong.app).await.unwrap();
        assert_eq!(count(&right, "SELECT count(*) FROM idempotency").await, 0, "{ahead}");
        assert_eq!(count(&right, "SELECT count(*) FROM mailbox").await, 1, "{ahead}");
    }
}

/// The window is the same minute on both nodes: the one whose clock is wrong neither begins another nor ends this one.
/// rules: STORE-17, METER-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_limits_hold() {
    let options = |seed| {
        let mut options = options(seed);
        options.plans.free.rpm = Limit::of(40);
        options
    };
    for ahead in [TEN_MINUTES, -TEN_MINUTES] {
        let right = Server::on_machine(0, options(1)).await;
        let wrong = right.another_machine(ahead, options(2)).await;
        // A window that ends half-way would let more through, rightly.
        loop {
            let tenant = right.tenant(Plan::Free).await;
            let began = right.app.now().minute();
            let keys = [&right, &wrong].map(|server| server.key(tenant.key.secret()));
            let mut passed = 0;
            for number in 0..60 {
                let answer = keys[number / 3 % 2].get("/api/v1/rag/credentials").await;
                assert!([200, 429].contains(&answer.status), "{}", answer.text());
                passed += usize::from(answer.status == 200);
            }
            if right.app.now().minute() == began {
                assert_eq!(passed, 40, "{ahead}");
                break;
            }
        }
    }
}
