//! Webhooks as things: made, read, changed, paused, deleted.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Server, Tenant, both_engines};

use super::help::{assert_missing, assert_refuses_fields, keys, new_mailbox};

pub(super) fn all(tenant: &Tenant) -> String {
    format!("/api/v1/workspaces/{}/webhooks", tenant.workspace)
}

pub(super) fn one(tenant: &Tenant, hook: &Value) -> String {
    format!("{}/{}", all(tenant), hook["id"].as_str().unwrap())
}

fn example() -> Value {
    json!({ "url": "https://hooks.example.org/in?a=b", "event_types": ["message.received", "mailbox.created"] })
}

// rules: HOOK-1
#[both_engines]
async fn a_webhook_is_made_read_changed_and_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let made = tenant.key.post(&all(&tenant), example()).await;
    assert_eq!((made.status, made.header("x-credits-charged")), (201, "2"));
    let mut hook = made.json();
    let secret = hook.as_object_mut().unwrap().remove("secret").unwrap();
    let key = secret.as_str().unwrap().strip_prefix("whsec_").unwrap();
    assert_eq!(key.len(), 44, "256 bits in base64");
    let fields = [
        "id",
        "workspace_id",
        "url",
        "event_types",
        "mailbox_ids",
        "status",
        "old_secret_until",
        "created_by",
        "created_at",
        "updated_at",
    ];
    assert_eq!(keys(&hook), fields);
    assert_eq!((&hook["status"], &hook["mailbox_ids"]), (&json!("active"), &Value::Null));
    assert_eq!(tenant.key.get(&one(&tenant, &hook)).await.ok(), hook, "without its secret");
    assert_eq!(tenant.key.get(&all(&tenant)).await.ok(), json!([hook]));
    let other = tenant.key.post(&all(&tenant), example()).await.ok();
    assert_ne!(other["secret"], secret);

    let mailbox = new_mailbox(&tenant.key, "Inbox").await;
    let change = json!({ "mailbox_ids": [mailbox["public_id"]], "status": "paused" });
    let changed = tenant.key.patch(&one(&tenant, &hook), change).await.ok();
    assert_eq!(changed["mailbox_ids"], json!([mailbox["id"]]));
    assert_eq!((&changed["status"], &changed["url"]), (&json!("paused"), &hook["url"]));
    let change =
        json!({ "event_types": ["mailbox.deleted", "mailbox.deleted"], "url": "https://hooks.example.org/" });
    let changed = tenant.key.patch(&one(&tenant, &hook), change).await.ok();
    assert_eq!(changed["event_types"], json!(["mailbox.deleted"]));
    assert_eq!(changed["mailbox_ids"], json!([mailbox["id"]]), "what is left out stays");
    let changed = tenant.key.patch(&one(&tenant, &hook), json!({ "mailbox_ids": null })).await.ok();
    assert_eq!(changed["mailbox_ids"], Value::Null);

    assert_eq!(tenant.key.delete(&one(&tenant, &hook)).await.status, 204);
    assert_missing(&tenant.key.get(&one(&tenant, &hook)).await, "Webhook");
    assert_missing(&tenant.key.delete(&one(&tenant, &hook)).await, "Webhook");
    assert_missing(&tenant.key.get(&format!("{}/deliveries", one(&tenant, &hook))).await, "Webhook");
}

// rules: HOOK-1
#[both_engines]
async fn what_a_webhook_cannot_be_is_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let theirs = new_mailbox(&other.key, "Theirs").await;
    let with = |field: &str, value: Value| {
        let mut body = example();
        body[field] = value;
        body
    };
    for (body, fields) in [
        (json!({}), &["url", "event_types"][..]),
        (with("url", json!("no url")), &["url"]),
        (with("url", json!(format!("https://example.org/{}", "x".repeat(2048)))), &["url"]),
        (with("event_types", json!([])), &["event_types"]),
        (with("event_types", json!(["message.recieved"])), &["event_types[0]"]),
        (with("event_types", json!(["*"])), &["event_types[0]"]),
        (with("mailbox_ids", json!([])), &["mailbox_ids"]),
        (with("mailbox_ids", json!(["mbx_none"])), &["mailbox_ids[0]"]),
        (with("mailbox_ids", json!([theirs["id"]])), &["mailbox_ids[0]"]),
        (with("mailbox_ids", json!([theirs["email"]])), &["mailbox_ids[0]"]),
        (with("status", json!("broken")), &["status"]),
        (with("secret", json!("whsec_mine")), &["secret"]),
    ] {
        assert_refuses_fields(&tenant.key.post(&all(&tenant), body).await, fields);
    }
    for _ in 0..20 {
        tenant.key.post(&all(&tenant), example()).await.ok();
    }
    tenant.key.post(&all(&tenant), example()).await.expect(403, "quota_exceeded");
}
