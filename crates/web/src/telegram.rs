//! Telegram over HTTP, both ways: the client of its Bot API, and the hook that it brings updates to.

use std::{future::Future, pin::Pin, time::Duration};

use axum::{
    Router,
    extract::{Request, State as Extracted},
    http::StatusCode,
    response::Response,
    routing::post,
};
use operations::{
    Error, ErrorKind, Result,
    outside::{BotApi, BotFault},
    secrets,
    telegram::{Hearing, updates},
};
use reqwest::{Client, redirect};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use crate::{
    State,
    body::{self, Bound},
    error,
    request::client_address,
};

/// Bytes of an answer that are read. What is longer is none.
const MOST_ANSWER: usize = 4 << 20;
/// Bytes of an update that are read.
const MOST_UPDATE: u64 = 1 << 20;

/// A client of the Bot API. Its address holds the token, so it is never shown.
pub struct HttpBot {
    base: String,
    client: OnceCell<Client>,
}

impl HttpBot {
    /// A client for the bot with this token.
    pub fn new(base: &Url, token: &str) -> Self {
        Self { base: format!("{}/bot{token}", base.as_str().trim_end_matches('/')), client: OnceCell::new() }
    }

    /// The client, made when it is first needed: reading the system's certificates takes its time.
    async fn client(&self) -> Result<&Client, BotFault> {
        let build = || {
            Client::builder()
                .user_agent(concat!("agent-mailbox/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .build()
        };
        let made = self.client.get_or_try_init(async || {
            tokio::task::spawn_blocking(build)
                .await
                .map_err(|error| BotFault::Unreachable(error.to_string()))?
                .map_err(|error| BotFault::Unreachable(error.to_string()))
        });
        made.await
    }

    async fn exchange(&self, method: &str, body: Value) -> Result<Value, BotFault> {
        // The error's own text would name the address, and that holds the token.
        let lost = |error: reqwest::Error| BotFault::Unreachable(error.without_url().to_string());
        let call = self
            .client()
            .await?
            .post(format!("{}/{method}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        let mut answer = call.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST_ANSWER {
                return Err(BotFault::Unreachable("its answer is too long".to_owned()));
            }
        }
        read(status, &bytes)
    }
}

/// What an answer of the Bot API says.
fn read(status: u16, bytes: &[u8]) -> Result<Value, BotFault> {
    let mut answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if answer["ok"] == true {
        return Ok(answer["result"].take());
    }
    if status < 300 {
        return Err(BotFault::Unreachable("its answer cannot be read".to_owned()));
    }
    let description = answer["description"].as_str().unwrap_or_default().chars().take(200).collect();
    let code = answer["error_code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(status);
    let asked = answer["parameters"]["retry_after"].as_u64();
    Err(BotFault::Refused { code, description, retry_after: asked.or((code == 429).then_some(5)) })
}

impl BotApi for HttpBot {
    fn call(
        &self,
        method: &'static str,
        body: Value,
        patience: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Value, BotFault>> + Send + '_>> {
        Box::pin(async move {
            let within = tokio::time::timeout(patience, self.exchange(method, body)).await;
            within.unwrap_or_else(|_| {
                Err(BotFault::Unreachable(format!("nothing came within {} seconds", patience.as_secs())))
            })
        })
    }
}

pub(crate) fn routes() -> Router<State> {
    Router::new().route("/hooks/telegram", post(take))
}

/// Takes an update. Whoever does not show the secret is nobody.
async fn take(Extracted(state): Extracted<State>, request: Request) -> Response {
    let (address, now) = (client_address(&request), state.app.now());
    let outcome = match state.anonymous.check(address, now) {
        Ok(()) => hear(&state, request).await,
        Err(refused) => Err(refused),
    };
    match outcome {
        Ok(()) => error::json_of(StatusCode::OK, &json!({})),
        Err(refused) if refused.kind() == ErrorKind::Unauthorized => {
            let counted = state.anonymous.count(address, now);
            error::response(counted.as_ref().err().unwrap_or(&refused))
        }
        Err(refused) => error::response(&refused),
    }
}

async fn hear(state: &State, request: Request) -> Result<()> {
    // Without a secret there is no hook, and nothing tells that there could be one.
    let Hearing::Webhook(secret) = &state.app.settings().telegram else {
        return Err(Error::not_found("Not found"));
    };
    let (parts, body) = request.into_parts();
    let shown = parts
        .headers
        .get("x-telegram-bot-api-secret-token")
        .map_or("", |shown| shown.to_str().unwrap_or_default());
    // Of hashes it tells nobody anything how long comparing them takes.
    if secrets::hash(shown) != secrets::hash(secret) {
        return Err(Error::new(ErrorKind::Unauthorized));
    }
    let bound = Bound { most: MOST_UPDATE, refusal: ErrorKind::PayloadTooLarge };
    let bytes = body::read(&parts.headers, body, bound).await?;
    let update: Value =
        serde_json::from_slice(&bytes).map_err(|_| Error::invalid("", "expected an update as JSON"))?;
    if !update["update_id"].is_i64() {
        return Err(Error::invalid("update_id", "is required"));
    }
    // An update that was begun is finished, even if Telegram hangs up.
    let app = state.app.clone();
    let task = tokio::spawn(async move { updates::hear(&app, &update).await });
    task.await.map_err(Error::internal)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_for_what_they_mean() {
        assert_eq!(read(200, br#"{"ok":true,"result":{"a":1}}"#), Ok(json!({ "a": 1 })));
        let limited = br#"{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":7}}"#;
        let refused = BotFault::Refused {
            code: 429,
            description: "Too Many Requests".to_owned(),
            retry_after: Some(7),
        };
        assert_eq!(read(429, limited), Err(refused));
        for (status, bytes) in [(502, &b"<html>"[..]), (500, b""), (403, b"{}")] {
            assert!(matches!(read(status, bytes), Err(BotFault::Refused { code, .. }) if code == status));
        }
        assert!(matches!(read(200, b"<html>"), Err(BotFault::Unreachable(_))));
    }
}
