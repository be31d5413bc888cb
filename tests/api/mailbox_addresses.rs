//! Which addresses a mailbox can have, who has them, and what is left of a mailbox that was deleted.

use std::collections::BTreeMap;

use model::Plan;
use operations::maintenance;
use serde_json::json;
use testkit::{Engine, Server, ServerOptions, Tenant, both_engines};

use super::help::{assert_missing, assert_refused, path_of};

const ALL: &str = "/api/v1/mailboxes";
const TAKEN: &str = r#"{"error":"This address is already in use.","code":"mailbox_exists"}"#;

const LENGTH: &str = "The mailbox name must have 5 to 30 characters.";
const SEPARATOR: &str =
    "The mailbox name must begin and end with a letter or digit and must not have two separators in a row.";
const DOTS: &str = "The part before the @ must not begin or end with a dot or have two dots in a row.";
const AT: &str = "The address must have exactly one @, as in name@example.com.";

/// Addresses that cannot be had, and why.
const REFUSED: [(&str, &str); 23] = [
    ("a@b", "this server serves agents.test, second.test, not b"),
    ("hello@example.com", "this server serves agents.test, second.test, not example.com"),
    ("hello@sub.agents.test", "this server serves agents.test, second.test, not sub.agents.test"),
    ("hello@agents.test.evil.test", "this server serves agents.test, second.test, not agents.test.evil.test"),
    ("abcd@agents.test", LENGTH),
    ("a123456789a123456789a123456789a@agents.test", LENGTH),
    (".abcde@agents.test", DOTS),
    ("abc..def@agents.test", DOTS),
    ("_abcde@agents.test", SEPARATOR),
    ("abcde-@agents.test", SEPARATOR),
    ("abc._def@agents.test", SEPARATOR),
    ("a--bcd@agents.test", SEPARATOR),
    (
        "hello+tag@agents.test",
        "The mailbox name may hold letters a to z, digits, dots, underscores and hyphens, but not '+'.",
    ),
    (
        "hellö@agents.test",
        "The mailbox name may hold letters a to z, digits, dots, underscores and hyphens, but not 'ö'.",
    ),
    (
        "he\u{430}lo@agents.test",
        "The mailbox name may hold letters a to z, digits, dots, underscores and hyphens, but not '\u{430}'.",
    ),
    ("hello world@agents.test", "The part before the @ must not contain ' '."),
    ("hello\r\n@agents.test", "The part before the @ must not contain '\\r'."),
    ("\"hello\"@agents.test", "An address with quotation marks before the @ is not supported."),
    ("hello", AT),
    ("he@llo@agents.test", AT),
    ("@agents.test", "The address needs a name before the @, as in name@example.com."),
    ("hello@", "The part after the @ must be a domain name such as example.com."),
    ("hello@[127.0.0.1]", "The part after the @ must be a domain name, not an IP address."),
];

/// Names that nobody can have, in spellings that look alike.
const RESERVED: [&str; 21] = [
    "admin",
    "ADMIN",
    "postmaster",
    "PostMaster",
    "post-master",
    "p.o.s.t.m.a.s.t.e.r",
    "abuse",
    "a_buse",
    "support",
    "sup.port",
    "security",
    "SECURI-TY",
    "no-reply",
    "noreply",
    "mailer-daemon",
    "root.",
    "r.o.o.t",
    "webmaster",
    "hostmaster",
    "billing",
    "i-n-f-o",
];

/// rules: MBX-4, MBX-5, MBX-6
#[both_engines]
async fn an_address_must_be_one_that_the_server_hosts(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    for (email, message) in REFUSED {
        let answer = tenant.key.post(ALL, json!({ "name": "A", "email": email })).await;
        assert_refused(&answer, &[("email", message)]);
    }
    for name in RESERVED {
        let answer =
            tenant.key.post(ALL, json!({ "name": "A", "email": format!("{name}@agents.test") })).await;
        answer.expect(400, "validation_failed");
    }
    let answer = tenant.key.post(ALL, json!({ "name": "A", "email": "Ad.min@agents.test" })).await;
    assert_refused(&answer, &[("email", "The mailbox name \"Ad.min\" is reserved.")]);
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
    let thirty = "a".repeat(30);
    for good in ["abcde", &thirty, "a.b-c_d", "12345", "Admin5", "supporter", "0.0.0"] {
        let answer =
            tenant.key.post(ALL, json!({ "name": "A", "email": format!(" {good}@Agents.Test ") })).await;
        assert_eq!(answer.status, 201, "{good}: {}", answer.text());
        assert_eq!(answer.json()["email"], format!("{}@agents.test", good.to_lowercase()));
    }
}

