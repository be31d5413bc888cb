//! Workspaces and the state of their storage.

use http::Method;
use model::{Limit, Plan, Role, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::{at, break_blobs, break_data_key, join, mend_blobs, sign_up};

fn storage(workspace: &str, owner_address: &str, has_api_key: bool) -> Value {
    json!({
        "provider": "local",
        "status": "ready",
        "redundancy_enabled": false,
        "storage_key_status": "ready",
        "storage_key_last_error": null,
        "space_id": workspace,
        "bucket_id": "blobs",
        "owner_address": owner_address,
        "has_api_key": has_api_key,
        "has_service_private_key": true,
        "vault_provisioning_status": "ready",
        "vault_last_error": null,
        "blob_store_bucket_name": "blobs",
        "blob_store_provisioning_status": "ready",
        "blob_store_last_error": null,
        "last_error": null,
    })
}

/// rules: WS-1, WS-2, WS-3
#[both_engines]
async fn a_key_sees_its_own_workspace_alone(engine: Engine) {
    let server = Server::start(engine).await;
    // The first account operates the server; its key is a program all the same.
    let tenant = server.tenant(Plan::Free).await;
    server.tenant(Plan::Developer).await;
    let listed = tenant.key.get("/api/v1/workspaces").await.ok();
    let name = format!("{}'s workspace", tenant.email.split('@').next().unwrap());
    let storage = storage(tenant.workspace.as_str(), &tenant.owner_address, true);
    assert_eq!(storage.as_object().unwrap().len(), 16);
    let expected = json!({
        "id": tenant.workspace.as_str(),
        "name": name,
        "owner_address": tenant.owner_address,
        "timezone": "UTC",
        "role": "admin",
        "mailbox_count": 0,
        "storage": storage,
        "created_at": "2026-07-14T09:00:00.000Z",
        "updated_at": "2026-07-14T09:00:00.000Z",
    });
    assert_eq!(listed, json!({ "user": { "is_admin": false }, "workspaces": [expected] }));
    assert_eq!(tenant.key.get(&at(&tenant, "")).await.ok(), expected);
    assert_eq!(tenant.key.get(&at(&tenant, "/storage")).await.ok(), storage);
}

/// rules: WS-1, WS-2, AUTH-18
#[both_engines]
async fn a_session_sees_every_workspace_with_its_role_there(engine: Engine) {
    let server = Server::start(engine).await;
    let operator = sign_up(&server, "first@people.test").await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.advance(1);
    let guest = join(&server, &tenant, "guest@people.test", "member").await;

    let answer = operator.caller.get("/api/v1/workspaces").await.ok();
    assert_eq!(
        (&answer["user"], answer["workspaces"].as_array().unwrap().len()),
        (&json!({ "is_admin": true }), 1)
    );
    assert_eq!(answer["workspaces"][0]["storage"]["has_api_key"], false);

    let answer = guest.caller.get("/api/v1/workspaces").await.ok();
    assert_eq!(answer["user"], json!({ "is_admin": false }));
    let mut seen: Vec<(&str, &str)> = answer["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["role"].as_str().unwrap()))
        .collect();
    seen.sort_unstable();
    let own = guest.me["workspaces"].as_array().unwrap().iter().find(|one| one["role"] == "admin").unwrap();
    let mut expected = [(tenant.workspace.as_str(), "member"), (own["id"].as_str().unwrap(), "admin")];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    for one in answer["workspaces"].as_array().unwrap() {
        let alone =
            guest.caller.get(&format!("/api/v1/workspaces/{}", one["id"].as_str().unwrap())).await.ok();
        assert_eq!(alone, *one);
    }
    // The same workspace has another role for another caller.
    assert_eq!(tenant.key.get(&at(&tenant, "")).await.ok()["role"], "admin");
}

/// rules: WS-2
#[both_engines]
async fn mailboxes_are_counted_without_deleted_ones(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let count = async || tenant.key.get(&at(&tenant, "")).await.ok()["mailbox_count"].clone();
    let mut made = Vec::new();
    for name in ["A", "B", "C"] {
        made.push(tenant.key.post("/api/v1/mailboxes", json!({ "name": name })).await.ok());
    }
    assert_eq!(count().await, 3);
    let gone = format!("/api/v1/mailboxes/{}", made[1]["id"].as_str().unwrap());
    assert_eq!(tenant.key.delete(&gone).await.status, 204);
    assert_eq!(count().await, 2);
    assert_eq!(tenant.key.get("/api/v1/workspaces").await.ok()["workspaces"][0]["mailbox_count"], 2);
}

/// rules: WS-3, WS-4
#[both_engines]
async fn storage_tells_when_the_data_key_does_not_open(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    break_data_key(&server, &tenant.workspace).await;
    let storage = tenant.key.get(&at(&tenant, "/storage")).await.ok();
    let reason = storage["vault_last_error"].as_str().unwrap();
    assert!(reason.len() > 10, "{reason}");
    assert_eq!(storage["last_error"], reason);
    assert_eq!(
        (&storage["status"], &storage["vault_provisioning_status"]),
        (&json!("error"), &json!("error"))
    );
    assert_eq!(
        (
            &storage["blob_store_provisioning_status"],
            &storage["blob_store_last_error"],
            &storage["storage_key_status"]
        ),
        (&json!("ready"), &Value::Null, &json!("ready"))
    );
    assert_eq!(tenant.key.get(&at(&tenant, "")).await.ok()["storage"], storage);
    assert_eq!(other.key.get(&at(&other, "/storage")).await.ok()["status"], "ready");
}

/// rules: WS-3, WS-4
#[both_engines]
async fn storage_tells_when_the_blob_store_does_not_work(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let healthy = tenant.key.get(&at(&tenant, "/storage")).await.ok();
    break_blobs(&server);
    operations::maintenance::run(&server.app).await.unwrap();
    let storage = tenant.key.get(&at(&tenant, "/storage")).await.ok();
    for status in ["status", "storage_key_status", "blob_store_provisioning_status"] {
        assert_eq!(storage[status], "error", "{status}");
    }
    let reason = storage["blob_store_last_error"].as_str().unwrap();
    assert!(reason.contains("cannot"), "{reason}");
    assert_eq!(
        (&storage["storage_key_last_error"], &storage["last_error"]),
        (&json!(reason), &json!(reason))
    );
    assert_eq!(
        (&storage["vault_provisioning_status"], &storage["vault_last_error"]),
        (&json!("ready"), &Value::Null)
    );
    assert_eq!(storage.as_object().unwrap().len(), 16);

    mend_blobs(&server);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(tenant.key.get(&at(&tenant, "/storage")).await.ok(), healthy);
}

/// rules: WS-4
#[both_engines]
async fn the_space_stays_the_same_over_a_restart(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let before = tenant.key.get(&at(&tenant, "/storage")).await.ok();
    let again = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let after = again.key(tenant.key.secret()).get(&at(&tenant, "/storage")).await.ok();
    assert_eq!(after, before);
    assert!(
        !after["space_id"].as_str().unwrap().is_empty() && !after["bucket_id"].as_str().unwrap().is_empty()
    );
}

async fn start(engine: Engine) -> (Server, Tenant) {
    let mut options = ServerOptions::default();
    options.plans.free.api_keys = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    (server, tenant)
}

/// rules: WS-5, WS-2
#[both_engines]
async fn an_admin_changes_name_and_time_zone(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let path = at(&tenant, "");
    let before = tenant.key.get(&path).await.ok();
    server.clock.advance(60);
    let changed = tenant.key.put(&path, json!({ "name": "  Büro 🏢 " })).await.ok();
    let mut expected = before.clone();
    expected["name"] = json!("Büro 🏢");
    expected["updated_at"] = json!("2026-07-14T09:01:00.000Z");
    assert_eq!(changed, expected);

    let changed = tenant.key.put(&path, json!({ "timezone": "America/Argentina/Ushuaia" })).await.ok();
    expected["timezone"] = json!("America/Argentina/Ushuaia");
    assert_eq!(changed, expected);

    // 80 characters, not 80 bytes.
    let long = "ä".repeat(80);
    let changed = tenant.key.put(&path, json!({ "name": long, "timezone": "Asia/Kolkata" })).await.ok();
    assert_eq!((&changed["name"], &changed["timezone"]), (&json!(long), &json!("Asia/Kolkata")));
    assert_eq!(changed["owner_address"], before["owner_address"]);
    assert_eq!(tenant.key.get(&path).await.ok(), changed);
    let session = server.log_in(&tenant).await;
    assert_eq!(session.put(&path, json!({ "name": "By a person" })).await.ok()["name"], "By a person");
}

/// rules: WS-5, HTTP-3, ERR-3
#[both_engines]
async fn a_faulty_change_is_refused_whole(engine: Engine) {
    let (_server, tenant) = start(engine).await;
    let path = at(&tenant, "");
    let before = tenant.key.get(&path).await.bytes;
    for (body, field) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": "   " }), "name"),
        (json!({ "name": "ä".repeat(81) }), "name"),
        (json!({ "name": "two\nlines" }), "name"),
        (json!({ "name": "nul\u{0}" }), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "name": "Good", "timezone": "Mars/Olympus" }), "timezone"),
        (json!({ "name": "Good", "timezone": "" }), "timezone"),
        (json!({ "name": "Good", "timezone": "../../etc/passwd" }), "timezone"),
        (json!({ "name": "Good", "timezone": "Nul\u{0}" }), "timezone"),
        (json!({}), ""),
        (json!({ "name": null, "timezone": null }), ""),
        (json!({ "name": "Good", "plan": "enterprise" }), "plan"),
        (json!({ "name": "Good", "owner_address": "0x00" }), "owner_address"),
        (json!({ "name": "Good", "role": "admin" }), "role"),
    ] {
        let answer = tenant.key.put(&path, body.clone()).await;
        answer.expect(400, "validation_failed");
        let refusal = answer.json();
        assert_eq!(
            (&refusal["error"], &refusal["details"][0]["path"]),
            (&json!("Invalid request"), &json!(field)),
            "{body}"
        );
    }
    let both = tenant.key.put(&path, json!({ "name": "", "timezone": "Mars/Olympus" })).await.json();
    let mut paths: Vec<&str> =
        both["details"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["name", "timezone"]);
    assert_eq!(tenant.key.get(&path).await.bytes, before);
}

