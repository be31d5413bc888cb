//! The name and the settings of a mailbox.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_refused, assert_refuses_fields, new_mailbox, path_of},
    mailboxes::default_settings,
};

const ALL: &str = "/api/v1/mailboxes";

/// Settings in which every single one differs from its default.
fn other_settings() -> Value {
    json!({
        "forwarding": { "enabled": true, "email": "Boss+Copies@Bücher.example" },
        "signature": { "enabled": true, "text": "Bye\n-- \nÄnn" },
        "autoReply": { "enabled": true, "subject": "Away", "message": "Back\nsoon" },
        "fromName": "Änn from sales",
        "agentInbox": {
            "mode": "verification", "automationsEnabled": false, "requireCleanScanForAutomation": false
        },
        "autoDraft": { "enabled": true, "requireApproval": false },
        "senderPolicy": { "allow": ["@acme.com", "ann@x.org", "*"], "block": ["@bücher.example"] },
        "spam": { "toSpamFolder": false },
    })
}

/// rules: MBX-8
#[both_engines]
async fn settings_are_replaced_whole_or_left_alone(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = json!({ "name": "A", "settings": other_settings() });
    let made = tenant.key.post(ALL, body).await.ok();
    let mut wanted = other_settings();
    wanted["forwarding"]["email"] = json!("Boss+Copies@xn--bcher-kva.example");
    assert_eq!(made["settings"], wanted);
    let path = path_of(&made);

    server.clock.advance(5);
    let renamed = tenant.key.put(&path, json!({ "name": " B " })).await.ok();
    assert_eq!((&renamed["name"], &renamed["settings"]), (&json!("B"), &wanted));
    assert_eq!(renamed["updated_at"], "2026-07-14T09:00:05.000Z");
    assert_eq!(renamed["created_at"], made["created_at"]);

    let body = json!({ "settings": { "fromName": "C", "autoReply": { "message": "Gone" } } });
    let changed = tenant.key.put(&path, body).await.ok();
    let mut wanted = default_settings();
    wanted["fromName"] = json!("C");
    wanted["autoReply"]["message"] = json!("Gone");
    assert_eq!((&changed["name"], &changed["settings"]), (&json!("B"), &wanted));
    assert_eq!(tenant.key.get(&path).await.ok(), changed);

    for nothing in [json!({}), json!({ "name": null, "settings": null })] {
        let same = tenant.key.put(&path, nothing).await.ok();
        assert_eq!((&same["name"], &same["settings"]), (&json!("B"), &wanted));
    }
    let reset = tenant.key.put(&path, json!({ "settings": {} })).await.ok();
    assert_eq!(reset["settings"], default_settings());
    for field in ["email", "public_id", "workspace_id", "created_at", "id"] {
        assert_eq!(reset[field], made[field], "{field}");
    }
}

/// rules: MBX-9, ERR-3
#[both_engines]
async fn names_have_1_to_80_characters_on_one_line(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let made = new_mailbox(&tenant.key, "A").await;
    let (empty, long, control) =
        ("must not be empty", "must have at most 80 characters", "must not contain control characters");
    for (name, message) in [
        (String::new(), empty),
        (" \t\n\u{3000}".to_owned(), empty),
        ("a".repeat(81), long),
        ("😀".repeat(81), long),
        ("a\nb".to_owned(), control),
        ("a\u{7}b".to_owned(), control),
        ("a\u{9f}b".to_owned(), control),
    ] {
        let answer = tenant.key.post(ALL, json!({ "name": name })).await;
        assert_refused(&answer, &[("name", message)]);
        let answer = tenant.key.put(&path_of(&made), json!({ "name": name })).await;
        assert_refused(&answer, &[("name", message)]);
    }
    assert_eq!(tenant.key.get(&path_of(&made)).await.ok(), made);
    for name in ["a".repeat(80), "😀".repeat(80), format!("  {}  ", "ü".repeat(80)), "0".to_owned()] {
        let named = tenant.key.post(ALL, json!({ "name": name })).await.ok();
        assert_eq!(named["name"], name.trim());
        let renamed = tenant.key.put(&path_of(&made), json!({ "name": name })).await.ok();
        assert_eq!(renamed["name"], name.trim());
    }
    for (body, path) in
        [(json!({}), "name"), (json!({ "name": null }), "name"), (json!({ "name": ["A"] }), "name")]
    {
        assert_refuses_fields(&tenant.key.post(ALL, body).await, &[path]);
    }
}

