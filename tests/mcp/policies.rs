//! Send policies over MCP: the tools meet them like every other way to send.

use serde_json::json;
use testkit::{Engine, both_engines};

use super::Desk;

/// rules: POLICY-11, REVIEW-1
#[both_engines]
async fn tools_that_send_meet_the_policy(engine: Engine) {
    let desk = Desk::new(engine).await;
    let id = desk.receive("Question", "x").await;
    let path = format!("/api/v1/workspaces/{}/send-policy", desk.tenant.workspace);
    let other = desk.tenant.key.post("/api/v1/mailboxes", json!({ "name": "Other" })).await.ok();
    let to = other["email"].clone();
    let calls = |key: &str| {
        [
            ("send_email", json!({ "mailboxId": desk.address, "to": to, "subject": "S", "text": "T" })),
            ("reply_to_email", json!({ "mailboxId": desk.address, "emailId": id, "to": to, "text": "T" })),
            ("forward_email", json!({ "mailboxId": desk.address, "emailId": id, "to": to, "text": "T" })),
        ]
        .map(|(tool, mut arguments)| {
            arguments["idempotencyKey"] = json!(format!("{key} {tool}"));
            (tool, arguments)
        })
    };
    desk.tenant.key.put(&path, json!({ "recipients": { "mode": "list" } })).await.ok();
    for (tool, arguments) in calls("blocked") {
        let refused = desk.agent.refused(tool, arguments).await;
        assert_eq!(refused["code"], "send_blocked", "{tool}: {refused}");
    }
    desk.tenant.key.put(&path, json!({ "review": "all" })).await.ok();
    for (tool, arguments) in calls("held") {
        let sent = desk.agent.ok(tool, arguments).await;
        assert_eq!(sent["status"], "in_review", "{tool}: {sent}");
        assert!(sent["fix"].as_str().unwrap().contains("Do not send it again"));
    }
    let list = format!("/api/v1/mailboxes/{}/emails", other["public_id"].as_str().unwrap());
    assert_eq!(desk.tenant.key.get(&list).await.ok()["totalCount"], 0);
}
