//! Bodies of requests: too large, of the wrong kind, broken, or with characters that nobody wants.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    body::{Body, Bytes},
    http::Method,
};
use model::Plan;
use serde_json::json;
use testkit::{Answer, Caller, Engine, Server, both_engines, streamed};

use super::help::{assert_refused, assert_refuses_fields, details};

const ALL: &str = "/api/v1/mailboxes";
const LIMIT: u64 = 64 * 1024 * 1024;

/// A stream of a small JSON object with blanks around it, in pieces of 64 KiB, that counts what was taken of it.
fn padded(length: u64, taken: Arc<AtomicU64>) -> Body {
    let object = r#"{"name":"A"}"#;
    let blanks = Bytes::from(vec![b' '; 65_536]);
    let first = std::iter::once(Bytes::from_static(object.as_bytes()));
    let mut left = length - object.len() as u64;
    let rest = std::iter::from_fn(move || {
        let size = left.min(blanks.len() as u64);
        left -= size;
        (size > 0).then(|| blanks.slice(..usize::try_from(size).unwrap()))
    });
    streamed(first.chain(rest).map(move |chunk| {
        taken.fetch_add(chunk.len() as u64, Ordering::SeqCst);
        io::Result::Ok(chunk)
    }))
}

async fn post(caller: &Caller, body: impl Into<Body>) -> Answer {
    caller.send_raw(Method::POST, ALL, Some("application/json"), body.into()).await
}

