//! Who may do what where: tables over all endpoints.

use http::Method;
use model::{Limit, Plan, Role, api_keys::NewApiKey};
use operations::{ErrorKind, admin, secrets};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines, error_text};

use super::people::{accept, at, token};

async fn start(engine: Engine) -> Server {
    let mut options = ServerOptions::default();
    options.plans.free.api_keys = Limit::UNLIMITED;
    options.plans.free.members = Limit::UNLIMITED;
    Server::with(engine, options).await
}

/// One of everything that has an id.
async fn furnished(server: &Server) -> (Tenant, Vec<(&'static str, String)>) {
    let tenant = server.tenant(Plan::Free).await;
    let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let inside = format!("/api/v1/mailboxes/{}", mailbox["id"].as_str().unwrap());
    let label = tenant.key.post(&format!("{inside}/custom-labels"), json!({ "name": "L" })).await.ok();
    let invite = tenant.key.post(&at(&tenant, "/invites"), json!({ "email": "open@people.test" })).await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ids = vec![
        ("workspaceId", tenant.workspace.to_string()),
        ("mailboxId", text(&mailbox["public_id"])),
        ("folderId", "inbox".to_owned()),
        ("labelId", text(&label["id"])),
        ("memberId", tenant.account.to_string()),
        ("inviteId", text(&invite["id"])),
        ("keyId", tenant.key_id.to_string()),
    ];
    (tenant, ids)
}

fn fill(path: &str, ids: &[(&str, String)]) -> String {
    ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id))
}

async fn call(caller: &Caller, method: &Method, path: &str) -> Answer {
    let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    caller.send(method.clone(), path, has_body.then(|| json!({ "name": "X" }))).await
}

/// Callers whose credential is not, or no longer, good for anything.
async fn strangers(server: &Server, tenant: &Tenant) -> Vec<(&'static str, Caller)> {
    let now = server.clock.now();
    let new_key = async |end| {
        let key = NewApiKey { expires_at: end, ..NewApiKey::new("K", Role::Admin) };
        admin::create_key(&server.app, tenant.workspace.clone(), key, &testkit::operator()).await.unwrap()
    };
    let expired = new_key(Some(now.plus_seconds(60))).await;
    let revoked = new_key(None).await;
    admin::revoke_key(&server.app, revoked.api_key.id.clone(), &testkit::operator()).await.unwrap();
    let ended = server.log_in(tenant).await;
    assert_eq!(ended.post("/api/console/logout", json!({})).await.status, 204);
    server.clock.advance(60);
    vec![
        ("missing", server.anonymous()),
        ("malformed", server.key("Bearer nonsense")),
        ("unknown", server.key(&secrets::new_api_key(&server.app))),
        ("expired", server.key(&expired.key)),
        ("revoked", server.key(&revoked.key)),
        (
            "in another header",
            server.anonymous().with("authorization", &format!("Bearer {}", tenant.key.secret())),
        ),
        ("unknown session", server.cookie("nonsense")),
        ("ended session", server.cookie(ended.secret().split_once('=').unwrap().1)),
    ]
}

/// rules: AUTH-1, ERR-4
#[both_engines]
async fn every_operation_needs_a_credential(engine: Engine) {
    let server = start(engine).await;
    let (tenant, ids) = furnished(&server).await;
    let strangers = strangers(&server, &tenant).await;
    let invented: Vec<(&str, String)> = ids.iter().map(|(name, _)| (*name, "none".to_owned())).collect();
    let before = tenant.key.get(&at(&tenant, "")).await.bytes;
    for endpoint in web::endpoints() {
        for path in [fill(endpoint.path, &ids), fill(endpoint.path, &invented)] {
            for (name, stranger) in &strangers {
                let answer = call(stranger, &endpoint.method, &path).await;
                let expected = error_text(ErrorKind::Unauthorized);
                assert_eq!(
                    (answer.status, answer.text()),
                    (401, expected),
                    "{name}: {} {path}",
                    endpoint.method
                );
                assert_eq!((answer.header("x-credits-charged"), answer.header("ratelimit-limit")), ("", ""));
            }
        }
    }
    assert_eq!(tenant.key.get(&at(&tenant, "")).await.bytes, before);
    server.anonymous().get("/api/v1/config").await.ok();
    server.anonymous().get("/api/status").await.ok();
}

/// rules: AUTH-6, METER-9, HTTP-5
#[both_engines]
async fn a_foreign_workspace_in_the_path_is_refused_alike(engine: Engine) {
    let server = start(engine).await;
    let (tenant, mut ids) = furnished(&server).await;
    let (other, _) = furnished(&server).await;
    let session = server.log_in(&tenant).await;
    let theirs = other.key.get(&at(&other, "")).await.bytes;
    for endpoint in web::endpoints().iter().filter(|endpoint| endpoint.path.contains("{workspaceId}")) {
        for caller in [&tenant.key, &session] {
            let mut answers = Vec::new();
            for id in
                [other.workspace.as_str(), "ws_none", "*", "%00", &tenant.workspace.as_str().to_uppercase()]
            {
                id.clone_into(&mut ids[0].1);
                answers.push(call(caller, &endpoint.method, &fill(endpoint.path, &ids)).await);
            }
            for answer in &answers {
                answer.expect(403, "workspace_scope_denied");
                assert_eq!(answer.text(), error_text(ErrorKind::WorkspaceScopeDenied));
                assert_eq!(answer.header("x-credits-charged"), "0");
            }
        }
    }
    assert_eq!(other.key.get(&at(&other, "")).await.bytes, theirs);
}

