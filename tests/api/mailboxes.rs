//! Mailboxes: made, found, listed, changed, deleted.

use model::{Plan, Role};
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, ServerOptions, both_engines};

use super::help::{assert_missing, encoded, keys, new_mailbox, path_of};

const ALL: &str = "/api/v1/mailboxes";

/// The settings of a mailbox that was made without any.
pub(super) fn default_settings() -> Value {
    json!({
        "forwarding": { "enabled": false, "email": null },
        "signature": { "enabled": false, "text": "" },
        "autoReply": { "enabled": false, "subject": "", "message": "" },
        "fromName": "",
        "agentInbox": {
            "mode": "standard", "automationsEnabled": true, "requireCleanScanForAutomation": true
        },
        "autoDraft": { "enabled": false, "requireApproval": true },
        "senderPolicy": { "allow": [], "block": [] },
        "spam": { "toSpamFolder": true },
    })
}

/// A name whose address is reserved is still a name: the address is made up.
/// rules: MBX-1
#[both_engines]
async fn a_name_without_an_address_gets_one_made_of_it(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let long = "A very long name ".repeat(4);
    for (name, start) in [
        ("Support", "support-"),
        ("日本語", "agent-"),
        (long.trim(), "a-very-long-name-a-"),
        ("ADMIN!", "admin-"),
    ] {
        let made = tenant.key.post(ALL, json!({ "name": name })).await.ok();
        assert_eq!(made["name"], name);
        let (local, domain) = made["email"].as_str().unwrap().split_once('@').unwrap();
        assert!(local.starts_with(start) && local.len() <= 30 && domain == "agents.test", "{made}");
    }
    let asked = json!({ "name": "Support", "email": "support@agents.test" });
    let refused = tenant.key.post(ALL, asked).await;
    assert!(refused.text().contains("is reserved"), "{}", refused.text());
    refused.expect(400, "validation_failed");
}

/// rules: MBX-1, MBX-4, MBX-8, MBX-14, HTTP-2
#[both_engines]
async fn a_new_mailbox_is_shown_whole(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.set("2026-07-14T09:00:00.123456Z");
    let answer =
        tenant.key.post(ALL, json!({ "name": "  Support désk  ", "email": "Help.Desk_1@SECOND.test" })).await;
    assert_eq!((answer.status, answer.header("content-type")), (201, "application/json"));
    let made = answer.json();
    assert_eq!(
        keys(&made),
        [
            "id",
            "public_id",
            "workspace_id",
            "email",
            "name",
            "email_domain_id",
            "inbound_provider",
            "outbound_provider",
            "settings",
            "can_receive",
            "receiving_status",
            "disabled_at",
            "disabled_reason",
            "created_at",
            "updated_at"
        ]
    );
    assert!(made["id"].as_str().unwrap().starts_with("mbx_"));
    let uuid = made["public_id"].as_str().unwrap();
    assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    assert_eq!(made["workspace_id"], tenant.workspace.as_str());
    assert_eq!(made["email"], "help.desk_1@second.test");
    assert_eq!(made["name"], "Support désk");
    assert_eq!(made["settings"], default_settings());
    assert_eq!((&made["can_receive"], &made["receiving_status"]), (&json!(true), &json!("ready")));
    assert_eq!(
        (&made["created_at"], &made["updated_at"]),
        (&json!("2026-07-14T09:00:00.123Z"), &made["created_at"])
    );
    assert_eq!(made["inbound_provider"], "edge_routing");
    for nothing in ["email_domain_id", "disabled_at", "disabled_reason"] {
        assert_eq!(made[nothing], Value::Null, "{nothing}");
    }
    assert_eq!(made["outbound_provider"], "local");
    assert_eq!(tenant.key.get(&path_of(&made)).await.ok(), made);

    // Without an address: a new one on the first hosted domain, another each time.
    let other = new_mailbox(&tenant.key, "Other").await;
    let address = other["email"].as_str().unwrap();
    assert!(address.ends_with("@agents.test") && address != made["email"].as_str().unwrap(), "{address}");
}

