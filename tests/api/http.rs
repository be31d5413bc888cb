//! HTTP in general: types, tags, HEAD, compression, ids of requests, caching, other origins.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
};

use axum::http::Method;
use model::Plan;
use serde_json::json;
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::help::{new_mailbox, path_of};

/// Every route that anybody can read, with the type it documents.
const PUBLIC: [(&str, &str); 10] = [
    ("/", "text/html; charset=utf-8"),
    ("/api/status", "application/json"),
    ("/api/v1/config", "application/json"),
    ("/openapi.json", "application/json"),
    ("/docs", "text/html; charset=utf-8"),
    ("/llms.txt", "text/plain; charset=utf-8"),
    ("/.well-known/api-catalog", "application/linkset+json"),
    ("/healthz", "text/plain; charset=utf-8"),
    ("/readyz", "application/json"),
    ("/nothing/here", "application/json"),
];

/// Reads of one workspace: those of a list, and those of one thing, which carry a tag.
async fn reads(tenant: &Tenant) -> (Vec<String>, Vec<String>) {
    let mailbox = path_of(&new_mailbox(&tenant.key, "Inbox").await);
    tenant.key.post("/api/v1/affiliate/signup", json!({})).await.ok();
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    let lists = vec![
        "/api/v1/workspaces".to_owned(),
        format!("{workspace}/usage/credits"),
        format!("{workspace}/usage/email"),
        format!("{workspace}/usage/history"),
        format!("{workspace}/members"),
        format!("{workspace}/invites"),
        format!("{workspace}/mailboxes"),
        "/api/v1/mailboxes".to_owned(),
        format!("{mailbox}/folders"),
        format!("{mailbox}/custom-labels"),
        "/api/v1/affiliate/analytics".to_owned(),
        "/api/v1/affiliate/commissions".to_owned(),
        "/api/v1/affiliate/payouts".to_owned(),
        "/api/v1/rag/credentials".to_owned(),
    ];
    let single = vec![
        workspace.clone(),
        format!("{workspace}/storage"),
        mailbox.clone(),
        format!("{mailbox}/storage"),
        "/api/v1/affiliate/me".to_owned(),
    ];
    (lists, single)
}

/// rules: HTTP-1, HTTP-9, HTTP-10
#[both_engines]
async fn every_answer_has_its_type_and_its_headers(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let (lists, single) = reads(&tenant).await;
    let mut answers: Vec<(String, &str, Answer)> = Vec::new();
    for path in lists.into_iter().chain(single) {
        let answer = tenant.key.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answers.push((path, "application/json", answer));
    }
    for (path, kind) in PUBLIC {
        answers.push((path.to_owned(), kind, server.anonymous().get(path).await));
    }
    let refused = [
        server.anonymous().get("/api/v1/mailboxes").await,
        tenant.key.get("/api/v1/mailboxes/none").await,
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "" })).await,
        tenant.key.send(Method::PATCH, "/api/v1/mailboxes", None).await,
        tenant.key.with("accept", "text/html").get("/api/v1/mailboxes").await,
        server.anonymous().send(Method::OPTIONS, "/api/v1/mailboxes", None).await,
    ];
    answers.extend(refused.into_iter().map(|answer| ("refused".to_owned(), "application/json", answer)));
    let mut ids = Vec::new();
    for (path, kind, answer) in &answers {
        assert_eq!(answer.header("content-type"), *kind, "{path}");
        assert!(std::str::from_utf8(&answer.bytes).is_ok());
        assert!(!answer.bytes.is_empty(), "{path}");
        if *kind == "application/json" {
            answer.json();
        }
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        for name in answer.headers.keys() {
            assert!(!name.as_str().starts_with("access-control"), "{path}: {name}");
        }
        let id = answer.header("x-request-id").to_owned();
        assert!((8..=128).contains(&id.len()), "{path}: {id:?}");
        ids.push(id);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids of requests repeat");
}

