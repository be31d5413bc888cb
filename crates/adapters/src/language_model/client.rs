//! The client of one model: retries a request within its timeout and its attempts.

use std::{
    future::Future,
    hash::{BuildHasher, Hasher, RandomState},
    pin::Pin,
    time::Duration,
};

use operations::ports::{Assistant, AssistantFault, ChatDeltas, ChatMessage, ChatReply, ChatRequest};
use reqwest::{Client, Response, header::HeaderMap, redirect};
use tokio::{sync::Semaphore, time::Instant};

use super::{breaker::Breaker, settings::AssistantSettings, streamed_reply::StreamedReply, wire};
use crate::http::{LazyClient, without_address};

/// Maximum bytes of a response, streamed or not.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Maximum bytes read of an error.
const MAX_ERROR_BYTES: usize = 4096;
/// The delay before the first retry; each further one is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(300);
/// The longest `Retry-After` that is followed, in seconds.
const MAX_RETRY_AFTER_SECONDS: u64 = 3600;

/// The client of one model.
pub struct HttpAssistant {
    settings: AssistantSettings,
    client: LazyClient,
    turns: Semaphore,
    breaker: Breaker,
}

/// Why one attempt failed.
enum Fault {
    /// A retry may succeed, after a delay that the endpoint may have named.
    Retryable { reason: String, after: Option<Duration> },
    /// A retry would not help.
    Final(AssistantFault),
}

fn retryable(reason: impl Into<String>) -> Fault {
    Fault::Retryable { reason: reason.into(), after: None }
}

fn lost(error: reqwest::Error) -> Fault {
    retryable(without_address(error))
}

fn unavailable(reason: impl Into<String>) -> Fault {
    Fault::Final(AssistantFault::Unavailable(reason.into()))
}

impl HttpAssistant {
    /// A client with these settings.
    pub fn new(settings: AssistantSettings) -> Self {
        let turns = Semaphore::new(settings.concurrency.max(1));
        Self { settings, client: LazyClient::default(), turns, breaker: Breaker::default() }
    }

    /// Asks for one word, to check that the endpoint responds.
    pub async fn probe(&self) -> Result<(), String> {
        let messages = vec![ChatMessage::User("Answer with the word ready.".to_owned())];
        let request = ChatRequest { messages, max_tokens: 16, ..ChatRequest::default() };
        self.chat(&request, None).await.map(|_| ()).map_err(|fault| fault.to_string())
    }

    async fn client(&self) -> Result<&Client, Fault> {
        self.client.get(|builder| builder.redirect(redirect::Policy::none())).await.map_err(unavailable)
    }

