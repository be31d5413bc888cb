//! Who made what leads out of a workspace, and what becomes of it when that member leaves.

use model::{Plan, Role};
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::{Person, at, join};

const CONNECTIONS: &str = "/api/v1/integrations/connections";

async fn webhook(caller: &Caller, tenant: &Tenant) -> Value {
    let body = json!({ "url": "https://hooks.example.org/", "event_types": ["mailbox.created"] });
    caller.post(&at(tenant, "/webhooks"), body).await.ok()
}

async fn connection(caller: &Caller) -> Value {
    // Nobody listens there; the connection is kept all the same.
    caller.post(CONNECTIONS, json!({ "name": "Tools", "url": "http://127.0.0.1:9/" })).await.ok()
}

fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}

/// rules: HOOK-10, AFF-9
#[both_engines]
async fn members_have_no_say_over_what_leads_out(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let hooks = at(&tenant, "/webhooks");
    let one = format!("{hooks}/{}", id(&webhook(&tenant.key, &tenant).await));
    tenant.key.post("/api/v1/affiliate/signup", json!({ "payout_email": "a@people.test" })).await.ok();
    let member = join(&server, &tenant, "bob@people.test", "member").await.caller;
    let key = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    for caller in [&member, &key] {
        for path in [hooks.clone(), one.clone(), format!("{one}/deliveries")] {
            caller.get(&path).await.expect(403, "role_required");
        }
        let body = json!({ "url": "https://hooks.example.org/", "event_types": ["mailbox.created"] });
        caller.post(&hooks, body).await.expect(403, "role_required");
        caller.patch(&one, json!({ "status": "paused" })).await.expect(403, "role_required");
        for rest in ["/rotate-secret", "/test", "/deliveries/dlv_1/retry"] {
            caller.post(&format!("{one}{rest}"), json!({})).await.expect(403, "role_required");
        }
        caller.delete(&one).await.expect(403, "role_required");
    }
    let change = json!({ "payout_email": "thief@evil.test" });
    key.patch("/api/v1/affiliate/me", change.clone()).await.expect(403, "role_required");
    key.post("/api/v1/affiliate/signup", change).await.expect(403, "role_required");
    assert_eq!(key.get("/api/v1/affiliate/me").await.ok()["payout_email"], "a@people.test");
    assert_eq!(member.get("/console/webhooks").await.status, 403);
    assert!(!member.get("/console").await.text().contains("/console/webhooks"));
}

/// rules: HOOK-10, INTEG-8
#[both_engines]
async fn what_a_member_made_is_paused_when_they_leave(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let ada = server.log_in(&tenant).await;
    let bob: Person = join(&server, &tenant, "bob@people.test", "admin").await;
    let (hooks, members) = (at(&tenant, "/webhooks"), at(&tenant, "/members"));
    let of_bob = webhook(&bob.caller, &tenant).await;
    let (of_key, of_ada) = (webhook(&tenant.key, &tenant).await, webhook(&ada, &tenant).await);
    assert_eq!(of_bob["created_by"], bob.id);
    assert_eq!((&of_key["created_by"], &of_ada["created_by"]), (&Value::Null, &json!(tenant.account)));
    let connected = connection(&bob.caller).await;
    let own = connection(&tenant.key).await;
    assert_eq!((&connected["created_by"], &own["created_by"]), (&json!(bob.id), &Value::Null));

    assert_eq!(tenant.key.delete(&format!("{members}/{}", bob.id)).await.status, 204);
    let status = async |made: &Value| {
        let hook = tenant.key.get(&format!("{hooks}/{}", id(made))).await.ok();
        (hook["status"].as_str().unwrap().to_owned(), hook["created_by"].clone())
    };
    assert_eq!(status(&of_bob).await, ("paused".to_owned(), json!(bob.id)));
    assert_eq!(status(&of_key).await.0, "active");
    assert_eq!(status(&of_ada).await.0, "active");
    let listed = tenant.key.get(CONNECTIONS).await.ok();
    assert_eq!((&listed[0]["status"], &listed[1]["status"]), (&json!("paused"), &json!("error")));
    let page = ada.get("/console/webhooks").await.text();
    assert!(page.contains("by a former member") && page.contains("by the workspace"), "{page}");
    let page = ada.get("/console/integrations").await.text();
    assert!(page.contains("by a former member") && page.contains("has left"), "{page}");

    // A change alone takes nothing over; putting it to use does.
    let one = format!("{hooks}/{}", id(&of_bob));
    ada.patch(&one, json!({ "event_types": ["mailbox.deleted"] })).await.ok();
    assert_eq!(status(&of_bob).await, ("paused".to_owned(), json!(bob.id)));
    ada.patch(&one, json!({ "status": "active" })).await.ok();
    assert_eq!(status(&of_bob).await, ("active".to_owned(), json!(tenant.account)));
    let sync = format!("{CONNECTIONS}/{}/sync", id(&connected));
    let synced = ada.post(&sync, json!({})).await.ok();
    assert_eq!((&synced["status"], &synced["created_by"]), (&json!("error"), &json!(tenant.account)));

    // What a member made who is still there stays theirs when another admin resumes it.
    let one = format!("{hooks}/{}", id(&of_ada));
    tenant.key.patch(&one, json!({ "status": "paused" })).await.ok();
    tenant.key.patch(&one, json!({ "status": "active" })).await.ok();
    assert_eq!(status(&of_ada).await, ("active".to_owned(), json!(tenant.account)));
}
