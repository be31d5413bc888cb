//! Errors: one shape, the right status, and nothing of what went wrong inside.

use std::io;

use axum::{
    body::{Body, Bytes},
    http::Method,
};
use model::{Limit, Plan, Role};
use operations::ErrorKind;
use serde_json::{Value, json};
use testkit::{Answer, Engine, Server, ServerOptions, both_engines, error_text, streamed};

use super::help::{assert_missing, assert_refused, keys, new_mailbox, path_of};

const ALL: &str = "/api/v1/mailboxes";

/// Checks the one shape of errors.
#[track_caller]
fn assert_shape(answer: &Answer) {
    assert!(answer.status >= 400, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    for key in keys(&body) {
        assert!(["error", "code", "details", "fix"].contains(&key), "{key}");
    }
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    assert!(text(&body["error"]) && text(&body["code"]), "{body}");
    assert!(body.get("fix").is_none_or(text), "{body}");
    for detail in body.get("details").map_or(&Vec::new(), |details| details.as_array().unwrap()) {
        assert_eq!(keys(detail), ["path", "message"]);
        assert!(detail["path"].is_string() && text(&detail["message"]), "{body}");
    }
}

/// rules: ERR-1, ERR-2, ERR-6
#[both_engines]
async fn every_error_has_the_one_shape(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let (key, anonymous) = (&tenant.key, server.anonymous());
    let mailbox = path_of(&new_mailbox(key, "Inbox").await);
    let broken = io::Error::other("the line went dead");
    let chunks = vec![Ok(Bytes::from_static(b"{\"name\":")), Err(broken)].into_iter();
    let unreadable = key.send_raw(Method::POST, ALL, Some("application/json"), streamed(chunks)).await;
    assert_refused(&unreadable, &[("", "the body ended early or is malformed")]);
    let answers = [
        (404, anonymous.get("/nothing").await),
        (404, anonymous.get("/api/nothing").await),
        (404, anonymous.get("/api/v1").await),
        (404, anonymous.get("/api/v1/mailboxes/").await),
        (404, anonymous.get("//api/v1/mailboxes").await),
        (404, key.get("/api/v2/mailboxes").await),
        (404, key.post("/.well-known/nothing", json!({})).await),
        (404, anonymous.get("/metrics").await),
        (405, key.patch(ALL, json!({})).await),
        (405, anonymous.send(Method::OPTIONS, ALL, None).await),
        (405, anonymous.send(Method::TRACE, ALL, None).await),
        (405, anonymous.post("/healthz", json!({})).await),
        (405, anonymous.get("/api/console/login").await),
        (401, anonymous.get(ALL).await),
        (401, anonymous.get("/api/console/me").await),
        (403, key.get("/api/v1/workspaces/ws_other").await),
        (404, key.delete(&format!("{mailbox}/folders/none")).await),
        (404, key.delete(&format!("{mailbox}/custom-labels/none")).await),
        (400, key.delete(&format!("{mailbox}/folders/inbox")).await),
        (409, key.post(&format!("{mailbox}/folders"), json!({ "name": "Inbox" })).await),
        (415, key.send_raw(Method::POST, ALL, None, Body::from("{}")).await),
        (406, key.with("accept", "image/png").get(ALL).await),
        (400, key.with("idempotency-key", "").post(ALL, json!({ "name": "A" })).await),
        (400, unreadable),
    ];
    for (status, answer) in &answers {
        assert_eq!(answer.status, *status, "{}", answer.text());
        assert_shape(answer);
    }
    let no_route = json!({
        "error": "Not found", "code": "not_found",
        "fix": "Check the path: /docs and /openapi.json list every path.",
    });
    assert_eq!(answers[0].1.json(), no_route);
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    for (path, what) in [
        (format!("{ALL}/none"), "Mailbox"),
        (format!("{mailbox}/folders/none"), "Folder"),
        (format!("{mailbox}/custom-labels/none"), "Label"),
        (format!("{workspace}/members/none"), "Member"),
        (format!("{workspace}/invites/none"), "Invite"),
    ] {
        assert_missing(&key.delete(&path).await, what);
    }
}

/// rules: ERR-4
#[both_engines]
async fn every_wrong_credential_is_refused_with_the_same_bytes(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let console = server.log_in(&tenant).await;
    let keys = format!("/api/v1/workspaces/{}/api-keys", tenant.workspace);
    let body = json!({ "name": "Short", "expires_at": "2026-07-14T09:01:00Z" });
    let expired = console.post(&keys, body).await.ok()["key"].as_str().unwrap().to_owned();
    let revoked = console.post(&keys, json!({ "name": "Revoked" })).await.ok();
    console.delete(&format!("{keys}/{}", revoked["id"].as_str().unwrap())).await.ok();
    let revoked = revoked["key"].as_str().unwrap().to_owned();
    assert_eq!(server.key(&expired).get(ALL).await.status, 200);
    server.clock.advance(60);
    // A key of another server is well made and unknown here.
    let elsewhere = Server::with(engine, ServerOptions { seed: 7, ..ServerOptions::default() }).await;
    let stranger = elsewhere.tenant(Plan::Free).await;
    let last = tenant.key.secret().len() - 1;
    let callers = [
        server.anonymous(),
        server.key(""),
        server.key("sk-proj-"),
        server.key("Bearer x"),
        server.key(&tenant.key.secret()[..last]),
        server.key(&format!("{} ", tenant.key.secret())),
        server.key(stranger.key.secret()),
        server.key(&expired),
        server.key(&revoked),
        server.cookie("nonsense"),
        server.cookie(tenant.key.secret()),
        server.anonymous().with("authorization", &format!("Bearer {}", tenant.key.secret())),
    ];
    for (number, caller) in callers.iter().enumerate() {
        for (method, path) in [(Method::GET, ALL), (Method::DELETE, "/api/v1/mailboxes/none")] {
            let answer = caller.send(method, path, None).await;
            assert_eq!(answer.status, 401, "{number}");
            assert_eq!(answer.text(), error_text(ErrorKind::Unauthorized), "{number}");
            assert!(!answer.headers.contains_key("ratelimit-limit"), "{number}");
        }
    }
}

/// rules: ERR-5
#[both_engines]
async fn what_is_forbidden_says_why(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let console = server.log_in(&tenant).await.without("sec-fetch-site");
    let member = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    let mailbox = path_of(&new_mailbox(&tenant.key, "Inbox").await);
    let forbidden = [
        ("workspace_scope_denied", tenant.key.get("/api/v1/workspaces/ws_other").await),
        ("role_required", member.delete(&mailbox).await),
        ("role_required", tenant.key.get(&format!("/api/v1/workspaces/{}/api-keys", tenant.workspace)).await),
        ("cross_site_request", console.delete(&mailbox).await),
        ("cross_site_request", console.with("sec-fetch-site", "cross-site").delete(&mailbox).await),
        ("cross_site_request", console.with("origin", "https://evil.test").delete(&mailbox).await),
    ];
    for (code, answer) in &forbidden {
        assert_shape(answer);
        answer.expect(403, code);
        assert_eq!(answer.json()["error"], "Forbidden");
    }
    tenant.key.get(&mailbox).await.ok();
    let small = server.tenant(Plan::Free).await;
    for name in ["First", "Second"] {
        new_mailbox(&small.key, name).await;
    }
    let full = small.key.post(ALL, json!({ "name": "Third" })).await;
    full.expect(403, "quota_exceeded");
    assert_shape(&full);
    assert_eq!(full.json()["error"], "The workspace reached its plan's limit of 2 mailboxes.");
}

/// rules: ERR-7, API-2
#[both_engines]
async fn a_wrong_method_is_told_the_right_ones(engine: Engine) {
    let document = web::document();
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    for (template, operations) in document["paths"].as_object().unwrap() {
        let path = template.replace(['{', '}'], "");
        let mut known: Vec<String> =
            operations.as_object().unwrap().keys().map(|key| key.to_uppercase()).collect();
        if known.contains(&"GET".to_owned()) {
            known.push("HEAD".to_owned());
        }
        known.sort();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
            if known.iter().any(|one| one == method) {
                continue;
            }
            let answer = tenant.key.send(method.parse().unwrap(), &path, None).await;
            assert_eq!(answer.status, 405, "{method} {path}: {}", answer.text());
            assert_eq!(answer.text(), r#"{"error":"Method not allowed","code":"method_not_allowed"}"#);
            let mut allowed: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed, known, "{path}");
        }
    }
}

