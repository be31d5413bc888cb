//! Who gets in, and from where.

use std::time::Duration;

use axum::body::Body;
use http::Method;
use model::{Limit, Plan};
use serde_json::json;
use testkit::{Engine, Mcp, Server, ServerOptions, both_engines};

use super::Desk;

async fn list(agent: &Mcp) -> testkit::Answer {
    agent.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await
}

/// rules: MCP-1
#[both_engines]
async fn a_key_is_needed_and_a_cookie_is_none(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let session = server.log_in(&tenant).await;
    let wrong = format!("{}x", tenant.key.secret());
    for caller in [server.anonymous(), session, server.key("sk-proj-nonsense"), server.key(&wrong)] {
        list(&caller.mcp()).await.expect(401, "unauthorized");
    }
    assert_eq!(list(&tenant.key.mcp()).await.status, 200);
    let bearer = server.anonymous().with("authorization", &format!("Bearer {}", tenant.key.secret()));
    assert_eq!(list(&bearer.mcp()).await.status, 200);
    bearer.mcp().ok("list_mailboxes", json!({})).await;
    let basic = server.anonymous().with("authorization", &format!("Basic {}", tenant.key.secret()));
    list(&basic.mcp()).await.expect(401, "unauthorized");
}

/// A page of another site can make a browser call us by any name, but not without saying so.
/// rules: MCP-1
#[both_engines]
async fn other_sites_and_other_names_are_refused(engine: Engine) {
    let mut options = ServerOptions::default();
    options.web.cors_origins = vec!["https://app.friends.test".to_owned()];
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let from = |host: &str, origin: Option<&str>| {
        let caller = tenant.key.with("host", host).with("accept", "application/json, text/event-stream");
        origin.iter().fold(caller, |caller, origin| caller.with("origin", origin))
    };
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for (host, origin, status) in [
        ("mail.test", None, 200),
        ("mail.test:8080", None, 200),
        ("127.0.0.1:8080", None, 200),
        ("evil.test", None, 403),
        ("mail.test.evil.test", None, 403),
        ("mail.test", Some("http://mail.test"), 200),
        ("mail.test", Some("https://app.friends.test"), 200),
        ("mail.test", Some("http://mail.test:8081"), 403),
        ("mail.test", Some("https://evil.test"), 403),
        ("mail.test", Some("null"), 403),
    ] {
        let answer = from(host, origin).post("/mcp", message.clone()).await;
        assert_eq!(answer.status, status, "{host} {origin:?}: {}", answer.text());
        if status == 403 {
            answer.expect(403, "cross_site_request");
        }
    }
}

/// Whatever comes, the answer is JSON of one of two shapes.
/// rules: MCP-1
#[both_engines]
async fn odd_requests_get_clear_answers(engine: Engine) {
    let desk = Desk::new(engine).await;
    let caller = desk.tenant.key.with("host", "mail.test");
    let both = caller.with("accept", "application/json, text/event-stream");
    let get = both.get("/mcp").await;
    get.expect(405, "method_not_allowed");
    assert_eq!(get.header("allow"), "POST");
    both.delete("/mcp").await.expect(405, "method_not_allowed");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    caller.with("accept", "text/html").post("/mcp", message).await.expect(406, "not_acceptable");
    for (kind, body, status, code) in [
        ("application/json", "{", 400, "validation_failed"),
        ("application/json", "[]", 400, "validation_failed"),
        ("application/json", "{}", 400, "validation_failed"),
        ("text/plain", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 415, "unsupported_media_type"),
    ] {
        let answer = both.send_raw(Method::POST, "/mcp", Some(kind), Body::from(body)).await;
        answer.expect(status, code);
    }
    let version = both.with("mcp-protocol-version", "1999-01-01");
    version
        .post("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .await
        .expect(400, "validation_failed");
    let unknown = desk.agent.request("resources/unheard_of", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

/// Every call counts in the minute's window, whatever becomes of it; the handshake counts against the address.
/// rules: MCP-7
#[both_engines]
async fn the_limits_are_those_of_the_api(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.free.rpm = Limit::of(6);
    options.plans.free.credits_per_period = Limit::of(13);
    let desk = Desk::with(engine, Plan::Free, options.clone()).await;
    // One call made the mailbox.
    desk.agent.ok("list_mailboxes", json!({})).await;
    desk.agent.refused("get_mailbox", json!({})).await;
    desk.agent.ok("delete_mailbox", json!({ "mailboxId": desk.address })).await;
    desk.agent.tools().await;
    assert_eq!(
        desk.agent.refused("create_folder", json!({ "mailboxId": desk.address, "name": "" })).await["code"],
        "validation_failed"
    );
    desk.agent.ok("create_folder", json!({ "mailboxId": desk.address, "name": "A" })).await;
    for tool in ["list_mailboxes", "get_mailbox", "delete_mailbox"] {
        let result = desk.agent.call(tool, json!({ "mailboxId": desk.address })).await;
        assert_eq!(result["structuredContent"]["code"], "rate_limited", "{tool}: {result}");
        assert_eq!(result["_meta"]["agent-mailbox/rate"]["remaining"], 0);
    }
    desk.server.clock.advance(60);
    let result = desk.agent.call("list_mailboxes", json!({})).await;
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["code"]),
        (&json!(true), &json!("credits_exhausted"))
    );

    options.anonymous_rpm = 3;
    options.plans.free.rpm = Limit::of(1_000);
    let desk = Desk::with(engine, Plan::Free, options).await;
    for _ in 0..3 {
        assert_eq!(list(&desk.agent).await.status, 200);
    }
    list(&desk.agent).await.expect(429, "rate_limited");
    desk.agent.ok("list_mailboxes", json!({})).await;
}

/// rules: MCP-1
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_with_the_mail_and_goes_when_the_caller_does(engine: Engine) {
    let desk = Desk::new(engine).await;
    let wait = json!({
        "mailboxId": desk.address, "subject": "Code", "after": "2026-07-01T00:00:00Z", "timeout_seconds": 60,
    });
    let agent = desk.agent.clone();
    let waiting = tokio::spawn(async move { agent.ok("wait_for_email", wait).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let email = desk.receive("Code", "Your code is 482913.").await;
    let matched = tokio::time::timeout(Duration::from_secs(40), waiting).await.unwrap().unwrap();
    assert_eq!((&matched["outcome"], &matched["email"]["id"]), (&json!("matched"), &json!(email)));
    // A caller who hangs up pays for nothing.
    let before = desk.used().await;
    let (agent, wait) = (desk.agent.clone(), json!({ "mailboxId": desk.address, "timeout_seconds": 30 }));
    let waiting = tokio::spawn(async move { agent.ok("wait_for_email", wait).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    waiting.abort();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(desk.used().await - before - 1, 0);
}