/// rules: HTTP-11
#[both_engines]
async fn a_body_of_64_mib_is_the_largest(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let taken = Arc::new(AtomicU64::new(0));
    assert_eq!(post(&tenant.key, padded(LIMIT, taken.clone())).await.status, 201);
    assert_eq!(taken.swap(0, Ordering::SeqCst), LIMIT);

    // One byte more, and a stream of a terabyte: refused where the limit is passed.
    for length in [LIMIT + 1, 1 << 40] {
        let answer = post(&tenant.key, padded(length, taken.clone())).await;
        assert_eq!(answer.status, 413);
        assert_eq!(answer.text(), r#"{"error":"The body is too large.","code":"payload_too_large"}"#);
        let taken = taken.swap(0, Ordering::SeqCst);
        assert!(taken <= LIMIT + 65_536, "{taken} bytes were taken");
    }
    // By its declared length: nothing of it is taken.
    for declared in ["67108865", "1099511627776", "18446744073709551615"] {
        let answer = post(&tenant.key.with("content-length", declared), padded(100, taken.clone())).await;
        answer.expect(413, "payload_too_large");
        assert_eq!(taken.load(Ordering::SeqCst), 0);
    }
    // Also where no body is wanted at all, and in the console, whose bodies are small.
    let answer = tenant.key.send_raw(Method::GET, ALL, None, padded(LIMIT + 1, taken.clone())).await;
    answer.expect(413, "payload_too_large");
    taken.store(0, Ordering::SeqCst);
    let login = "/api/console/login";
    let body = padded(1 << 40, taken.clone());
    let answer = server.anonymous().send_raw(Method::POST, login, Some("application/json"), body).await;
    answer.expect(413, "payload_too_large");
    assert!(taken.load(Ordering::SeqCst) <= 200_000);
    // A stranger is turned away before anything is read.
    taken.store(0, Ordering::SeqCst);
    post(&server.anonymous(), padded(1 << 40, taken.clone())).await.expect(401, "unauthorized");
    assert_eq!(taken.load(Ordering::SeqCst), 0);
    assert_eq!(tenant.key.get(ALL).await.ok().as_array().unwrap().len(), 1);
}

/// rules: HTTP-12
#[both_engines]
async fn a_body_is_declared_json_and_not_compressed(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let body = r#"{"name":"A"}"#;
    let login = r#"{"email":"a@people.test","password":"0123456789"}"#;
    for kind in [
        None,
        Some(""),
        Some("text/plain"),
        Some("text/json"),
        Some("application/jsonx"),
        Some("application/json-patch+json"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=application/json"),
        Some("text/plain; application/json"),
    ] {
        for (caller, path, body) in
            [(&tenant.key, ALL, body), (&server.anonymous(), "/api/console/login", login)]
        {
            let answer = caller.send_raw(Method::POST, path, kind, Body::from(body)).await;
            answer.expect(415, "unsupported_media_type");
            assert_eq!(answer.json()["error"], "Unsupported media type");
            assert_eq!(answer.json()["fix"], "Send JSON with Content-Type: application/json.");
        }
    }
    for kind in
        ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;x=y"]
    {
        let answer = tenant.key.send_raw(Method::POST, ALL, Some(kind), Body::from(body)).await;
        assert_eq!(answer.status, 201, "{kind}: {}", answer.text());
    }
    for encoding in ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", "x", ""] {
        let caller = tenant.key.with("content-encoding", encoding);
        let answer = post(&caller, body).await;
        answer.expect(415, "unsupported_media_type");
        assert_eq!(answer.json()["fix"], "Send the body without a content encoding.");
        let caller = server.anonymous().with("content-encoding", encoding);
        let answer = caller
            .send_raw(Method::POST, "/api/console/login", Some("application/json"), Body::from(login))
            .await;
        answer.expect(415, "unsupported_media_type");
    }
    let twice = tenant.key.with("content-encoding", "identity").with("content-encoding", "gzip");
    post(&twice, body).await.expect(415, "unsupported_media_type");
    assert_eq!(post(&tenant.key.with("content-encoding", "identity"), body).await.status, 201);
    assert_eq!(tenant.key.get(ALL).await.ok().as_array().unwrap().len(), 5);
    // Operations without a body take none, but bear the empty one that some clients always send.
    let one = tenant.key.send_raw(Method::GET, ALL, Some("application/json"), Body::from(" {} ")).await;
    assert_eq!(one.status, 200);
    let some = tenant.key.send_raw(Method::GET, ALL, None, Body::from("[1]")).await;
    assert_refused(&some, &[("", "this operation takes no body")]);
}

/// Bodies that are no object of JSON, each with the place of the fault.
const BROKEN: &[(&[u8], &str)] = &[
    (b"", ""),
    (b"  ", ""),
    (b"{", ""),
    (br#"{"name":"A""#, ""),
    (br#"{"name":"A"}}"#, ""),
    (br#"{"name":"A"} {"name":"B"}"#, ""),
    (br#"{"name":"A",}"#, ""),
    (br#"{name:"A"}"#, ""),
    (br"{'name':'A'}", ""),
    (
        br#"// no
{"name":"A"}"#,
        "",
    ),
    (b"null", ""),
    (b"true", ""),
    (b"5", ""),
    (br#""name""#, ""),
    (br#"["A"]"#, ""),
    (br#"["A",null,null,{}]"#, ""),
    (b"\xef\xbb\xbf{\"name\":\"A\"}", ""),
    (b"{\"name\":\"\xff\xfe\"}", "name"),
    (b"{\"name\":\"a\nb\"}", "name"),
    (b"{\"name\":\"a\0b\"}", "name"),
    (br#"{"name":"\ud800"}"#, "name"),
    (br#"{"name":"\x41"}"#, "name"),
    (br#"{"name":"A","name":"B"}"#, "name"),
    (br#"{"name":"A","name":null}"#, "name"),
    (br#"{"name":"A","n\u0061me":"B"}"#, "name"),
    (br#"{"name":"A","settings":{"spam":{},"spam":{}}}"#, "settings.spam"),
    (br#"{"name":1e309}"#, "name"),
    (br#"{"name":"A","x":1e309}"#, "x"),
    (br#"{"name":-1e400}"#, "name"),
    (br#"{"name":NaN}"#, "name"),
    (br#"{"name":Infinity}"#, "name"),
    (br#"{"name":99999999999999999999999}"#, "name"),
];

/// rules: HTTP-13, ERR-2
#[both_engines]
async fn broken_json_is_refused(engine: Engine) {
    let nested = |levels: usize, open: &str, close: &str| {
        format!(r#"{{"name":"A","x":{}{}}}"#, open.repeat(levels), close.repeat(levels))
    };
    let (arrays, objects) = (nested(200, "[", "]"), nested(200, r#"{"a":"#, "}"));
    let endless = "[".repeat(1_000_000);
    let nests = [(arrays.as_bytes(), "x"), (objects.as_bytes(), "x"), (endless.as_bytes(), "")];
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    for (body, path) in BROKEN.iter().chain(&nests) {
        let answer = post(&tenant.key, body.to_vec()).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert_eq!((answer.status, answer.code().as_str()), (400, "validation_failed"), "{shown}");
        let told = details(&answer);
        assert!(told.iter().any(|(told, _)| told == path), "{shown}: {told:?}");
    }
    let twice = post(&tenant.key, r#"{"name":"A","name":"B"}"#).await;
    assert_refused(&twice, &[("name", "given more than once")]);
    let array = post(&tenant.key, r#"["A"]"#).await;
    assert_refused(&array, &[("", "invalid type: sequence, expected an object")]);
    for days in
        ["1e309", "1e1", "7.0", "0x7", "-1", "0", "91", "99999999999999999999", "", "%207", "NaN", "٧"]
    {
        let path = format!("/api/v1/workspaces/{}/usage/history?days={days}", tenant.workspace);
        assert_refuses_fields(&tenant.key.get(&path).await, &["days"]);
    }
    for query in ["days=1&days=2", "days[]=1", "days=1&Days=1", "days=1&=1", "days=1&&x"] {
        let path = format!("/api/v1/workspaces/{}/usage/history?{query}", tenant.workspace);
        tenant.key.get(&path).await.expect(400, "validation_failed");
    }
    assert_eq!(tenant.key.get(ALL).await.text(), "[]");
}

/// rules: HTTP-14
#[both_engines]
async fn a_nul_in_a_body_is_refused_by_name(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let nul = "must not contain the character U+0000";
    let body = json!({
        "name": "a\0b",
        "settings": {
            "fromName": "\0", "signature": { "text": "x\0" }, "autoReply": { "message": "\0\0" },
            "senderPolicy": { "allow": ["*", "a\0@x.org"] },
        },
    });
    let answer = tenant.key.post(ALL, body).await;
    assert_refused(
        &answer,
        &[
            ("name", nul),
            ("settings.fromName", nul),
            ("settings.signature.text", nul),
            ("settings.autoReply.message", nul),
            ("settings.senderPolicy.allow[1]", nul),
        ],
    );
    let labels = super::labels::labels_of(&tenant.key).await;
    for rules in ["from:a\0", "an instruction \0", "subject:\"\0\""] {
        let answer = tenant.key.post(&labels, json!({ "name": "L", "rules": rules })).await;
        assert_refused(&answer, &[("rules", nul)]);
    }
    let login = json!({ "email": "a\0@people.test", "password": "0123456789\0" });
    let answer = server.anonymous().post("/api/console/login", login).await;
    assert_refused(&answer, &[("email", nul), ("password", nul)]);
    // A key with a NUL is just unknown, and a backslash before u0000 is just text.
    let answer = post(&tenant.key, r#"{"name":"A","\u0000":1}"#).await;
    assert_refuses_fields(&answer, &["\0"]);
    let text = post(&tenant.key, r#"{"name":"\\u0000"}"#).await;
    assert_eq!((text.status, &text.json()["name"]), (201, &json!("\\u0000")));
}
