//! Keys that are narrowed: when they are made, and later, and what is stored of them.

use std::time::{Duration, Instant};

use model::{Limit, Plan};
use operations::secrets;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::{
    api_keys::make,
    help::{assert_missing, assert_refused, assert_refuses_fields, new_mailbox, path_of},
    people::at,
};

async fn start(engine: Engine) -> (Server, Tenant, Caller) {
    let mut options = ServerOptions::default();
    options.plans.developer.api_keys = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Developer).await;
    let session = server.log_in(&tenant).await;
    (server, tenant, session)
}

fn one(tenant: &Tenant, key: &Value) -> String {
    at(tenant, &format!("/api-keys/{}", key["id"].as_str().unwrap()))
}

/// rules: AUTH-29, AUTH-37
#[both_engines]
async fn a_key_is_made_for_some_scopes_and_mailboxes(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let first = new_mailbox(&tenant.key, "First").await;
    let second = new_mailbox(&tenant.key, "Second").await;
    let made = make(
        &tenant,
        &session,
        json!({
            "name": "Agent", "role": "member", "scopes": ["send", "read", "read"],
            "mailbox_ids": [second["email"], first["public_id"], second["id"]], "expires_at": "2026-08-01T00:00:00Z",
        }),
    )
    .await;
    let ids = json!([second["id"], first["id"]]);
    assert_eq!((&made["scopes"], &made["mailbox_ids"]), (&json!(["read", "send"]), &ids));
    let answer = server.key(made["key"].as_str().unwrap()).get("/api/v1/me").await;
    assert_eq!(answer.header("x-credits-charged"), "1");
    let workspace = tenant.key.get(&at(&tenant, "")).await.ok();
    let named = json!({ "id": tenant.workspace, "name": workspace["name"], "plan": "developer" });
    assert_eq!(
        answer.json(),
        json!({
            "kind": "key", "id": made["id"], "name": "Agent", "role": "member", "scopes": ["read", "send"],
            "mailbox_ids": ids, "workspace": named, "expires_at": "2026-08-01T00:00:00.000Z",
        })
    );
    let full = tenant.key.get("/api/v1/me").await.ok();
    assert_eq!(
        (&full["scopes"], &full["mailbox_ids"], &full["role"]),
        (&Value::Null, &Value::Null, &json!("admin"))
    );
    let person = session.get("/api/v1/me").await.ok();
    assert_eq!(
        (&person["kind"], &person["role"], &person["workspace"]),
        (&json!("session"), &json!("admin"), &named)
    );
    assert!(
        person["id"].as_str().unwrap().starts_with("ses_") && person["expires_at"].is_string(),
        "{person}"
    );
}

/// rules: AUTH-29
#[both_engines]
async fn a_faulty_narrowing_makes_no_key(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let first = new_mailbox(&tenant.key, "First").await;
    let count = async || session.get(&at(&tenant, "/api-keys")).await.ok().as_array().unwrap().len();
    let foreign = server.tenant(Plan::Developer).await;
    let theirs = new_mailbox(&foreign.key, "Theirs").await;
    let before = count().await;
    for (field, value) in [
        ("scopes", json!([])),
        ("scopes", json!(["reed"])),
        ("scopes", json!("read")),
        ("mailbox_ids", json!([])),
        ("mailbox_ids", json!(vec!["x"; 101])),
    ] {
        let answer = session.post(&at(&tenant, "/api-keys"), json!({ "name": "K", field: value })).await;
        answer.expect(400, "validation_failed");
        let path = answer.json()["details"][0]["path"].as_str().unwrap().to_owned();
        assert!(path.starts_with(field), "{}", answer.text());
    }
    for unknown in [&theirs["id"], &theirs["email"], &json!("mbx_none"), &json!("nobody@agents.test")] {
        let body = json!({ "name": "K", "mailbox_ids": [first["id"], unknown] });
        let answer = session.post(&at(&tenant, "/api-keys"), body).await;
        assert_refused(&answer, &[("mailbox_ids[1]", "there is no such mailbox")]);
    }
    assert_eq!(count().await, before);
}