/// rules: MBX-14
#[both_engines]
async fn a_server_that_takes_mail_has_mailboxes_that_are_ready(engine: Engine) {
    let server =
        Server::with(engine, ServerOptions { receives_mail: true, ..ServerOptions::default() }).await;
    let tenant = server.tenant(Plan::Free).await;
    let made = new_mailbox(&tenant.key, "Inbox").await;
    assert_eq!((&made["can_receive"], &made["receiving_status"]), (&json!(true), &json!("ready")));
    let sql = "UPDATE mailbox SET disabled_at = 1, disabled_reason = 'abuse'";
    server.app.db().system_write(async move |tx| tx.run(sql, &[]).await).await.unwrap();
    let shown = tenant.key.get(&path_of(&made)).await.ok();
    assert_eq!((&shown["can_receive"], &shown["receiving_status"]), (&json!(false), &json!("disabled")));
    assert_eq!(shown["disabled_reason"], "abuse");
}

/// rules: MBX-2
#[both_engines]
async fn a_mailbox_has_three_names(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let made = tenant.key.post(ALL, json!({ "name": "A", "email": "some.body@agents.test" })).await.ok();
    let (uuid, id) = (made["public_id"].as_str().unwrap(), made["id"].as_str().unwrap());
    for name in [
        uuid,
        &uuid.to_uppercase(),
        id,
        "some.body@agents.test",
        "SOME.Body@Agents.TEST",
        "some.body%40agents.test",
        "some.body@agents.test.",
    ] {
        for inside in ["", "/storage", "/folders", "/custom-labels"] {
            let answer = tenant.key.get(&format!("{ALL}/{name}{inside}")).await;
            assert_eq!(answer.status, 200, "{name}{inside}: {}", answer.text());
        }
    }
    let short = &id[..id.len() - 1];
    for name in ["nothing", "mbx_", short, "some.body+tag@agents.test", "some.body@second.test", "%20", "@"] {
        assert_missing(&tenant.key.get(&format!("{ALL}/{name}")).await, "Mailbox");
    }
}

/// Tries everything that can be done with a mailbox under a name that must find nothing.
async fn assert_out_of_reach(thief: &Caller, name: &str, label: &str) {
    let name = encoded(name);
    assert_missing(&thief.get(&format!("{ALL}/{name}")).await, "Mailbox");
    assert_missing(&thief.put(&format!("{ALL}/{name}"), json!({ "name": "Taken" })).await, "Mailbox");
    assert_missing(&thief.delete(&format!("{ALL}/{name}")).await, "Mailbox");
    for (inside, body) in [
        ("storage", None),
        ("folders", None),
        ("folders", Some(json!({ "name": "New" }))),
        ("custom-labels", None),
        ("custom-labels", Some(json!({ "name": "New" }))),
        ("custom-labels/reorder", Some(json!({ "ids": [label] }))),
    ] {
        let path = format!("{ALL}/{name}/{inside}");
        let answer = match body {
            Some(body) => thief.post(&path, body).await,
            None => thief.get(&path).await,
        };
        assert_missing(&answer, "Mailbox");
    }
    for inside in ["folders/mine", "folders/inbox", &format!("custom-labels/{label}")] {
        let path = format!("{ALL}/{name}/{inside}");
        assert_missing(&thief.put(&path, json!({ "name": "Taken" })).await, "Mailbox");
        assert_missing(&thief.delete(&path).await, "Mailbox");
    }
}