/// rules: MBX-7, HTTP-5
#[both_engines]
async fn an_address_that_exists_is_refused_alike_for_everybody(engine: Engine) {
    let server = Server::start(engine).await;
    let (owner, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    let body = |email: &str| json!({ "name": "A", "email": email });
    owner.key.post(ALL, body("first.one@agents.test")).await.ok();
    for email in ["first.one@agents.test", "FIRST.ONE@AGENTS.TEST", "First.One@agents.test."] {
        for key in [&owner.key, &other.key] {
            let answer = key.post(ALL, body(email)).await;
            assert_eq!((answer.status, answer.text().as_str()), (409, TAKEN));
        }
    }
    // Addresses are compared as written: another domain, or other separators, are another address.
    for email in ["first.one@second.test", "first-one@agents.test"] {
        assert_eq!(other.key.post(ALL, body(email)).await.status, 201);
    }
    assert_eq!(owner.key.get(ALL).await.ok().as_array().unwrap().len(), 1);
}

/// Makes one address with many calls at once, in many spellings, and tells how often each status came.
async fn race(tenants: &[Tenant], calls: usize, email: &str) -> BTreeMap<u16, usize> {
    let mut running = tokio::task::JoinSet::new();
    for number in 0..calls {
        let key = tenants[number % tenants.len()].key.clone();
        let email = if number % 3 == 0 { email.to_uppercase() } else { email.to_owned() };
        running.spawn(async move { key.post(ALL, json!({ "name": "Racer", "email": email })).await });
    }
    let mut counts = BTreeMap::new();
    for answer in running.join_all().await {
        assert!(answer.status == 201 || answer.text() == TAKEN, "{}", answer.text());
        *counts.entry(answer.status).or_default() += 1;
    }
    counts
}

/// rules: MBX-7
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_calls_for_one_address_exactly_one_succeeds(engine: Engine) {
    let server = Server::start(engine).await;
    let one = [server.tenant(Plan::Enterprise).await];
    assert_eq!(race(&one, 30, "in.one.workspace@agents.test").await, [(201, 1), (409, 29)].into());
    let mut many = Vec::new();
    for _ in 0..6 {
        many.push(server.tenant(Plan::Enterprise).await);
    }
    for round in 0..5 {
        let email = format!("in.many.{round}@agents.test");
        assert_eq!(race(&many, 30, &email).await, [(201, 1), (409, 29)].into());
    }
    let mut found = 0;
    for tenant in &many {
        found += tenant.key.get(ALL).await.ok().as_array().unwrap().len();
    }
    assert_eq!(found, 5);
}

/// rules: MBX-11
#[both_engines]
async fn a_deleted_mailbox_is_gone_at_once_and_erased_after_its_grace(engine: Engine) {
    for seconds in [7 * 86_400, 60] {
        let options = ServerOptions { mailbox_grace_seconds: seconds, ..ServerOptions::default() };
        let server = Server::with(engine, options).await;
        let tenant = server.tenant(Plan::Free).await;
        let made = tenant.key.post(ALL, json!({ "name": "A", "email": "short.life@agents.test" })).await.ok();
        let path = path_of(&made);
        let label = tenant.key.post(&format!("{path}/custom-labels"), json!({ "name": "L" })).await.ok();
        let label = format!("{path}/custom-labels/{}", label["id"].as_str().unwrap());
        tenant.key.post(&format!("{path}/folders"), json!({ "name": "Mine" })).await.ok();

        let deleted = tenant.key.delete(&path).await;
        assert_eq!((deleted.status, deleted.bytes.len()), (204, 0));
        for name in [made["public_id"].as_str(), made["id"].as_str(), Some("short.life@agents.test")] {
            for inside in ["", "/folders", "/custom-labels", "/storage"] {
                let answer = tenant.key.get(&format!("{ALL}/{}{inside}", name.unwrap())).await;
                assert_missing(&answer, "Mailbox");
            }
        }
        assert_missing(&tenant.key.delete(&path).await, "Mailbox");
        assert_missing(&tenant.key.put(&path, json!({ "name": "B" })).await, "Mailbox");
        assert_missing(
            &tenant.key.put(&format!("{path}/folders/mine"), json!({ "name": "B" })).await,
            "Mailbox",
        );
        assert_missing(&tenant.key.delete(&label).await, "Mailbox");
        assert_eq!(tenant.key.get(ALL).await.text(), "[]");
        let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
        assert_eq!(tenant.key.get(&workspace).await.ok()["mailbox_count"], 0);

        server.clock.advance(seconds - 1);
        maintenance::run(&server.app).await.unwrap();
        assert_eq!(rows(&server).await, [("mailbox", 1), ("folder", 8), ("label", 1)].into());
        server.clock.advance(1);
        maintenance::run(&server.app).await.unwrap();
        assert_eq!(rows(&server).await, [("mailbox", 0), ("folder", 0), ("label", 0)].into());
    }
}

/// What is left in the store of all mailboxes together.
async fn rows(server: &Server) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for table in ["mailbox", "folder", "label"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let found: Option<(i64,)> =
            server.app.db().system_read(async move |tx| tx.one(&sql, &[]).await).await.unwrap();
        counts.insert(table, found.unwrap().0);
    }
    counts
}

/// rules: MBX-12
#[both_engines]
async fn the_address_of_a_deleted_mailbox_stays_with_its_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let (owner, other) = (server.tenant(Plan::Enterprise).await, server.tenant(Plan::Enterprise).await);
    let body = |email: &str| json!({ "name": "A", "email": email });
    let first = owner.key.post(ALL, body("come.back@agents.test")).await.ok();
    owner.key.delete(&path_of(&first)).await.ok();
    let answer = other.key.post(ALL, body("COME.back@agents.test")).await;
    assert_eq!((answer.status, answer.text().as_str()), (409, TAKEN));

    // Its own workspace has it again, as another mailbox; then it is taken as before.
    let second = owner.key.post(ALL, body("come.back@agents.test")).await.ok();
    assert_ne!(second["id"], first["id"]);
    let found = owner.key.get(&format!("{ALL}/come.back@agents.test")).await.ok();
    assert_eq!(found["id"], second["id"]);
    owner.key.post(ALL, body("come.back@agents.test")).await.expect(409, "mailbox_exists");
    owner.key.delete(&path_of(&second)).await.ok();

    // Also when nothing else is left of the mailboxes.
    server.clock.advance(8 * 86_400);
    maintenance::run(&server.app).await.unwrap();
    assert_eq!(rows(&server).await["mailbox"], 0);
    other.key.post(ALL, body("come.back@agents.test")).await.expect(409, "mailbox_exists");
    assert_eq!(owner.key.post(ALL, body("come.back@agents.test")).await.status, 201);
    maintenance::run(&server.app).await.unwrap();
    assert_eq!(rows(&server).await["mailbox"], 1);
}