/// rules: ERR-7
#[both_engines]
async fn an_accept_header_without_room_is_told_so(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    for accept in [
        "*/*",
        "application/*",
        "application/json",
        "Application/JSON; charset=utf-8",
        "text/html, application/xhtml+xml, */*;q=0.8",
        "application/json;q=0.001",
        "text/html;q=1, application/json;q=0.1",
        "application/*;q=0, application/json",
        "",
    ] {
        let answer = tenant.key.with("accept", accept).get(ALL).await;
        assert_eq!(answer.status, 200, "{accept}: {}", answer.text());
    }
    for accept in [
        "text/html",
        "text/*",
        "image/png, text/plain",
        "application/xml",
        "application/jsonx",
        "application/json;q=0",
        "*/*;q=0",
        "application/json;q=0, */*",
        "nonsense",
    ] {
        let caller = tenant.key.with("accept", accept);
        for answer in [
            caller.get(ALL).await,
            caller.post(ALL, json!({ "name": "A" })).await,
            caller.get("/api/status").await,
            caller.post("/api/console/logout", json!({})).await,
        ] {
            assert_eq!(answer.status, 406, "{accept}");
            let text = r#"{"error":"Not acceptable","code":"not_acceptable","fix":"Send Accept: application/json."}"#;
            assert_eq!(answer.text(), text);
        }
    }
    let html = server.anonymous().with("accept", "text/html");
    assert_eq!((html.get("/docs").await.status, html.get("/llms.txt").await.status), (200, 406));
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
}