/// rules: AUTH-7
#[both_engines]
async fn a_workspace_in_body_or_query_may_be_left_out_or_be_the_own(engine: Engine) {
    let server = start(engine).await;
    let (tenant, _) = furnished(&server).await;
    let (other, _) = furnished(&server).await;
    let all = "/api/v1/mailboxes";
    let own = tenant.workspace.as_str();
    let listed = tenant.key.get(all).await.ok();
    assert_eq!(tenant.key.get(&format!("{all}?workspaceId={own}")).await.ok(), listed);
    let made = tenant.key.post(all, json!({ "name": "B", "workspaceId": own })).await.ok();
    assert_eq!(made["workspace_id"], own);
    tenant.key.delete(&format!("{all}/{}", made["id"].as_str().unwrap())).await.ok();
    for id in [other.workspace.as_str(), "ws_none", "*"] {
        let query = tenant.key.get(&format!("{all}?workspaceId={id}")).await;
        let body = tenant.key.post(all, json!({ "name": "C", "workspaceId": id })).await;
        for answer in [query, body] {
            answer.expect(403, "workspace_scope_denied");
            assert_eq!(answer.text(), error_text(ErrorKind::WorkspaceScopeDenied));
        }
    }
    assert_eq!(tenant.key.get(all).await.ok(), listed);
    assert_eq!(other.key.get(all).await.ok().as_array().unwrap().len(), 1);
}

/// Waits until `holds` does, for at most a second.
async fn within_a_second(what: &str, holds: impl AsyncFn() -> bool) {
    let started = tokio::time::Instant::now();
    while !holds().await {
        assert!(started.elapsed().as_millis() < 1000, "{what} took longer than a second");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// rules: AUTH-10
#[tokio::test]
async fn changes_reach_every_node_within_a_second() {
    let near = start(Engine::Postgres).await;
    let mut options = ServerOptions { seed: 2, ..ServerOptions::default() };
    options.plans.developer.credits_per_period = Limit::of(7);
    let far = near.another_node(options).await;
    let tenant = near.tenant(Plan::Enterprise).await;
    let session = near.log_in(&tenant).await;
    let invited = tenant
        .key
        .post(&at(&tenant, "/invites"), json!({ "email": "bob@people.test", "role": "admin" }))
        .await
        .ok();
    let joined = accept(&near, &token(&invited)).await;
    let bob_id = joined.json()["account"]["id"].as_str().unwrap().to_owned();
    let bob = far.cookie(&joined.session_secret());
    let invites = at(&tenant, "/invites");
    let member = at(&tenant, &format!("/members/{bob_id}"));

    bob.get(&invites).await.ok();
    tenant.key.put(&member, json!({ "role": "member" })).await.ok();
    within_a_second("a changed role", async || bob.get(&invites).await.status == 403).await;
    bob.get(&at(&tenant, "")).await.ok();
    tenant.key.delete(&member).await.ok();
    within_a_second("a removed member", async || bob.get(&at(&tenant, "")).await.status == 403).await;

    let key = far.key(tenant.key.secret());
    let limit = async || key.get(&at(&tenant, "/usage/credits")).await.json()["limit"].clone();
    assert_eq!(limit().await, Value::Null);
    admin::set_plan(&near.app, tenant.workspace.clone(), Plan::Developer, &testkit::operator())
        .await
        .unwrap();
    within_a_second("a changed plan", async || limit().await == 7).await;
    let revoked = session.delete(&at(&tenant, &format!("/api-keys/{}", tenant.key_id))).await;
    assert_eq!(revoked.status, 204);
    within_a_second("a revoked key", async || key.get("/api/v1/workspaces").await.status == 401).await;

    let remote = far.cookie(session.secret().split_once('=').unwrap().1);
    remote.get("/api/console/me").await.ok();
    assert_eq!(session.post("/api/console/logout", json!({})).await.status, 204);
    session.get("/api/console/me").await.expect(401, "unauthorized");
    within_a_second("an ended session", async || remote.get("/api/console/me").await.status == 401).await;
}

/// Somebody whose last workspace is gone has a session and nothing to do with it: every operation says so, as the document
/// tells of every one of them.
/// rules: API-3, API-4, ERR-5
#[both_engines]
async fn a_person_without_a_workspace_is_let_in_nowhere(engine: Engine) {
    let document = web::document();
    for id in ["getEmailContext", "getThread"] {
        let paths = document["paths"].as_object().unwrap().values();
        let operation =
            paths.flat_map(|path| path.as_object().unwrap().values()).find(|one| one["operationId"] == id);
        let codes = &operation.unwrap()["responses"]["403"]["x-codes"];
        assert_eq!(codes, &json!(["workspace_scope_denied", "scope_required"]), "{id}");
    }
    let server = start(engine).await;
    let (tenant, ids) = furnished(&server).await;
    let (person, account) = (server.log_in(&tenant).await, tenant.account.to_string());
    let leave = server.app.db().system_write(async move |tx| {
        tx.run("DELETE FROM member WHERE account_id = $1", &[(&account).into()]).await
    });
    assert_eq!(leave.await.unwrap(), 1);
    while person.get("/api/v1/mailboxes").await.status == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["x-credits"] == 0 {
                continue;
            }
            let method: Method = method.to_ascii_uppercase().parse().unwrap();
            let answer = person.send(method, &fill(path, &ids), None).await;
            answer.expect(403, "workspace_scope_denied");
        }
    }
}