/// rules: AUTH-35
#[both_engines]
async fn a_key_can_only_be_narrowed(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let first = new_mailbox(&tenant.key, "First").await;
    let second = new_mailbox(&tenant.key, "Second").await;
    let made = make(&tenant, &session, json!({ "name": "K" })).await;
    let (key, path) = (server.key(made["key"].as_str().unwrap()), one(&tenant, &made));
    let patch = async |change: Value| session.patch(&path, change).await;
    key.get(&path_of(&second)).await.ok();
    key.patch(&path, json!({ "name": "Mine" })).await.expect(403, "role_required");

    let change = json!({
        "name": "Renamed", "role": "member", "scopes": ["read", "draft"], "expires_at": "2026-09-01T00:00:00Z",
        "mailbox_ids": [second["email"], first["id"]],
    });
    let changed = patch(change).await.ok();
    assert_eq!(
        (
            &changed["name"],
            &changed["role"],
            &changed["scopes"],
            &changed["mailbox_ids"],
            &changed["expires_at"]
        ),
        (
            &json!("Renamed"),
            &json!("member"),
            &json!(["read", "draft"]),
            &json!([second["id"], first["id"]]),
            &json!("2026-09-01T00:00:00.000Z")
        )
    );
    assert!(changed.get("key").is_none());
    // It is the same secret, which does less.
    key.get(&path_of(&second)).await.ok();
    key.put(&path_of(&first), json!({ "name": "X" })).await.expect(403, "role_required");
    key.get(&at(&tenant, "/members")).await.expect(403, "scope_required");
}

/// rules: AUTH-35
#[both_engines]
async fn nothing_widens_a_key(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let first = new_mailbox(&tenant.key, "First").await;
    let second = new_mailbox(&tenant.key, "Second").await;
    let narrowing = json!({
        "name": "K", "role": "member", "scopes": ["read", "draft"], "expires_at": "2026-09-01T00:00:00Z",
        "mailbox_ids": [second["id"], first["id"]],
    });
    let made = make(&tenant, &session, narrowing).await;
    let (key, path) = (server.key(made["key"].as_str().unwrap()), one(&tenant, &made));
    let patch = async |change: Value| session.patch(&path, change).await;
    let before = patch(json!({})).await.ok();
    for (field, value) in [
        ("role", json!("admin")),
        ("scopes", Value::Null),
        ("scopes", json!(["read", "send"])),
        ("mailbox_ids", Value::Null),
        ("expires_at", Value::Null),
        ("expires_at", json!("2026-09-01T00:00:01Z")),
        ("expires_at", json!("2026-07-14T08:00:00Z")),
        ("scopes", json!([])),
        ("mailbox_ids", json!([])),
        ("mailbox_ids", json!([first["id"], "mbx_none"])),
    ] {
        let answer = patch(json!({ "name": "No", field: value })).await;
        answer.expect(400, "validation_failed");
        let path = answer.json()["details"][0]["path"].as_str().unwrap().to_owned();
        assert!(path.starts_with(field), "{field} {value}: {}", answer.text());
    }
    let third = new_mailbox(&tenant.key, "Third").await;
    assert_refuses_fields(
        &patch(json!({ "mailbox_ids": [first["id"], third["id"]] })).await,
        &["mailbox_ids"],
    );
    let all = json!({ "role": "admin", "scopes": null, "mailbox_ids": null, "expires_at": null });
    assert_refuses_fields(&patch(all).await, &["role", "scopes", "mailbox_ids", "expires_at"]);
    assert_eq!(patch(json!({})).await.ok(), before, "nothing was changed by what was refused");

    let narrower = patch(json!({ "scopes": ["read"], "mailbox_ids": [first["id"]] })).await.ok();
    assert_eq!((&narrower["scopes"], &narrower["mailbox_ids"]), (&json!(["read"]), &json!([first["id"]])));
    assert_missing(&key.get(&path_of(&second)).await, "Mailbox");
    key.get(&path_of(&first)).await.ok();
    // One that is gone can stay, and go.
    tenant.key.delete(&path_of(&first)).await.ok();
    assert_eq!(
        patch(json!({ "mailbox_ids": [first["id"]], "name": "K" })).await.ok()["mailbox_ids"],
        json!([first["id"]])
    );
    assert_missing(&session.patch(&at(&tenant, "/api-keys/key_none"), json!({})).await, "API key");
    let foreign = server.tenant(Plan::Developer).await;
    let theirs = at(&tenant, &format!("/api-keys/{}", foreign.key_id));
    assert_missing(&session.patch(&theirs, json!({ "name": "X" })).await, "API key");
}