/// rules: WS-5, AUTH-6, AUTH-8
#[both_engines]
async fn nobody_else_changes_a_workspace(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    let path = at(&tenant, "");
    let before = tenant.key.get(&path).await.bytes;
    let member = server.new_key(&tenant.workspace, Role::Member).await;
    server.key(&member.key).put(&path, json!({ "name": "M" })).await.expect(403, "role_required");
    other.key.put(&path, json!({ "name": "O" })).await.expect(403, "workspace_scope_denied");
    server
        .log_in(&other)
        .await
        .put(&path, json!({ "name": "O" }))
        .await
        .expect(403, "workspace_scope_denied");
    server.anonymous().put(&path, json!({ "name": "N" })).await.expect(401, "unauthorized");
    assert_eq!(tenant.key.get(&path).await.bytes, before);
}

/// rules: WS-6
#[both_engines]
async fn no_operation_creates_a_workspace(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let session = server.log_in(&tenant).await;
    let all = async || {
        operations::admin::list_workspaces(&server.app, WorkspaceId::from(""), 100).await.unwrap().len()
    };
    let before = all().await;
    for caller in [&tenant.key, &session] {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = caller.send(method, "/api/v1/workspaces", Some(json!({ "name": "New" }))).await;
            answer.expect(405, "method_not_allowed");
            assert!(answer.header("allow").contains("GET"));
        }
        caller.post(&at(&tenant, ""), json!({ "name": "New" })).await.expect(405, "method_not_allowed");
        caller
            .put("/api/v1/workspaces/ws_new", json!({ "name": "New" }))
            .await
            .expect(403, "workspace_scope_denied");
    }
    assert_eq!(all().await, before);
    assert!(
        !operations::catalog().iter().any(|operation| operation.id.eq_ignore_ascii_case("createWorkspace"))
    );
}
