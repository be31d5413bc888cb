//! Answers that are no JSON, and calls that take bytes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use testkit::{Engine, both_engines};

use super::{Desk, faults};

/// rules: MCP-1
#[both_engines]
async fn files_come_as_resources_or_as_links(engine: Engine) {
    let desk = Desk::new(engine).await;
    let raw = b"From: a@remote.test\r\nSubject: S\r\n\r\nHello\r\n";
    let arguments = json!({ "mailboxId": desk.address, "content": STANDARD.encode(raw), "content_type": "message/rfc822" });
    let imported = desk.agent.ok("import_emails", arguments).await;
    let id =
        imported["ids"][0].as_str().or(imported["emails"][0]["id"].as_str()).unwrap_or_default().to_owned();
    assert!(!id.is_empty(), "{imported}");
    let result = desk.agent.call("get_raw_email", json!({ "mailboxId": desk.address, "emailId": id })).await;
    assert_eq!(
        (&result["structuredContent"]["media_type"], &result["structuredContent"]["size"]),
        (&json!("message/rfc822"), &json!(raw.len()))
    );
    let resource = &result["content"][1]["resource"];
    assert_eq!(STANDARD.decode(resource["blob"].as_str().unwrap()).unwrap(), raw);
    assert_eq!(result["_meta"]["agent-mailbox/credits"]["charged"], 1);
    // One that is too large is told of, not given.
    let large = format!("From: a@remote.test\r\nSubject: S\r\n\r\n{}\r\n", "0123456789 ".repeat(120_000));
    let id = desk.server.receive(&desk.address, large).await;
    let result = desk.agent.call("get_raw_email", json!({ "mailboxId": desk.address, "emailId": id })).await;
    let link = &result["content"][1];
    assert_eq!((&link["type"], &link["uri"]), (&json!("resource_link"), &result["structuredContent"]["url"]));
    assert!(result.to_string().len() < 5_000);
    // What is withheld in the API is withheld here.
    let bad = desk.receive_flagged("Bad").await;
    let withheld =
        desk.agent.refused("get_raw_email", json!({ "mailboxId": desk.address, "emailId": bad })).await;
    assert_eq!(withheld["code"], "content_withheld");
    let broken = json!({ "mailboxId": desk.address, "content": "???", "content_type": "message/rfc822" });
    assert_eq!(faults(&desk.agent.refused("import_emails", broken).await), ["content"]);
}
