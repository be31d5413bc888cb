//! Remembering, recalling and forgetting.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, both_engines};

use super::{
    help::{assert_missing, assert_refused, assert_refuses_fields},
    people::{break_blobs, break_data_key, mend_blobs},
};

const CREDENTIALS: &str = "/api/v1/rag/credentials";

/// Remembers a text and gives its id.
pub(super) async fn remember(key: &Caller, text: &str) -> String {
    let answer = key.post("/api/v1/rag/remember", json!({ "text": text })).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["blobId"].as_str().unwrap().to_owned()
}

/// The snippets that a query recalls.
pub(super) async fn recall(key: &Caller, query: &str) -> Vec<Value> {
    recall_with(key, json!({ "query": query })).await
}

pub(super) async fn recall_with(key: &Caller, body: Value) -> Vec<Value> {
    key.post("/api/v1/rag/recall", body).await.ok()["snippets"].as_array().unwrap().clone()
}

pub(super) fn texts(snippets: &[Value]) -> Vec<&str> {
    snippets.iter().map(|snippet| snippet["text"].as_str().unwrap()).collect()
}

fn distances(snippets: &[Value]) -> Vec<f64> {
    snippets.iter().map(|snippet| snippet["distance"].as_f64().unwrap()).collect()
}

/// rules: MEMORY-1, MEMORY-2, MEMORY-9
#[both_engines]
async fn what_is_remembered_is_recalled_by_its_meaning_and_forgotten_again(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let answer = tenant
        .key
        .post(
            "/api/v1/rag/remember",
            json!({ "text": "Refunds are paid within five working days.", "metadata": { "topic": "money" } }),
        )
        .await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (201, "2"));
    let refunds = answer.json()["blobId"].as_str().unwrap().to_owned();
    assert!(refunds.starts_with("mem_"));
    let weather = remember(&tenant.key, "In June it hardly ever rains in Lisbon.").await;
    remember(&tenant.key, "The office in Porto has a blue door.").await;

    let answer =
        tenant.key.post("/api/v1/rag/recall", json!({ "query": "How do I get my money back?" })).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (200, "15"));
    let snippets = answer.json()["snippets"].as_array().unwrap().clone();
    assert_eq!(snippets.len(), 3);
    assert_eq!(
        snippets[0],
        json!({
            "text": "Refunds are paid within five working days.", "blobId": refunds,
            "distance": snippets[0]["distance"], "source": "memory", "untrusted": false,
            "metadata": { "topic": "money" }, "created_at": "2026-07-14T09:00:00.000Z",
        })
    );
    let found = distances(&snippets);
    assert!(found.is_sorted() && found[0] > 0.0 && found[0] < 0.7 && found[2] > 0.7, "{found:?}");
    // The same text is at no distance at all, and a word that only one has leads to it.
    let same = recall(&tenant.key, "In June it hardly ever rains in Lisbon.").await;
    assert!(same[0]["distance"].as_f64().unwrap() < 1e-4, "{same:?}");
    assert_eq!(texts(&recall(&tenant.key, "porto").await)[0], "The office in Porto has a blue door.");

    let gone = tenant.key.delete(&format!("/api/v1/rag/memories/{weather}")).await;
    assert_eq!((gone.status, gone.text().as_str(), gone.header("x-credits-charged")), (204, "", "2"));
    let left = recall(&tenant.key, "Does it rain in Lisbon?").await;
    assert!(left.len() == 2 && left.iter().all(|snippet| snippet["blobId"] != weather.as_str()), "{left:?}");
    assert_missing(&tenant.key.delete(&format!("/api/v1/rag/memories/{weather}")).await, "Memory");
}

/// rules: MEMORY-1, MEMORY-2
#[both_engines]
async fn inputs_are_checked(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let remembered = async |body: Value| tenant.key.post("/api/v1/rag/remember", body).await;
    for text in ["", "   \n ", &"ü".repeat(8001)] {
        assert_refuses_fields(&remembered(json!({ "text": text })).await, &["text"]);
    }
    assert_refuses_fields(
        &remembered(json!({ "text": "a", "metadata": { "a": "x".repeat(5000) } })).await,
        &["metadata"],
    );
    assert_refuses_fields(&remembered(json!({ "text": "a", "txt": 1 })).await, &["txt"]);
    assert_eq!(remembered(json!({ "text": "ü".repeat(8000) })).await.status, 201);
    assert_eq!(remembered(json!({ "text": "\u{200b}" })).await.status, 201);
    let recalled = async |body: Value| tenant.key.post("/api/v1/rag/recall", body).await;
    assert_refused(&recalled(json!({ "query": " " })).await, &[("query", "must not be blank")]);
    for (field, value) in [
        ("query", json!("x".repeat(4001))),
        ("limit", json!(0)),
        ("limit", json!(11)),
        ("sources", json!([])),
    ] {
        let mut body = json!({ "query": "a" });
        body[field] = value;
        assert_refuses_fields(&recalled(body).await, &[field]);
    }
    recalled(json!({ "query": "a", "sources": ["mail"] })).await.expect(400, "validation_failed");
    assert_eq!(recalled(json!({ "query": "x".repeat(4000) })).await.status, 200);
    for number in 0..12 {
        remember(&tenant.key, &format!("Note number {number}")).await;
    }
    assert_eq!(recall(&tenant.key, "note").await.len(), 5);
    assert_eq!(recall_with(&tenant.key, json!({ "query": "note", "limit": 10 })).await.len(), 10);
    assert_eq!(recall_with(&tenant.key, json!({ "query": "note", "limit": 1 })).await.len(), 1);
}