    /// Retries until there is a response, the attempts are used up, or the time is over.
    async fn ask(
        &self,
        request: &ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Result<ChatReply, AssistantFault> {
        let deadline = Instant::now() + self.settings.time_limit;
        let too_late = || AssistantFault::Unavailable("it takes too long".to_owned());
        let turn = tokio::time::timeout_at(deadline, self.turns.acquire()).await;
        let _turn =
            turn.map_err(|_| AssistantFault::Unavailable("too many questions wait for it".to_owned()))?;
        let trial = self.breaker.enter()?;
        let body = wire::request(&self.settings, request, deltas.is_some());
        let mut forwarded = false;
        let mut pause = FIRST_RETRY_DELAY;
        for attempt in 1.. {
            let asked = self.attempt(&body, deltas.as_ref(), &mut forwarded);
            let outcome = tokio::time::timeout_at(deadline, asked).await;
            let (reason, after) = match outcome {
                Ok(Ok(reply)) => {
                    trial.succeeded();
                    return Ok(reply);
                }
                Ok(Err(Fault::Final(fault))) => {
                    if matches!(fault, AssistantFault::Refused(_)) {
                        // The endpoint works; it only refuses this request.
                        trial.succeeded();
                    }
                    return Err(fault);
                }
                Ok(Err(Fault::Retryable { reason, after })) => (reason, after),
                Err(_) => return Err(too_late()),
            };
            let wait = after.unwrap_or_else(|| jittered(pause));
            // Text that was shown cannot be taken back, and a second answer would be a different one.
            let hopeless =
                forwarded || attempt >= self.settings.attempts || Instant::now() + wait >= deadline;
            if hopeless {
                return Err(AssistantFault::Unavailable(reason));
            }
            tokio::time::sleep(wait).await;
            pause *= 2;
        }
        Err(too_late())
    }

    async fn attempt(
        &self,
        body: &[u8],
        deltas: Option<&ChatDeltas>,
        forwarded: &mut bool,
    ) -> Result<ChatReply, Fault> {
        let mut url = self.settings.base_url.clone();
        url.set_path(&format!("{}/chat/completions", url.path().trim_end_matches('/')));
        let mut call =
            self.client().await?.post(url).header("content-type", "application/json").body(body.to_vec());
        if let Some(key) = &self.settings.api_key {
            call = call.bearer_auth(key);
        }
        let answer = call.send().await.map_err(lost)?;
        if answer.status() != 200 {
            return Err(self.refusal(answer).await);
        }
        let streams = answer
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("text/event-stream")));
        match deltas {
            Some(deltas) if streams => assemble(answer, deltas, forwarded).await,
            _ => {
                let bytes = read(answer, MAX_ANSWER_BYTES).await?;
                wire::reply(&bytes).map_err(retryable)
            }
        }
    }

    /// The meaning of a status other than 200.
    async fn refusal(&self, answer: Response) -> Fault {
        let (status, after) = (answer.status().as_u16(), retry_after(answer.headers()));
        let message = match read(answer, MAX_ERROR_BYTES).await {
            Ok(bytes) => self.without_key(&wire::error_text(&bytes)),
            Err(_) => String::new(),
        };
        let reason = format!("status {status} {message}").trim().to_owned();
        match status {
            408 | 409 | 425 | 429 | 500..=599 => Fault::Retryable { reason, after },
            _ => Fault::Final(AssistantFault::Refused(reason)),
        }
    }

    /// Removes the key: some endpoints repeat the one they refuse.
    fn without_key(&self, text: &str) -> String {
        match &self.settings.api_key {
            Some(key) if !key.is_empty() => text.replace(key, "***"),
            _ => text.to_owned(),
        }
    }
}

impl Assistant for HttpAssistant {
    fn model(&self) -> &str {
        &self.settings.model
    }

    fn concurrency(&self) -> usize {
        self.settings.concurrency.max(1)
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Pin<Box<dyn Future<Output = Result<ChatReply, AssistantFault>> + Send + 'a>> {
        Box::pin(async move {
            let started = Instant::now();
            let outcome = self.ask(request, deltas).await;
            let result = if outcome.is_ok() { "ok" } else { "failed" };
            metrics::counter!("model_requests_total", "result" => result).increment(1);
            metrics::histogram!("model_request_seconds").record(started.elapsed().as_secs_f64());
            outcome
        })
    }
}

/// Reads a streamed response and forwards its text.
async fn assemble(
    mut answer: Response,
    deltas: &ChatDeltas,
    forwarded: &mut bool,
) -> Result<ChatReply, Fault> {
    let mut streamed_reply = StreamedReply::default();
    let mut total = 0;
    while let Some(chunk) = answer.chunk().await.map_err(lost)? {
        total += chunk.len();
        if total > MAX_ANSWER_BYTES {
            return Err(unavailable("its answer is too long"));
        }
        let piece = streamed_reply.add(&chunk).map_err(retryable)?;
        if !piece.is_empty() {
            *forwarded = true;
            // The receiver may be closed; the answer counts all the same.
            let _ = deltas.send(piece).await;
        }
        if streamed_reply.is_done() {
            break;
        }
    }
    let (reply, rest) = streamed_reply.finish().map_err(retryable)?;
    if !rest.is_empty() {
        let _ = deltas.send(rest).await;
    }
    Ok(reply)
}

async fn read(mut answer: Response, max: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(lost)? {
        if bytes.len() + chunk.len() > max {
            return Err(unavailable("its answer is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// `Retry-After` in whole seconds. Dates are ignored: few endpoints send them, and clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse::<u64>().ok()?;
    // A very long delay is not waited for: it exceeds every timeout, which ends the attempts.
    Some(Duration::from_secs(seconds.min(MAX_RETRY_AFTER_SECONDS)))
}

/// A delay between half of the given one and all of it, so that clients that failed together do not retry together.
fn jittered(pause: Duration) -> Duration {
    let share = RandomState::new().build_hasher().finish() % 1000;
    pause / 2 + pause.mul_f64(f64::from(u32::try_from(share).unwrap_or_default()) / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_between_half_and_all() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(2));
            assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&pause), "{pause:?}");
        }
    }
}