/// rules: HTTP-10
#[both_engines]
async fn a_request_keeps_the_id_that_it_brings(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let longest = "a".repeat(128);
    for id in ["a", "req-1_2.3", "550e8400-e29b-41d4-a716-446655440000", &longest] {
        for path in ["/api/v1/mailboxes", "/api/v1/mailboxes/none", "/nothing", "/healthz"] {
            let answer = tenant.key.with("x-request-id", id).get(path).await;
            assert_eq!(answer.header("x-request-id"), id, "{path}");
        }
    }
    let too_long = "a".repeat(129);
    for id in ["", " ", "a b", "a\tb", "<script>", "a\"b", "{{7*7}}", "a%0d%0ab", &too_long] {
        let answer = tenant.key.with("x-request-id", id).get("/api/v1/mailboxes").await;
        let given = answer.headers.get_all("x-request-id").iter().count();
        assert_eq!((answer.status, given), (200, 1));
        assert!(answer.header("x-request-id").starts_with("req_"), "{id:?}");
    }
}

/// rules: HTTP-6
#[both_engines]
async fn a_thing_that_has_not_changed_is_not_sent_again(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let (lists, single) = reads(&tenant).await;
    for path in &lists {
        assert_eq!(tenant.key.get(path).await.header("etag"), "", "{path}");
    }
    for path in &single {
        let first = tenant.key.get(path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.len() > 10 && tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            let again = tenant.key.with("if-none-match", &known).get(path).await;
            assert_eq!((again.status, again.bytes.len()), (304, 0), "{path} {known}");
            assert_eq!((again.header("etag"), again.header("content-type")), (tag.as_str(), ""));
            assert!(!again.header("x-request-id").is_empty() && !again.header("ratelimit-limit").is_empty());
        }
        for other in ["\"other\"", "other", "", "\"\"", &tag[1..]] {
            let again = tenant.key.with("if-none-match", other).get(path).await;
            assert_eq!((again.status, &again.bytes), (200, &first.bytes), "{path} {other}");
        }
    }
    // After a change the old tag is worth nothing, for the thing that changed.
    let mailbox = &single[2];
    let old = tenant.key.get(mailbox).await;
    tenant.key.put(mailbox, json!({ "name": "Changed" })).await.ok();
    let new = tenant.key.with("if-none-match", old.header("etag")).get(mailbox).await;
    assert_eq!((new.status, &new.json()["name"]), (200, &json!("Changed")));
    assert_ne!(new.header("etag"), old.header("etag"));
    // A tag does not open what is closed.
    let anonymous = server.anonymous().with("if-none-match", "*");
    anonymous.get(mailbox).await.expect(401, "unauthorized");
    tenant.key.with("if-none-match", "*").get("/api/v1/mailboxes/none").await.expect(404, "not_found");
}

/// rules: HTTP-7
#[both_engines]
async fn head_is_get_without_a_body(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let (lists, single) = reads(&tenant).await;
    let mut paths: Vec<(Caller, String)> = Vec::new();
    paths.extend(lists.into_iter().chain(single).map(|path| (tenant.key.clone(), path)));
    paths.extend(PUBLIC.map(|(path, _)| (server.anonymous(), path.to_owned())));
    paths.push((tenant.key.clone(), "/api/v1/mailboxes/none".to_owned()));
    paths.push((server.anonymous(), "/api/v1/mailboxes".to_owned()));
    paths.push((tenant.key.with("accept-encoding", "gzip"), "/openapi.json".to_owned()));
    paths.push((tenant.key.clone(), "/api/affiliate/track".to_owned()));
    for (caller, path) in paths {
        let get = caller.get(&path).await;
        let head = caller.send(Method::HEAD, &path, None).await;
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        let told = |answer: &Answer| {
            let mut headers = answer.headers.clone();
            for changing in ["x-request-id", "ratelimit-remaining", "x-credits-remaining"] {
                headers.remove(changing);
            }
            let mut headers: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            headers.sort();
            headers
        };
        assert_eq!(told(&head), told(&get), "{path}");
    }
    // Where there is no GET there is no HEAD.
    let answer = server.anonymous().send(Method::HEAD, "/api/console/login", None).await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST"));
}

fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let mut plain = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut plain).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    plain
}