/// rules: ERR-8
#[both_engines]
async fn too_many_requests_say_when_to_come_again(engine: Engine) {
    let mut options = ServerOptions { anonymous_rpm: 3, ..ServerOptions::default() };
    options.plans.free.rpm = Limit::of(2);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.set("2026-07-14T09:00:17.5Z");
    for _ in 0..2 {
        tenant.key.get(ALL).await.ok();
    }
    let limited = tenant.key.get(ALL).await;
    for _ in 0..3 {
        assert_eq!(server.anonymous().get("/api/status").await.status, 200);
    }
    for answer in [&limited, &server.anonymous().get("/api/status").await, &server.anonymous().get(ALL).await]
    {
        assert_eq!(answer.status, 429);
        assert_eq!(answer.text(), r#"{"error":"Too many requests","code":"rate_limited"}"#);
        assert_eq!(answer.header("retry-after"), "43");
    }
}

/// Limits of strangers are those of the client that a trusted proxy names, at every door.
/// rules: HTTP-19
#[both_engines]
async fn limits_are_counted_by_the_client_behind_the_proxy(engine: Engine) {
    let mut options = ServerOptions { anonymous_rpm: 3, ..ServerOptions::default() };
    options.web.proxies = web::Proxies::Count(1);
    let server = Server::with(engine, options).await;
    let at = |lines: &[&str]| {
        let new = server.anonymous();
        lines.iter().fold(new, |caller, line| caller.with("x-forwarded-for", line))
    };
    for number in 0..3 {
        // Whatever the client writes before, in one line or in several.
        let invented = format!("203.0.113.{number}");
        at(&[&invented, "198.51.100.7"]).get(ALL).await.expect(401, "unauthorized");
    }
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for caller in [at(&["198.51.100.7"]), at(&["203.0.113.9, 198.51.100.7"])] {
        caller.get(ALL).await.expect(429, "rate_limited");
        caller.get("/api/status").await.expect(429, "rate_limited");
        caller.mcp().send(list.clone()).await.expect(429, "rate_limited");
    }
    at(&["198.51.100.7", "198.51.100.8"]).get(ALL).await.expect(401, "unauthorized");
    // Two headers that do not agree are those of nobody.
    let both = at(&["198.51.100.7"]).with("forwarded", "for=203.0.113.9");
    both.get(ALL).await.expect(401, "unauthorized");
}
