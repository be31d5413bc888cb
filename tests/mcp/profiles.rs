//! Profiles: what a client gets by default, and what an agent that reads strangers' mail gets.

use serde_json::{Value, json};
use testkit::{Engine, both_engines};

use super::{Desk, faults};

/// rules: MCP-4
#[both_engines]
async fn an_unknown_profile_is_refused(engine: Engine) {
    let desk = Desk::new(engine).await;
    for profile in ["", "admin", "agent-inbox2", "AGENT-INBOX"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let answer = desk.agent.profile(profile).send(message).await;
        answer.expect(400, "validation_failed");
        let refused = answer.json();
        assert_eq!(faults(&refused), ["profile"]);
        for name in ["assistant", "agent-inbox", "full", "people"] {
            assert!(refused["fix"].as_str().unwrap().contains(name), "{refused}");
        }
    }
    assert_eq!(desk.agent.profile("assistant").tools().await, desk.agent.default_profile().tools().await);
    let answer = desk.agent.profile("full&proflie=agent-inbox").send(json!({})).await;
    assert_eq!(faults(&answer.json()), ["proflie"]);
}

/// The result of `tools/list` in tokens of four characters.
async fn tokens(agent: &testkit::Mcp) -> usize {
    agent.request("tools/list", json!({})).await["result"].to_string().chars().count() / 4
}

/// A day's work of an assistant, with what it gets without asking for a profile.
/// rules: MCP-8
#[both_engines]
async fn the_default_profile_is_small_and_enough(engine: Engine) {
    let desk = Desk::new(engine).await;
    let agent = desk.agent.default_profile();
    let count = agent.tools().await.len();
    let (small, full) = (tokens(&agent).await, tokens(&desk.agent).await);
    assert!(count <= 25 && small <= 6_000, "{count} tools, {small} tokens");
    assert!(full <= 20_000, "{full} tokens");

    let email = desk.receive("Invoice", "Please pay 12 EUR.").await;
    let (mailbox, one) =
        (json!({ "mailboxId": desk.address }), json!({ "mailboxId": desk.address, "emailId": email }));
    let with = |base: &Value, more: Value| {
        let mut all = base.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    agent.ok("create_mailbox", json!({ "name": "Second", "idempotencyKey": "k" })).await;
    assert_eq!(agent.ok("list_mailboxes", json!({})).await["items"].as_array().unwrap().len(), 2);
    agent.ok("search_emails", with(&mailbox, json!({ "query": "invoice" }))).await;
    agent.ok("get_email_context", one.clone()).await;
    // An argument that is not declared here is taken all the same.
    agent.ok("list_emails", with(&mailbox, json!({ "has_attachment": false, "limit": 5 }))).await;
    // Nor does a tool have to be, which the list had before.
    agent.ok("list_threads", mailbox.clone()).await;
    agent.ok("create_folder", with(&mailbox, json!({ "name": "Bills" }))).await;
    agent.ok("create_custom_label", with(&mailbox, json!({ "name": "Money" }))).await;
    agent.ok("update_email", with(&one, json!({ "read": true, "custom_labels": ["money"] }))).await;
    agent.ok("move_email", with(&one, json!({ "folderId": "bills" }))).await;
    let draft = agent
        .ok("save_draft", with(&mailbox, json!({ "to": desk.address, "subject": "S", "body": "B" })))
        .await;
    let draft = draft["id"].as_str().or(draft["draft_id"].as_str()).unwrap().to_owned();
    agent.ok("send_draft", with(&mailbox, json!({ "draftId": draft }))).await;
    let to_self = json!({ "to": desk.address, "subject": "S", "text": "T" });
    agent.ok("send_email", with(&mailbox, to_self)).await;
    agent.ok("reply_to_email", with(&one, json!({ "to": desk.address, "text": "Paid." }))).await;
    let later = json!({ "to": desk.address, "subject": "S", "body": "B", "scheduled_send_at": "2026-07-15T09:00:00Z" });
    agent.ok("schedule_send", with(&mailbox, later)).await;
    let scheduled = agent.ok("list_scheduled_sends", mailbox.clone()).await;
    assert!(scheduled.to_string().contains("2026-07-15T09:00:00.000Z"), "{scheduled}");
}

/// rules: MCP-3
#[both_engines]
async fn the_narrow_profile_offers_only_what_is_safe(engine: Engine) {
    let desk = Desk::new(engine).await;
    let agent = desk.agent.profile("agent-inbox");
    let tools = agent.tools().await;
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "create_mailbox",
            "get_credit_usage",
            "get_email",
            "get_email_context",
            "get_mailbox",
            "get_thread",
            "get_verification",
            "list_custom_labels",
            "list_emails",
            "list_folders",
            "list_mailboxes",
            "search_emails",
            "wait_for_email",
        ]
    );
    for tool in
        ["send_email", "delete_email", "get_raw_email", "get_attachment", "update_mailbox", "list_threads"]
    {
        let answer = agent.request("tools/call", json!({ "name": tool, "arguments": {} })).await;
        assert_eq!(answer["error"]["code"], -32602, "{tool}");
    }
    let made = agent.ok("create_mailbox", json!({ "name": "Mine", "idempotencyKey": "k" })).await;
    assert!(made["email"].is_string());
    let leak =
        json!({ "name": "Leak", "settings": { "forwarding": { "enabled": true, "email": "x@evil.test" } } });
    assert_eq!(faults(&agent.refused("create_mailbox", leak).await), ["settings"]);
}