/// rules: MBX-9, ERR-3, HTTP-3
#[both_engines]
async fn faulty_settings_are_named_by_their_path(engine: Engine) {
    let cases = [
        (json!({ "forwarding": { "enabled": true } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "enabled": true, "email": null } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "email": "nobody" } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "email": "" } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "email": "a@x.org, b@x.org" } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "email": "a@x.org\r\nBcc: b@x.org" } }), "settings.forwarding.email"),
        (json!({ "forwarding": { "enabled": "yes" } }), "settings.forwarding.enabled"),
        (json!({ "forwarding": { "enabled": 1 } }), "settings.forwarding.enabled"),
        (json!({ "forwarding": [true, "a@x.org"] }), "settings.forwarding"),
        (json!({ "forwarding": null }), "settings.forwarding"),
        (json!({ "signature": { "text": "ü".repeat(5001) } }), "settings.signature.text"),
        (json!({ "signature": { "html": "<b>" } }), "settings.signature.html"),
        (json!({ "autoReply": { "subject": "two\nlines" } }), "settings.autoReply.subject"),
        (json!({ "autoReply": { "subject": "two\rlines" } }), "settings.autoReply.subject"),
        (json!({ "autoReply": { "subject": "ü".repeat(201) } }), "settings.autoReply.subject"),
        (json!({ "autoReply": { "message": "ü".repeat(10_001) } }), "settings.autoReply.message"),
        (json!({ "fromName": "a\nb" }), "settings.fromName"),
        (json!({ "fromName": "ü".repeat(81) }), "settings.fromName"),
        (json!({ "from_name": "A" }), "settings.from_name"),
        (json!({ "agentInbox": { "mode": "Standard" } }), "settings.agentInbox.mode"),
        (json!({ "agentInbox": { "mode": 0 } }), "settings.agentInbox.mode"),
        (json!({ "agentInbox": { "automations_enabled": true } }), "settings.agentInbox.automations_enabled"),
        (json!({ "autoDraft": { "requireApproval": null } }), "settings.autoDraft.requireApproval"),
        (json!({ "senderPolicy": { "allow": ["ann@x.org", "@"] } }), "settings.senderPolicy.allow[1]"),
        (json!({ "senderPolicy": { "block": ["x.org"] } }), "settings.senderPolicy.block[0]"),
        (json!({ "senderPolicy": { "block": ["**"] } }), "settings.senderPolicy.block[0]"),
        (json!({ "senderPolicy": { "block": [""] } }), "settings.senderPolicy.block[0]"),
        (json!({ "senderPolicy": { "block": "ann@x.org" } }), "settings.senderPolicy.block"),
        (json!({ "senderPolicy": { "block": [7] } }), "settings.senderPolicy.block[0]"),
        (json!({ "senderPolicy": { "allow": vec!["*"; 501] } }), "settings.senderPolicy.allow"),
        (json!({ "senderPolicy": [] }), "settings.senderPolicy"),
        (json!({ "spam": { "toSpamFolder": {} } }), "settings.spam.toSpamFolder"),
        (json!({ "spam": true }), "settings.spam"),
        (json!({ "sound": "loud" }), "settings.sound"),
        (json!([]), "settings"),
        (json!("standard"), "settings"),
    ];
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let made = new_mailbox(&tenant.key, "A").await;
    for (settings, path) in &cases {
        let answer = tenant.key.post(ALL, json!({ "name": "B", "settings": settings })).await;
        assert_refuses_fields(&answer, &[path]);
        let answer = tenant.key.put(&path_of(&made), json!({ "settings": settings })).await;
        assert_refuses_fields(&answer, &[path]);
    }
    assert_eq!(tenant.key.get(ALL).await.ok().as_array().unwrap().len(), 1);
    assert_eq!(tenant.key.get(&path_of(&made)).await.ok(), made);

    // The bounds themselves are fine.
    let widest = json!({
        "signature": { "text": "ü".repeat(5000) },
        "autoReply": { "subject": "ü".repeat(200), "message": "ü".repeat(10_000) },
        "fromName": "ü".repeat(80),
        "senderPolicy": { "allow": vec!["*"; 500] },
        "forwarding": { "enabled": false },
    });
    tenant.key.put(&path_of(&made), json!({ "settings": widest })).await.ok();
}

/// rules: ERR-3
#[both_engines]
async fn all_faulty_fields_are_named_at_once(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = json!({
        "name": "\u{7}", "email": 5, "colour": "red", "plan": "Enterprise",
        "settings": {
            "forwarding": { "enabled": true, "to": "x" }, "fromName": "a\nb", "spam": 3,
            "senderPolicy": { "allow": ["?", 4, "!"] },
        },
    });
    assert_refuses_fields(
        &tenant.key.post(ALL, body).await,
        &[
            "name",
            "email",
            "colour",
            "plan",
            "settings.forwarding.to",
            "settings.forwarding.email",
            "settings.fromName",
            "settings.spam",
            "settings.senderPolicy.allow[0]",
            "settings.senderPolicy.allow[1]",
            "settings.senderPolicy.allow[2]",
        ],
    );
    let login = server.anonymous().post("/api/console/login", json!({})).await;
    assert_refused(&login, &[("email", "is required"), ("password", "is required")]);
    let login = server.anonymous().post("/api/console/login", json!({ "email": 1, "pass": 2 })).await;
    assert_refuses_fields(&login, &["email", "pass", "password"]);
    let path = format!("/api/v1/workspaces/{}/usage/history?days=x&colour=red&size=1", tenant.workspace);
    let fault = "expected a whole number";
    assert_refused(
        &tenant.key.get(&path).await,
        &[("days", fault), ("colour", "unknown field"), ("size", "unknown field")],
    );
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
}