/// rules: AUTH-10, AUTH-35
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrowed_key_does_less_everywhere_within_a_second(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let first = new_mailbox(&tenant.key, "First").await;
    let second = new_mailbox(&tenant.key, "Second").await;
    let made =
        make(&tenant, &session, json!({ "name": "K", "mailbox_ids": [first["id"], second["id"]] })).await;
    let other = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => {
            Some(server.another_node(ServerOptions { seed: 7, ..ServerOptions::default() }).await)
        }
    };
    let node = other.as_ref().unwrap_or(&server);
    let key = node.key(made["key"].as_str().unwrap());
    key.get(&path_of(&second)).await.ok();
    let (poll, wait, stream) = (key.clone(), key.clone(), key.clone());
    let (events, emails) =
        (at(&tenant, "/events?after=1000&wait=60"), format!("{}/emails/wait", path_of(&second)));
    let poll = tokio::spawn(async move { (poll.get(&events).await, Instant::now()) });
    let wait =
        tokio::spawn(
            async move { (wait.post(&emails, json!({ "timeout_seconds": 60 })).await, Instant::now()) },
        );
    let path = at(&tenant, "/events/stream");
    let stream = tokio::spawn(async move {
        let mut stream = stream.stream(&path).await;
        assert_eq!(stream.next().await, None);
        Instant::now()
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!poll.is_finished() && !wait.is_finished() && !stream.is_finished());
    // A new name is no reason to let go.
    session.patch(&one(&tenant, &made), json!({ "name": "New" })).await.ok();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!poll.is_finished() && !wait.is_finished() && !stream.is_finished());

    session.patch(&one(&tenant, &made), json!({ "mailbox_ids": [first["id"]] })).await.ok();
    let changed = Instant::now();
    while key.get(&path_of(&second)).await.status == 200 {
        assert!(changed.elapsed() < Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for waiting in [poll, wait] {
        let (answer, when) = waiting.await.unwrap();
        answer.expect(403, "scope_required");
        assert!(answer.json()["fix"].as_str().unwrap().contains("Repeat the call"), "{}", answer.text());
        assert!(when.saturating_duration_since(changed) < Duration::from_secs(1));
    }
    assert!(stream.await.unwrap().saturating_duration_since(changed) < Duration::from_secs(1));
    key.get(&path_of(&first)).await.ok();
}

/// Programs that know no narrowed keys look for the hash of a secret, and must not find one.
/// rules: AUTH-38
#[both_engines]
async fn older_programs_do_not_find_a_narrowed_key(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let full = make(&tenant, &session, json!({ "name": "Full" })).await;
    let narrowed = make(&tenant, &session, json!({ "name": "Narrowed", "scopes": ["read"] })).await;
    let found = async |key: &Value| {
        let hash = secrets::hash(key["key"].as_str().unwrap());
        let sql = "SELECT count(*) FROM api_key WHERE secret_hash = $1";
        let count = server
            .app
            .db()
            .system_read(async move |tx| tx.one::<(i64,)>(sql, &[hash.as_slice().into()]).await);
        count.await.unwrap().unwrap().0
    };
    assert_eq!((found(&full).await, found(&narrowed).await), (1, 0));
    session.patch(&one(&tenant, &full), json!({ "scopes": ["read"] })).await.ok();
    assert_eq!(found(&full).await, 0);
    for made in [&full, &narrowed] {
        let key = server.key(made["key"].as_str().unwrap());
        key.get("/api/v1/mailboxes").await.ok();
        key.post("/api/v1/mailboxes", json!({ "name": "X" })).await.expect(403, "scope_required");
    }
    // A row without its narrowing, as a backup by such a program has it, is no key at all.
    let lose = "UPDATE api_key SET scopes = NULL, mailbox_ids = NULL WHERE name = 'Narrowed'";
    server.app.db().system_write(async move |tx| tx.run(lose, &[]).await).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    server.key(narrowed["key"].as_str().unwrap()).get("/api/v1/mailboxes").await.expect(401, "unauthorized");
}
