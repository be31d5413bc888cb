//! Memory without a provider, with one that fails, and with another model than before.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adapters::embeddings::{EmbedderSettings, HttpEmbedder};
use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use model::Plan;
use operations::ports::{EmbedFault, Embedder, Embedding, Urgency};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::memory::{recall, remember, texts};

/// A model that knows letters only, and fails when it is told to.
pub(super) struct Letters {
    name: &'static str,
    broken: AtomicBool,
}

impl Letters {
    pub(super) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, broken: AtomicBool::new(false) })
    }
}

fn letters(text: &str) -> Vec<f32> {
    let mut counts = [0.01_f32; 26];
    for letter in text.to_ascii_lowercase().bytes().filter(u8::is_ascii_lowercase) {
        counts[usize::from(letter - b'a')] += 1.0;
    }
    let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
    counts.iter().map(|count| count / length).collect()
}

impl Embedder for Letters {
    fn model(&self) -> &str {
        self.name
    }
    fn dimension(&self) -> usize {
        26
    }
    fn max_tokens(&self) -> usize {
        100
    }
    fn count_tokens(&self, text: &str, most: usize) -> usize {
        text.split_whitespace().take(most).count()
    }
    fn embed(&self, given: Vec<String>, _: Urgency) -> Embedding<'_> {
        Box::pin(async move {
            if self.broken.load(Ordering::SeqCst) {
                return Err(EmbedFault::Unavailable("broken for the test".to_owned()));
            }
            Ok(given.iter().map(|text| letters(text)).collect())
        })
    }
}

fn options(embedder: Option<Arc<dyn Embedder>>) -> ServerOptions {
    ServerOptions { embedder, ..ServerOptions::default() }
}

/// rules: MEMORY-10
#[both_engines]
async fn without_a_provider_nothing_is_charged(engine: Engine) {
    let broken = Letters::new("letters");
    broken.broken.store(true, Ordering::SeqCst);
    for embedder in [None, Some(broken as Arc<dyn Embedder>)] {
        let is_configured = embedder.is_some();
        let server = Server::with(engine, options(embedder)).await;
        let tenant = server.tenant(Plan::Developer).await;
        let document = json!({ "name": "a", "type": "text", "text": "a" });
        for (path, body) in [
            ("remember", json!({ "text": "a" })),
            ("recall", json!({ "query": "a" })),
            ("documents", document),
            ("credentials/verify", Value::Null),
        ] {
            if path == "documents" && is_configured {
                // It is taken, and waits until it can be read.
                continue;
            }
            let body = Some(body).filter(|body| !body.is_null());
            let path = format!("/api/v1/rag/{path}");
            let refused = tenant.key.send(http::Method::POST, &path, body).await;
            refused.expect(503, "memory_unavailable");
            assert_eq!(refused.header("x-credits-charged"), "0", "{path}");
            assert!(!refused.json()["fix"].as_str().unwrap().is_empty());
        }
        let status = tenant.key.get("/api/v1/rag/credentials").await.ok()["status"].clone();
        assert_eq!(status, if is_configured { "ready" } else { "unavailable" });
        server.index_memory().await;
    }
}

/// A document waits while nothing makes vectors, and is read then.
/// rules: MEMORY-5, MEMORY-10
#[both_engines]
async fn a_document_waits_for_the_provider(engine: Engine) {
    let model = Letters::new("letters");
    let server = Server::with(engine, options(Some(model.clone()))).await;
    let tenant = server.tenant(Plan::Developer).await;
    model.broken.store(true, Ordering::SeqCst);
    let document = json!({ "name": "a", "type": "text", "text": "zebra" });
    let document = tenant.key.post("/api/v1/rag/documents", document).await.ok();
    let path = format!("/api/v1/rag/documents/{}", document["id"].as_str().unwrap());
    server.index_memory().await;
    assert_eq!(tenant.key.get(&path).await.ok()["status"], "indexing");
    model.broken.store(false, Ordering::SeqCst);
    server.clock.advance(60);
    server.index_memory().await;
    assert_eq!(tenant.key.get(&path).await.ok()["status"], "ready");
    assert_eq!(texts(&recall(&tenant.key, "zebra").await), ["zebra"]);
}