/// rules: MCP-3
#[both_engines]
async fn only_clean_mail_is_shown_and_only_as_safe_text(engine: Engine) {
    let desk = Desk::new(engine).await;
    let agent = desk.agent.profile("agent-inbox");
    let good = desk.receive("Good", "Your code is 482913.").await;
    let bad = desk.receive_flagged("Bad").await;
    let mailbox = json!({ "mailboxId": desk.address });
    let listed = agent.ok("list_emails", mailbox.clone()).await;
    assert_eq!(listed["emails"].as_array().unwrap().len(), 2);
    for email in listed["emails"].as_array().unwrap() {
        assert_eq!(email["agent_safe_content"], true);
        let withheld = email["content_omitted"] == true;
        assert_eq!(withheld, email["id"] == bad.as_str());
        assert!(email.get("raw_headers").is_none(), "{email}");
    }
    for (tool, arguments) in [
        ("get_email", json!({ "mailboxId": desk.address, "emailId": bad })),
        ("search_emails", json!({ "mailboxId": desk.address, "query": "subject:Bad" })),
    ] {
        let shown = agent.ok(tool, arguments).await.to_string();
        assert!(!shown.contains("EICAR") && shown.contains("content_omitted\":true"), "{tool}: {shown}");
    }
    let found = agent.ok("get_verification", json!({ "mailboxId": desk.address, "emailId": good })).await;
    assert_eq!(found["codes"][0]["value"], "482913");
    for (name, value) in [("agent_safe_content", json!(false)), ("require_scan_status", json!("flagged"))] {
        let mut arguments = json!({ "mailboxId": desk.address });
        arguments[name] = value.clone();
        assert_eq!(faults(&agent.refused("list_emails", arguments).await), [name]);
    }
    let wait = json!({ "mailboxId": desk.address, "require_scan_status": "flagged" });
    assert_eq!(faults(&agent.refused("wait_for_email", wait).await), ["require_scan_status"]);
    let wait = json!({ "mailboxId": desk.address, "after": "2026-07-01T00:00:00Z", "from": "bad@remote.test", "timeout_seconds": 1 });
    let held = agent.ok("wait_for_email", wait).await;
    assert_eq!((&held["outcome"], held.get("email")), (&json!("held"), None));
    // Without the profile the caller decides.
    let whole = desk.agent.ok("get_email", json!({ "mailboxId": desk.address, "emailId": good })).await;
    assert!(whole["raw_headers"].is_string());
}

fn longest_body(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let own = object.get("body").and_then(Value::as_str).map_or(0, |body| body.chars().count());
            object.values().map(longest_body).max().unwrap_or_default().max(own)
        }
        Value::Array(items) => items.iter().map(longest_body).max().unwrap_or_default(),
        _ => 0,
    }
}

/// rules: MCP-3
#[both_engines]
async fn bodies_and_results_are_bounded(engine: Engine) {
    let desk = Desk::new(engine).await;
    let long = "All work and no play. ".repeat(2_000);
    let mut ids = Vec::new();
    for number in 0..24 {
        ids.push(desk.receive(&format!("Mail {number}"), &long).await);
    }
    let agent = desk.agent.profile("agent-inbox");
    let one = json!({ "mailboxId": desk.address, "emailId": ids[0] });
    for (tool, arguments) in [
        ("get_email", one.clone()),
        ("get_email_context", one.clone()),
        ("list_emails", json!({ "mailboxId": desk.address, "max_body_chars": 100_000, "limit": 100 })),
        (
            "search_emails",
            json!({ "mailboxId": desk.address, "query": "play", "limit": 100, "max_body_chars": 100_000 }),
        ),
    ] {
        let result = agent.call(tool, arguments).await;
        let size = result.to_string().chars().count();
        assert!(size <= 128_000, "{tool}: {size}");
        let body = longest_body(&result["structuredContent"]);
        assert!(body <= 12_000, "{tool}: {body}");
    }
    let shown = agent.ok("get_email_context", one.clone()).await;
    let email = &shown["email"];
    assert_eq!(email["body"].as_str().unwrap().chars().count(), 12_000);
    assert_eq!(email["content_truncated"], true);
    assert!(email["body_original_char_count"].as_u64().unwrap() > 40_000);
    // The full profile is bounded too, and says what is missing.
    let all = json!({ "mailboxId": desk.address, "max_body_chars": 100_000, "limit": 100 });
    let result = desk.agent.call("list_emails", all).await;
    assert!(result.to_string().chars().count() <= 400_000);
    assert!(
        result["structuredContent"]["result_cut"]["texts_cut_at"].is_u64(),
        "{}",
        result["structuredContent"]["result_cut"]
    );
    let whole = desk.agent.ok("get_email", one).await;
    assert!(whole["body"].as_str().unwrap().chars().count() > 40_000);
    assert!(whole.get("result_cut").is_none());
}