/// rules: MBX-3, HTTP-5
#[both_engines]
async fn no_spelling_reaches_another_workspaces_mailbox(engine: Engine) {
    let server = Server::start(engine).await;
    let (owner, thief) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    let made = owner.key.post(ALL, json!({ "name": "A", "email": "some.body@agents.test" })).await.ok();
    let label =
        owner.key.post(&format!("{}/custom-labels", path_of(&made)), json!({ "name": "L" })).await.ok();
    owner.key.post(&format!("{}/folders", path_of(&made)), json!({ "name": "Mine" })).await.ok();
    let (uuid, id) = (made["public_id"].as_str().unwrap(), made["id"].as_str().unwrap());
    let label = label["id"].as_str().unwrap();
    let before = owner.key.get(ALL).await.bytes;
    for name in [
        uuid,
        &uuid.to_uppercase(),
        &uuid.replace('-', ""),
        id,
        &id.to_uppercase(),
        "some.body@agents.test",
        "SOME.BODY@AGENTS.TEST",
        "some.body@agents.test.",
        "some.body+tag@agents.test",
        "some.body@ａgents.test",
        "some.body@agents。test",
        "ſome.body@agents.test",
        " some.body@agents.test",
        "<some.body@agents.test>",
        "00000000-0000-7000-8000-000000000000",
    ] {
        assert_out_of_reach(&thief.key, name, label).await;
    }
    assert_eq!(owner.key.get(ALL).await.bytes, before);
    assert_eq!(owner.key.get(&format!("{}/folders", path_of(&made))).await.ok().as_array().unwrap().len(), 8);
    assert_eq!(thief.key.get(ALL).await.ok(), json!([]));
}

/// rules: MBX-13, MBX-15
#[both_engines]
async fn both_lists_and_the_storage_tell_the_same_mailboxes(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Enterprise).await, server.tenant(Plan::Free).await);
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
    let mut made = Vec::new();
    for number in 0..5 {
        made.push(new_mailbox(&tenant.key, &format!("Number {number}")).await);
    }
    new_mailbox(&other.key, "Not theirs").await;
    let listed = tenant.key.get(ALL).await;
    let unread = json!({ "customer_support": 0, "technical": 0, "partnership": 0, "other": 0 });
    let wanted: Vec<Value> = made
        .iter()
        .map(|mailbox| {
            let mut mailbox = mailbox.clone();
            mailbox["inbox_unread_by_category"] = unread.clone();
            mailbox
        })
        .collect();
    assert_eq!(listed.ok(), json!(wanted));
    let of_workspace = tenant.key.get(&format!("/api/v1/workspaces/{}/mailboxes", tenant.workspace)).await;
    assert_eq!(of_workspace.bytes, listed.bytes);
    let named = tenant.key.get(&format!("{ALL}?workspaceId={}", tenant.workspace)).await;
    assert_eq!(named.bytes, listed.bytes);
    let foreign = tenant.key.get(&format!("{ALL}?workspaceId={}", other.workspace)).await;
    foreign.expect(403, "workspace_scope_denied");
    let body = json!({ "name": "A", "workspaceId": other.workspace });
    tenant.key.post(ALL, body).await.expect(403, "workspace_scope_denied");
    let body = json!({ "name": "A", "workspaceId": tenant.workspace });
    assert_eq!(tenant.key.post(ALL, body).await.status, 201);

    let storage = tenant.key.get(&format!("{}/storage", path_of(&made[0]))).await.ok();
    assert_eq!(
        storage,
        json!({ "mailbox_id": made[0]["id"], "email": made[0]["email"], "storage_gb": 0.0, "blob_count": 0 })
    );
}

/// rules: MBX-10
#[both_engines]
async fn a_member_makes_mailboxes_and_an_admin_changes_them(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let member = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    let made = new_mailbox(&member, "Made by a member").await;
    let refused = member.put(&path_of(&made), json!({ "name": "New" })).await;
    refused.expect(403, "role_required");
    assert_eq!(refused.json()["error"], "Forbidden");
    member.delete(&path_of(&made)).await.expect(403, "role_required");
    // What is refused for the role is not looked at any further.
    member.put(&format!("{ALL}/nothing"), json!({ "nonsense": 1 })).await.expect(403, "role_required");
    assert_eq!(member.get(&path_of(&made)).await.ok(), made);
    assert_eq!(tenant.key.put(&path_of(&made), json!({ "name": "New" })).await.ok()["name"], "New");
    assert_eq!(tenant.key.delete(&path_of(&made)).await.status, 204);
}