/// Another model makes all vectors anew, and its progress is seen.
/// rules: MEMORY-2
#[both_engines]
async fn another_model_makes_all_vectors_anew(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    for number in 0..20 {
        remember(&tenant.key, &format!("zzzz number {number}")).await;
    }
    remember(&tenant.key, "aaaa").await;
    let node = server.another_node(ServerOptions { seed: 7, ..options(Some(Letters::new("letters"))) }).await;
    let key = node.key(tenant.key.secret());
    let state = async || key.get("/api/v1/rag/credentials").await.ok();
    let before = state().await;
    assert_eq!((&before["model"], &before["dimension"]), (&json!("letters"), &json!(26)));
    assert_eq!((&before["passages"], &before["waiting"]), (&json!(21), &json!(21)));
    assert_eq!(texts(&recall(&key, "aaaa").await), ["aaaa"], "by its words alone");
    operations::memory::renew::re_embed_some(&node.app).await.unwrap();
    assert_eq!(state().await["waiting"], 13, "a step at a time");
    node.index_memory().await;
    assert_eq!((state().await["waiting"].as_i64(), state().await["passages"].as_i64()), (Some(0), Some(21)));
    let found = recall(&key, "aaa").await;
    assert_eq!(texts(&found)[0], "aaaa");
    assert!(found[0]["distance"].as_f64().unwrap() < 0.001);
    // The old model, which the other node still uses, finds by its own vectors only.
    server.index_memory().await;
    assert_eq!(texts(&recall(&tenant.key, "aaaa").await)[0], "aaaa");
}

/// What one node remembers or forgets, the other one knows.
/// rules: MEMORY-2, MEMORY-6
#[both_engines]
async fn nodes_agree(engine: Engine) {
    let model = Letters::new("letters");
    let server = Server::with(engine, options(Some(model.clone()))).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let node = server.another_node(ServerOptions { seed: 7, ..options(Some(model)) }).await;
    let key = node.key(tenant.key.secret());
    remember(&tenant.key, "quartz").await;
    assert_eq!(texts(&recall(&key, "quartz").await), ["quartz"]);
    let id = remember(&key, "quilt").await;
    assert_eq!(recall(&tenant.key, "quilt").await.len(), 2);
    tenant.key.delete(&format!("/api/v1/rag/memories/{id}")).await.ok();
    assert_eq!(texts(&recall(&key, "quilt").await), ["quartz"]);
}

/// An endpoint that fails once, then answers out of order, and checks what it is sent.
async fn endpoint() -> url::Url {
    let failed = Arc::new(AtomicBool::new(false));
    let answer = move |headers: http::HeaderMap, body: Bytes| async move {
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(headers["authorization"], "Bearer hush");
        assert_eq!(body["model"], "small");
        if !failed.swap(true, Ordering::SeqCst) {
            return (StatusCode::SERVICE_UNAVAILABLE, "busy".to_owned());
        }
        let inputs = body["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> = inputs
            .map(|(index, text)| {
                // Vectors need not have the length 1.
                let vector: Vec<f32> = letters(text.as_str().unwrap()).iter().map(|x| x * 3.0).collect();
                json!({ "index": index, "embedding": vector })
            })
            .rev()
            .collect();
        (StatusCode::OK, json!({ "data": data }).to_string())
    };
    let router = Router::new().route("/v1/embeddings", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1/").parse().unwrap()
}

/// rules: MEMORY-2
#[both_engines]
async fn an_endpoint_makes_the_vectors(engine: Engine) {
    let base_url = endpoint().await;
    let settings = |dimension| EmbedderSettings {
        base_url: base_url.clone(),
        api_key: Some("hush".to_owned()),
        model: "small".to_owned(),
        dimension,
        time_limit: std::time::Duration::from_secs(5),
    };
    let server = Server::with(engine, options(Some(Arc::new(HttpEmbedder::new(settings(26)))))).await;
    let tenant = server.tenant(Plan::Developer).await;
    remember(&tenant.key, "zebra").await;
    remember(&tenant.key, "hippo").await;
    let found = recall(&tenant.key, "zebras").await;
    assert_eq!(texts(&found), ["zebra", "hippo"]);
    assert!(found[0]["distance"].as_f64().unwrap() < 0.2);
    assert_eq!(tenant.key.get("/api/v1/rag/credentials").await.ok()["model"], "small:26");
    let wrong = Server::with(engine, options(Some(Arc::new(HttpEmbedder::new(settings(8)))))).await;
    let tenant = wrong.tenant(Plan::Developer).await;
    let refused = tenant.key.post("/api/v1/rag/remember", json!({ "text": "a" })).await;
    refused.expect(503, "memory_unavailable");
}