/// rules: HTTP-8
#[both_engines]
async fn large_answers_are_compressed_as_asked(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    for number in 0..5 {
        new_mailbox(&tenant.key, &format!("Number {number}")).await;
    }
    for path in ["/openapi.json", "/api/v1/mailboxes"] {
        let plain = tenant.key.get(path).await;
        assert!(plain.bytes.len() > 2000 && plain.header("content-encoding").is_empty());
        for (asked, given) in [
            ("gzip", "gzip"),
            ("br", "br"),
            ("zstd", "zstd"),
            ("gzip;q=0, br", "br"),
            ("deflate, gzip;q=0.5", "gzip"),
            ("identity", ""),
            ("gzip;q=0", ""),
            ("snappy", ""),
        ] {
            let answer = tenant.key.with("accept-encoding", asked).get(path).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, given), "{asked}");
            assert_eq!(answer.header("content-type"), "application/json");
            assert!(answer.header("vary").contains("accept-encoding"), "{asked}");
            match given {
                "" => assert_eq!(answer.bytes, plain.bytes),
                _ => assert!(answer.bytes.len() * 2 < plain.bytes.len(), "{asked}"),
            }
            match given {
                "gzip" => assert_eq!(unzip(&answer.bytes), plain.bytes),
                "zstd" => assert_eq!(answer.bytes[..4], [0x28, 0xb5, 0x2f, 0xfd]),
                _ => {}
            }
        }
    }
    // A small answer would only grow.
    let small = tenant.key.with("accept-encoding", "gzip").get("/api/status").await;
    assert_eq!(small.header("content-encoding"), "");
    assert_eq!(small.json()["ok"], true);
}

fn cors(answer: &Answer) -> Vec<String> {
    let told = answer.headers.iter().filter(|(name, _)| name.as_str().starts_with("access-control"));
    told.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

/// rules: HTTP-9
#[both_engines]
async fn only_configured_origins_may_call_from_a_browser(engine: Engine) {
    let mut options = ServerOptions::default();
    options.web.cors_origins = vec!["https://app.example.com".to_owned(), "http://localhost:3000".to_owned()];
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    for origin in ["https://app.example.com", "http://localhost:3000"] {
        for path in ["/api/v1/mailboxes", "/api/v1/mailboxes/none", "/api/status", "/nothing"] {
            let answer = tenant.key.with("origin", origin).get(path).await;
            assert_eq!(cors(&answer), [format!("access-control-allow-origin: {origin}")], "{path}");
            assert_eq!(answer.header("vary").to_lowercase().matches("origin").count(), 1);
        }
        let asks = server
            .anonymous()
            .with("origin", origin)
            .with("access-control-request-method", "PUT")
            .with("access-control-request-headers", "x-api-key, content-type");
        let preflight = asks.send(Method::OPTIONS, "/api/v1/mailboxes/none", None).await;
        assert_eq!((preflight.status, preflight.bytes.len()), (204, 0));
        let mut told = cors(&preflight);
        told.sort();
        assert_eq!(
            told,
            [
                "access-control-allow-headers: x-api-key, content-type".to_owned(),
                "access-control-allow-methods: PUT".to_owned(),
                format!("access-control-allow-origin: {origin}"),
            ]
        );
        assert!(!preflight.header("x-request-id").is_empty());
    }
    for origin in [
        "https://evil.example.com",
        "https://app.example.com.evil.test",
        "http://app.example.com",
        "https://app.example.com:444",
        "HTTPS://APP.EXAMPLE.COM",
        "null",
        "*",
        "",
    ] {
        let caller = tenant.key.with("origin", origin).with("access-control-request-method", "DELETE");
        for (method, path) in [
            (Method::GET, "/api/v1/mailboxes"),
            (Method::OPTIONS, "/api/v1/mailboxes"),
            (Method::OPTIONS, "/nothing"),
            (Method::GET, "/docs"),
        ] {
            let answer = caller.send(method.clone(), path, None).await;
            assert!(cors(&answer).is_empty(), "{origin} {method} {path}: {:?}", cors(&answer));
        }
    }
    assert!(cors(&tenant.key.get("/api/v1/mailboxes").await).is_empty());
}
