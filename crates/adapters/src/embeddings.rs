//! A client of an OpenAI-compatible embeddings endpoint, as configured by the operator.

use std::time::Duration;

use operations::ports::{EmbedFault, Embedder, Embedding, Urgency};
use reqwest::{Client, StatusCode, redirect};
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use crate::http::{LazyClient, read_body, without_address};

/// Maximum bytes of a response; a longer one is an error.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// Attempts for a request that may be retried, and the delay after the first one.
const MAX_ATTEMPTS: u32 = 3;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// Tokens per text that every model accepts.
const MAX_TOKENS: usize = 500;
/// Texts per request.
const MAX_TEXTS: usize = 32;

/// The endpoint and its limits.
#[derive(Clone)]
pub struct EmbedderSettings {
    /// The base URL, such as `https://api.openai.com/v1`.
    pub base_url: Url,
    /// The bearer token, if any.
    pub api_key: Option<String>,
    /// The model.
    pub model: String,
    /// The dimension of vectors.
    pub dimension: usize,
    /// Timeout of a request.
    pub time_limit: Duration,
}

/// A client of one endpoint.
pub struct HttpEmbedder {
    settings: EmbedderSettings,
    /// The model and the dimension: vectors that differ in either cannot be compared.
    name: String,
    turns: Semaphore,
    client: LazyClient,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<EmbeddedText>,
}

#[derive(Deserialize)]
struct EmbeddedText {
    index: usize,
    embedding: Vec<f32>,
}

/// Why a request failed, and whether it may be retried.
struct RequestError {
    fault: EmbedFault,
    retryable: bool,
}

impl HttpEmbedder {
    /// A client of the configured endpoint.
    pub fn new(settings: EmbedderSettings) -> Self {
        let name = format!("{}:{}", settings.model, settings.dimension);
        Self { settings, name, turns: Semaphore::new(MAX_CONCURRENT_REQUESTS), client: LazyClient::default() }
    }

    async fn client(&self) -> Result<&Client, RequestError> {
        self.client.get(|builder| builder.redirect(redirect::Policy::none())).await.map_err(transient)
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, RequestError> {
        let mut url = self.settings.base_url.clone();
        url.set_path(&format!("{}/embeddings", url.path().trim_end_matches('/')));
        let body = serde_json::json!({
            "model": self.settings.model, "input": texts, "encoding_format": "float",
        });
        let mut call =
            self.client().await?.post(url).header("content-type", "application/json").body(body.to_string());
        if let Some(key) = &self.settings.api_key {
            call = call.bearer_auth(key);
        }
        let lost = |error: reqwest::Error| transient(without_address(error));
        let answer = call.send().await.map_err(lost)?;
        let status = answer.status();
        let bytes = read_body(answer, MAX_ANSWER_BYTES).await.map_err(transient)?;
        if !status.is_success() {
            return Err(refusal(status));
        }
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|_| transient("its answer is not what was asked for".to_owned()))?;
        self.in_order(answer, texts.len())
    }

    /// The vectors in the order of the texts, each of length 1.
    fn in_order(&self, answer: Answer, count: usize) -> Result<Vec<Vec<f32>>, RequestError> {
        let mut vectors = vec![Vec::new(); count];
        for one in answer.data {
            if one.embedding.len() != self.settings.dimension {
                let found = one.embedding.len();
                let expected = self.settings.dimension;
                let message =
                    format!("its vectors have {found} numbers; embeddings.dimension says {expected}");
                return Err(RequestError { fault: EmbedFault::Unavailable(message), retryable: false });
            }
            if let Some(slot) = vectors.get_mut(one.index) {
                *slot = normalised(one.embedding);
            }
        }
        if vectors.iter().any(Vec::is_empty) {
            return Err(transient("a vector is missing in its answer".to_owned()));
        }
        Ok(vectors)
    }

    async fn ask_with_retries(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFault> {
        let _turn = self.turns.acquire().await.map_err(|error| EmbedFault::Unavailable(error.to_string()))?;
        let mut pause = FIRST_RETRY_DELAY;
        for attempt in 1.. {
            let limit = self.settings.time_limit;
            let asked = tokio::time::timeout(limit, self.ask(texts)).await;
            let request_error = match asked {
                Ok(Ok(vectors)) => return Ok(vectors),
                Ok(Err(request_error)) => request_error,
                Err(_) => transient(format!("no answer within {} seconds", limit.as_secs())),
            };
            if attempt >= MAX_ATTEMPTS || !request_error.retryable {
                return Err(request_error.fault);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(Vec::new())
    }
}

fn transient(message: String) -> RequestError {
    RequestError { fault: EmbedFault::Unavailable(message), retryable: true }
}

fn refusal(status: StatusCode) -> RequestError {
    let message = format!("it answered {status}");
    let retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    // Only these statuses are about a text; all others are about the configuration, which can be fixed.
    let is_about_text = matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY);
    let fault = if is_about_text { EmbedFault::Refused(message) } else { EmbedFault::Unavailable(message) };
    RequestError { fault, retryable }
}

fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.settings.dimension
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn count_tokens(&self, text: &str, most: usize) -> usize {
        // A lower bound of the average token length, in any language.
        (text.len().div_ceil(3)).min(most)
    }

    fn embed(&self, texts: Vec<String>, _: Urgency) -> Embedding<'_> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for some in texts.chunks(MAX_TEXTS) {
                vectors.extend(self.ask_with_retries(some).await?);
            }
            Ok(vectors)
        })
    }
}
