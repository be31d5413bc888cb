//! Send policies and reviews as agents meet them, and as people decide over MCP.

use model::{Role, Scope};
use serde_json::{Value, json};
use testkit::{Engine, Mcp, both_engines};

use super::Desk;

impl Desk {
    async fn set_policy(&self, policy: Value) {
        let path = format!("/api/v1/mailboxes/{}/send-policy", self.address);
        self.tenant.key.put(&path, policy).await.ok();
    }
}

async fn names(agent: &Mcp) -> Vec<String> {
    let tools = agent.tools().await;
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// rules: REVIEW-1, REVIEW-4, REVIEW-12, REVIEW-20
#[both_engines]
async fn an_agent_is_told_that_a_person_decides(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.set_policy(json!({ "review": "all" })).await;
    let agent = desk.agent.default_profile();
    let mail = json!({ "mailboxId": desk.address, "to": desk.address, "subject": "S", "text": "T" });
    let sent = agent.ok("send_email", mail.clone()).await;
    assert_eq!(sent["status"], "in_review");
    assert!(sent["fix"].as_str().unwrap().contains("Do not send it again"), "{sent}");
    let listed = agent.ok("list_reviews", json!({ "state": "pending" })).await;
    assert_eq!(listed["reviews"][0]["id"], sent["review_id"], "{listed}");
    let withdrawn =
        agent.ok("withdraw_review", json!({ "reviewId": sent["review_id"], "reason": "Wrong" })).await;
    assert_eq!((&withdrawn["state"], &withdrawn["reason"]), (&json!("withdrawn"), &json!("Wrong")));

    desk.set_policy(json!({ "recipients": { "mode": "list" } })).await;
    let refused = agent.refused("send_email", mail.clone()).await;
    assert_eq!(refused["code"], "send_blocked");
    assert_eq!(refused["details"], json!([{ "path": "to[0]", "message": "recipient_blocked" }]));
    desk.set_policy(json!({ "caps": { "per_day": 0 } })).await;
    assert_eq!(agent.refused("send_email", mail).await["code"], "send_cap_exceeded");

    // What it means is said before it happens.
    let tools = agent.tools().await;
    for name in ["send_email", "reply_to_email", "forward_email", "send_draft"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert!(tool["description"].as_str().unwrap().contains("`in_review`"), "{tool}");
    }
    let card = desk.server.anonymous().get("/.well-known/mcp/server-card.json").await.ok();
    let guide = desk.server.anonymous().get("/llms.txt").await.text();
    for text in [card["instructions"].as_str().unwrap(), &guide] {
        for word in ["`in_review`", "`scheduled`", "`send_blocked`", "`send_cap_exceeded`"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// rules: REVIEW-5, REVIEW-11, REVIEW-20
#[both_engines]
async fn people_decide_in_a_profile_of_their_own(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.set_policy(json!({ "review": "all" })).await;
    let mail = json!({ "mailboxId": desk.address, "to": desk.address, "subject": "S", "text": "T" });
    let review = desk.agent.ok("send_email", mail).await["review_id"].clone();
    let deciding = ["approve_review", "reject_review"];
    for profile in ["assistant", "agent-inbox", "full"] {
        let agent = desk.agent.profile(profile);
        let listed = names(&agent).await;
        for tool in deciding.iter().chain(&[
            "set_send_policy",
            "set_mailbox_send_policy",
            "delete_mailbox_send_policy",
        ]) {
            assert!(!listed.contains(&(*tool).to_owned()), "{profile}: {tool}");
            let called = agent
                .request("tools/call", json!({ "name": tool, "arguments": { "reviewId": review } }))
                .await;
            assert!(called["error"]["message"].as_str().unwrap().contains("People decide this"), "{called}");
        }
    }
    let key = desk.server.new_key(&desk.tenant.workspace, Role::Admin).await;
    let person = desk.server.key(&key.key).mcp().profile("people");
    let offered = names(&person).await;
    assert!(deciding.iter().all(|tool| offered.contains(&(*tool).to_owned())), "{offered:?}");
    let shown = person.ok("get_review", json!({ "reviewId": review })).await;
    let email = json!({ "mailboxId": desk.address, "emailId": shown["email_id"] });
    assert_eq!(person.ok("get_email", email).await["body"], "T");
    let changed = person.refused("approve_review", json!({ "reviewId": review, "digest": "0" })).await;
    assert_eq!(changed["code"], "review_changed");
    let decision = json!({ "reviewId": review, "digest": shown["digest"] });
    let own = desk.agent.profile("people").refused("approve_review", decision.clone()).await;
    assert_eq!(own["code"], "decision_forbidden");
    assert_eq!(person.ok("approve_review", decision).await["state"], "approved");
}

/// rules: MCP-11
#[both_engines]
async fn tools_of_reviews_need_their_scopes(engine: Engine) {
    let desk = Desk::new(engine).await;
    for (scopes, expected) in [
        (vec![Scope::Read], vec!["list_reviews", "get_review"]),
        (vec![Scope::Send], vec!["withdraw_review"]),
        (
            vec![Scope::Manage],
            vec![
                "approve_review",
                "reject_review",
                "get_send_policy",
                "get_mailbox_send_policy",
                "check_send_policy",
            ],
        ),
    ] {
        let key = desk.server.narrowed(&desk.tenant.workspace, Some(&scopes), None).await.mcp();
        let mut listed = names(&key.profile("full")).await;
        listed.extend(names(&key.profile("people")).await);
        for tool in [
            "list_reviews",
            "get_review",
            "withdraw_review",
            "approve_review",
            "reject_review",
            "get_send_policy",
            "get_mailbox_send_policy",
            "check_send_policy",
        ] {
            assert_eq!(listed.contains(&tool.to_owned()), expected.contains(&tool), "{scopes:?}: {tool}");
        }
    }
}
