//! The client of Telegram's Bot API. The webhook for its updates is a route of `web`.

use std::{future::Future, pin::Pin, time::Duration};

use operations::ports::{BotApi, BotFault};
use reqwest::redirect;
use serde_json::Value;
use url::Url;

use crate::http::{LazyClient, read_body, without_address};

/// Maximum bytes of a response; a longer one is an error.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A client of the Bot API. Its URL holds the token, so it is never shown.
pub struct HttpBot {
    base: String,
    client: LazyClient,
}

impl HttpBot {
    /// A client for the bot with this token.
    pub fn new(base: &Url, token: &str) -> Self {
        Self {
            base: format!("{}/bot{token}", base.as_str().trim_end_matches('/')),
            client: LazyClient::default(),
        }
    }

    async fn exchange(&self, method: &str, body: Value) -> Result<Value, BotFault> {
        let client = self.client.get(|builder| builder.redirect(redirect::Policy::none()));
        let call = client
            .await
            .map_err(BotFault::Unreachable)?
            .post(format!("{}/{method}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = call.send().await.map_err(|error| BotFault::Unreachable(without_address(error)))?;
        let status = answer.status().as_u16();
        let bytes = read_body(answer, MAX_ANSWER_BYTES).await.map_err(BotFault::Unreachable)?;
        read(status, &bytes)
    }
}

/// Reads a response of the Bot API.
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
        timeout: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Value, BotFault>> + Send + '_>> {
        Box::pin(async move {
            let within = tokio::time::timeout(timeout, self.exchange(method, body)).await;
            within.unwrap_or_else(|_| {
                Err(BotFault::Unreachable(format!("nothing came within {} seconds", timeout.as_secs())))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
