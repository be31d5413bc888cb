//! API keys: made in the console, shown once, ended by time or by hand.

use std::collections::HashSet;

use model::{Limit, Plan, Role};
use operations::{Credential, ErrorKind, secrets};
use serde_json::{Value, json};
use store::dump::Piece;
use testkit::{Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::{at, join, token};

/// A service with room for keys, a tenant, and its owner in the console.
async fn start(engine: Engine) -> (Server, Tenant, Caller) {
    let mut options = ServerOptions::default();
    options.plans.free.api_keys = Limit::UNLIMITED;
    options.plans.free.members = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let session = server.log_in(&tenant).await;
    (server, tenant, session)
}

/// Makes a key in the console.
pub(super) async fn make(tenant: &Tenant, session: &Caller, body: Value) -> Value {
    let answer = session.post(&at(tenant, "/api-keys"), body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// rules: AUTH-4, AUTH-8
#[both_engines]
async fn a_key_is_shown_whole_once(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    server.clock.advance(61);
    let made = make(
        &tenant,
        &session,
        json!({ "name": " CI ", "role": "member", "expires_at": "2026-08-01T02:00:00+02:00" }),
    )
    .await;
    let key = made["key"].as_str().unwrap();
    let mut shown = json!({
        "id": made["id"],
        "name": "CI",
        "role": "member",
        "scopes": null,
        "mailbox_ids": null,
        "hint": format!("{}…", &key[..12]),
        "expires_at": "2026-08-01T00:00:00.000Z",
        "last_used_at": null,
        "created_at": "2026-07-14T09:01:01.000Z",
    });
    let mut whole = shown.clone();
    whole["key"] = json!(key);
    assert_eq!(made, whole);
    assert!(made["id"].as_str().unwrap().starts_with("key_"));
    let list = async || session.get(&at(&tenant, "/api-keys")).await.ok();
    assert_eq!(list().await[1], shown);
    assert_eq!((&list().await[0]["role"], list().await.as_array().unwrap().len()), (&json!("admin"), 2));

    // Use shows to the minute, once upkeep has written it down.
    server.clock.set("2026-07-14T10:11:12.345Z");
    assert_eq!(server.key(key).get("/api/v1/workspaces").await.ok()["workspaces"][0]["role"], "member");
    operations::maintenance::run(&server.app).await.unwrap();
    shown["last_used_at"] = json!("2026-07-14T10:11:00.000Z");
    assert_eq!(list().await[1], shown);
    assert!(!session.get(&at(&tenant, "/api-keys")).await.text().contains(&key[14..]));
    assert_eq!(make(&tenant, &session, json!({ "name": "Other" })).await["role"], "admin");
}

/// rules: AUTH-2
#[both_engines]
async fn a_key_has_a_prefix_256_random_bits_and_a_checksum(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let mut bodies = HashSet::new();
    for number in 0..20 {
        let made = make(&tenant, &session, json!({ "name": format!("{number}") })).await;
        let rest = made["key"].as_str().unwrap().strip_prefix("sk-proj-").unwrap().to_owned();
        // 43 digits of base 62 hold 256 bits; six more are the checksum.
        assert!(rest.len() == 49 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{rest}");
        bodies.insert(rest[..43].to_owned());
    }
    assert_eq!(bodies.len(), 20);
    for place in 1..43 {
        let digits: HashSet<u8> = bodies.iter().map(|body| body.as_bytes()[place]).collect();
        assert!(digits.len() > 5, "place {place} hardly changes");
    }

    // Without the table only what needs no look into the store can be answered.
    let key = secrets::new_api_key(&server.app);
    server.app.db().system_write(async |tx| tx.run("DROP TABLE api_key", &[]).await).await.unwrap();
    let refusal = async |key: &str| {
        server.app.authenticate(&Credential::ApiKey(key.to_owned())).await.unwrap_err().kind()
    };
    assert_eq!(refusal(&key).await, ErrorKind::Internal);
    for place in 8..key.len() {
        let mut wrong = key.clone().into_bytes();
        wrong[place] = if wrong[place] == b'x' { b'y' } else { b'x' };
        assert_eq!(
            refusal(&String::from_utf8(wrong).unwrap()).await,
            ErrorKind::Unauthorized,
            "place {place}"
        );
    }
    for wrong in ["", "sk-proj-", &key[..key.len() - 1], &format!("{key}0"), &key[8..], &key.to_uppercase()] {
        assert_eq!(refusal(wrong).await, ErrorKind::Unauthorized, "{wrong}");
        server.key(wrong).get("/api/v1/mailboxes").await.expect(401, "unauthorized");
    }
}

/// Every row of the store, as an operator's backup would hold it.
async fn whole_store(server: &Server) -> String {
    let (pieces, mut taken) = tokio::sync::mpsc::channel(16);
    let db = server.app.db().clone();
    let dump = tokio::spawn(async move { store::dump::dump(&db, pieces).await });
    let mut text = String::new();
    while let Some(piece) = taken.recv().await {
        if let Piece::Rows { lines, .. } = piece {
            text.push_str(&String::from_utf8(lines).unwrap());
        }
    }
    dump.await.unwrap().unwrap();
    text
}

/// Bytes as the dump writes them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk
            .iter()
            .chain([0; 3].iter())
            .take(3)
            .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = char::from(DIGITS[number >> (18 - 6 * place) & 63]);
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

/// rules: AUTH-3, AUTH-4
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_holds_only_hashes(engine: Engine) {
    assert_eq!(base64(&secrets::hash("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    let (server, tenant, session) = start(engine).await;
    // With a kept answer, too: it holds the key, and is sealed.
    let made = session
        .with("idempotency-key", "once")
        .post(&at(&tenant, "/api-keys"), json!({ "name": "K" }))
        .await
        .ok();
    let cookie = session.secret().split_once('=').unwrap().1.to_owned();
    let invite = tenant.key.post(&at(&tenant, "/invites"), json!({ "email": "bob@people.test" })).await.ok();
    let store = whole_store(&server).await;
    for secret in [made["key"].as_str().unwrap().to_owned(), cookie, token(&invite)] {
        assert!(store.contains(&base64(&secrets::hash(&secret))), "the hash is missing");
        for piece in [&secret[..], &secret[12..], &secret[secret.len() - 20..]] {
            assert!(!store.contains(piece), "the secret stands in the store");
        }
    }
    assert!(!store.contains(testkit::PASSWORD));
    // The hash is not good for anything by itself.
    let hash = base64(&secrets::hash(made["key"].as_str().unwrap()));
    server.key(&hash).get("/api/v1/mailboxes").await.expect(401, "unauthorized");
}

/// rules: AUTH-5, AUTH-8
#[both_engines]
async fn keys_are_managed_by_admins_in_the_console(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let made = make(&tenant, &session, json!({ "name": "A" })).await;
    let one = at(&tenant, &format!("/api-keys/{}", made["id"].as_str().unwrap()));
    let all = at(&tenant, "/api-keys");
    let member = join(&server, &tenant, "bob@people.test", "member").await;
    let weak = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    let before = session.get(&all).await.bytes;
    for caller in [&tenant.key, &weak, &member.caller] {
        for answer in [
            caller.get(&all).await,
            caller.post(&all, json!({ "name": "B" })).await,
            caller.delete(&one).await,
        ] {
            assert_eq!(answer.expect(403, "role_required").json()["error"], "Forbidden");
        }
    }
    assert_eq!(session.get(&all).await.bytes, before);
    let admin = join(&server, &tenant, "eve@people.test", "admin").await;
    admin.caller.get(&all).await.ok();
    let gone = admin.caller.delete(&one).await;
    assert_eq!((gone.status, gone.bytes.len()), (204, 0));
    server.key(made["key"].as_str().unwrap()).get("/api/v1/mailboxes").await.expect(401, "unauthorized");
}

/// rules: AUTH-4, AUTH-9, ERR-3, HTTP-3
#[both_engines]
async fn a_faulty_key_is_not_made(engine: Engine) {
    let (_server, tenant, session) = start(engine).await;
    let all = at(&tenant, "/api-keys");
    for (body, field) in [
        (json!({}), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "\t" }), "name"),
        (json!({ "name": "é".repeat(81) }), "name"),
        (json!({ "name": "A", "role": "operator" }), "role"),
        (json!({ "name": "A", "expires_at": "2026-07-14T09:00:00Z" }), "expires_at"),
        (json!({ "name": "A", "expires_at": "2020-01-01T00:00:00Z" }), "expires_at"),
        (json!({ "name": "A", "expires_at": "2027-01-01T00:00:00" }), "expires_at"),
        (json!({ "name": "A", "expires_at": "tomorrow" }), "expires_at"),
        (json!({ "name": "A", "expires_at": 1_900_000_000 }), "expires_at"),
        (json!({ "name": "A", "key": "sk-proj-mine" }), "key"),
        (json!({ "name": "A", "workspace_id": "ws_other" }), "workspace_id"),
    ] {
        let answer = session.post(&all, body.clone()).await;
        assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], field, "{body}");
    }
    assert_eq!(session.get(&all).await.ok().as_array().unwrap().len(), 1);
    // Eighty characters are eighty however many bytes they take.
    make(&tenant, &session, json!({ "name": "é".repeat(80) })).await;
}

/// rules: AUTH-9, ERR-4
#[both_engines]
async fn an_expired_key_stays_expired(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let end = json!("2026-07-14T10:00:00Z");
    let mut keys = Vec::new();
    for name in ["used", "unused"] {
        let made = make(&tenant, &session, json!({ "name": name, "expires_at": end })).await;
        keys.push(server.key(made["key"].as_str().unwrap()));
    }
    server.clock.set("2026-07-14T09:59:59.999Z");
    for key in &keys {
        key.get("/api/v1/mailboxes").await.ok();
    }
    server.clock.set("2026-07-14T10:00:00Z");
    keys[0].get("/api/v1/mailboxes").await.expect(401, "unauthorized");
    // The other one is met by upkeep only, as on a server whose clock is wrong for a while.
    operations::maintenance::run(&server.app).await.unwrap();
    server.clock.set("2026-07-14T09:00:00Z");
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    for key in &keys {
        key.get("/api/v1/mailboxes").await.expect(401, "unauthorized");
    }
    tenant.key.get("/api/v1/mailboxes").await.ok();
    // The list goes on telling what they were.
    let listed = session.get(&at(&tenant, "/api-keys")).await.ok();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"used") && names.contains(&"unused"), "{names:?}");
}

/// rules: AUTH-5, HTTP-5, ERR-6
#[both_engines]
async fn revoking_needs_a_key_of_this_workspace(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    let invented = session.delete(&at(&tenant, "/api-keys/key_none")).await;
    assert_eq!(invented.expect(404, "not_found").json()["error"], "API key not found");
    for id in [other.key_id.as_str(), "%00", "%20", tenant.account.as_str()] {
        let answer = session.delete(&at(&tenant, &format!("/api-keys/{id}"))).await;
        assert_eq!((answer.status, &answer.bytes), (404, &invented.bytes), "{id}");
    }
    other.key.get("/api/v1/mailboxes").await.ok();
    let own = at(&tenant, &format!("/api-keys/{}", tenant.key_id));
    assert_eq!(session.delete(&own).await.status, 204);
    session.delete(&own).await.expect(404, "not_found");
    tenant.key.get("/api/v1/mailboxes").await.expect(401, "unauthorized");
}

/// rules: AUTH-23, AUTH-2, AUTH-1
#[both_engines]
async fn a_key_is_a_key_and_a_cookie_a_cookie(engine: Engine) {
    let (server, tenant, session) = start(engine).await;
    let cookie = session.secret().to_owned();
    let path = "/api/v1/mailboxes";
    for bad in ["", "nonsense", &secrets::new_api_key(&server.app)] {
        server.key(bad).with("cookie", &cookie).get(path).await.expect(401, "unauthorized");
    }
    tenant.key.with("cookie", "agent_mailbox=nonsense").get(path).await.ok();
    tenant.key.with("cookie", &cookie).get("/api/console/me").await.expect(401, "unauthorized");
    // A session's secret is no key, and a key that was just used is no session.
    session.get(path).await.ok();
    server.key(cookie.split_once('=').unwrap().1).get(path).await.expect(401, "unauthorized");
    tenant.key.get(path).await.ok();
    server.cookie(tenant.key.secret()).get(path).await.expect(401, "unauthorized");
    server.cookie(tenant.key.secret()).get("/api/console/me").await.expect(401, "unauthorized");
}

/// rules: AUTH-28
#[both_engines]
async fn two_different_keys_are_no_key(engine: Engine) {
    let (server, tenant, _) = start(engine).await;
    let (path, key) = ("/api/v1/mailboxes", tenant.key.secret());
    let other = server.tenant(Plan::Free).await;
    for second in [other.key.secret(), "nonsense", ""] {
        let caller = tenant.key.with("x-api-key", second);
        caller.get(path).await.expect(401, "unauthorized");
        server.key(second).with("x-api-key", key).get(path).await.expect(401, "unauthorized");
        let listed = caller.mcp().send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
        listed.expect(401, "unauthorized");
    }
    tenant.key.with("x-api-key", key).get(path).await.ok();
}