/// rules: MEMORY-3
#[both_engines]
async fn nothing_leaves_its_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, other) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let secret = remember(&one.key, "The safe opens with 4711.").await;
    assert_eq!(recall(&other.key, "The safe opens with 4711.").await, Vec::<Value>::new());
    remember(&other.key, "Nothing of interest.").await;
    let found = recall_with(&other.key, json!({ "query": "How does the safe open?", "limit": 10 })).await;
    assert_eq!(texts(&found), ["Nothing of interest."]);
    for (path, mut body) in [("remember", json!({ "text": "a" })), ("recall", json!({ "query": "safe" }))] {
        let path = format!("/api/v1/rag/{path}");
        body["ownerAddress"] = one.owner_address.as_str().into();
        let refused = other.key.post(&path, body.clone()).await;
        refused.expect(403, "workspace_scope_denied");
        assert_eq!(refused.header("x-credits-charged"), "0");
        body["ownerAddress"] = other.owner_address.to_uppercase().replace("0X", "0x").into();
        other.key.post(&path, body).await.ok();
    }
    assert_missing(&other.key.delete(&format!("/api/v1/rag/memories/{secret}")).await, "Memory");
    assert_eq!(texts(&recall(&one.key, "safe").await), ["The safe opens with 4711."]);
}

/// Long texts are found by any part of them, and given back whole.
/// rules: MEMORY-2
#[both_engines]
async fn a_long_memory_is_found_by_each_of_its_parts(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let filler = "The committee met and talked about many things of little weight. ".repeat(50);
    let text = format!("{filler}The wifi password is changed every Tuesday. {filler}");
    remember(&tenant.key, &text).await;
    remember(&tenant.key, "Lunch is at noon.").await;
    let found = recall(&tenant.key, "How often does the wifi password change?").await;
    assert_eq!(texts(&found), [text.as_str(), "Lunch is at noon."]);
    assert!(found[0]["distance"].as_f64().unwrap() < 0.65, "{}", found[0]["distance"]);
}

/// rules: MEMORY-1, MEMORY-2
#[both_engines]
async fn a_repeated_key_remembers_and_recalls_once(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let key = tenant.key.with("idempotency-key", "one");
    let first = key.post("/api/v1/rag/remember", json!({ "text": "Once." })).await;
    let again = key.post("/api/v1/rag/remember", json!({ "text": "Once." })).await;
    assert_eq!((first.bytes, again.header("idempotent-replayed")), (again.bytes.clone(), "true"));
    let key = tenant.key.with("idempotency-key", "two");
    let first = key.post("/api/v1/rag/recall", json!({ "query": "once" })).await;
    remember(&tenant.key, "Once more.").await;
    let again = key.post("/api/v1/rag/recall", json!({ "query": "once" })).await;
    assert_eq!((&first.bytes, again.header("idempotent-replayed")), (&again.bytes, "true"));
    assert_eq!((first.header("x-credits-charged"), again.header("x-credits-charged")), ("15", "0"));
    assert_eq!(recall(&tenant.key, "once").await.len(), 2);
}

fn state(status: &str) -> Value {
    json!({ "status": status, "model": "all-MiniLM-L6-v2-int8", "dimension": 384, "passages": 0, "waiting": 0 })
}

/// rules: MEM-1, MEMORY-9
#[both_engines]
async fn credentials_are_ready_by_default(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let answer = tenant.key.get(CREDENTIALS).await;
    assert_eq!((answer.status, answer.json()), (200, state("ready")));
    assert_eq!(answer.header("x-credits-charged"), "1");
    assert_eq!(server.log_in(&tenant).await.get(CREDENTIALS).await.ok(), state("ready"));
    server.anonymous().get(CREDENTIALS).await.expect(401, "unauthorized");
}

/// rules: MEM-1
#[both_engines]
async fn credentials_are_unavailable_without_the_data_key(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    break_data_key(&server, &tenant.workspace).await;
    assert_eq!(tenant.key.get(CREDENTIALS).await.ok(), state("unavailable"));
    assert_eq!(other.key.get(CREDENTIALS).await.ok(), state("ready"));
}

/// rules: MEM-1, MEMORY-10
#[both_engines]
async fn credentials_are_unavailable_without_the_blob_store(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    break_blobs(&server);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(tenant.key.get(CREDENTIALS).await.ok(), state("unavailable"));
    let refused = tenant.key.post("/api/v1/rag/remember", json!({ "text": "a" })).await;
    refused.expect(503, "memory_unavailable");
    assert_eq!(refused.header("x-credits-charged"), "0");
    mend_blobs(&server);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(tenant.key.get(CREDENTIALS).await.ok(), state("ready"));
}

/// rules: MEMORY-8
#[both_engines]
async fn a_trial_writes_recalls_and_deletes(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    for number in 0..20 {
        remember(&tenant.key, &format!("A text that shows nothing, number {number}.")).await;
    }
    let answer = tenant.key.send(http::Method::POST, &format!("{CREDENTIALS}/verify"), None).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("ready")));
    assert_eq!(answer.header("x-credits-charged"), "2");
    assert_eq!(tenant.key.get(CREDENTIALS).await.ok()["passages"], 20);
}
