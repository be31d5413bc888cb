//! The webhook for Telegram updates. The client of its Bot API is an adapter.

use axum::{
    Router,
    extract::{Request, State as Extracted},
    http::StatusCode,
    response::Response,
    routing::post,
};
use operations::{BotUpdates, Error, ErrorKind, Result, secrets, telegram::updates};
use serde_json::{Value, json};

use crate::{
    State,
    body::{self, BodyLimit},
    error,
    request::client_address,
};

/// Maximum size of an update.
const MAX_UPDATE_BYTES: u64 = 1 << 20;

pub(crate) fn routes() -> Router<State> {
    Router::new().route("/hooks/telegram", post(receive))
}

/// Accepts an update. A caller without the secret gets 401.
async fn receive(Extracted(state): Extracted<State>, request: Request) -> Response {
    let (address, now) = (client_address(&request), state.app.now());
    let outcome = match state.anonymous.check(address, now) {
        Ok(()) => process(&state, request).await,
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

async fn process(state: &State, request: Request) -> Result<()> {
    // Without a secret there is no hook, and the response does not reveal that there could be one.
    let BotUpdates::Webhook(secret) = &state.app.settings().telegram else {
        return Err(error::no_route());
    };
    let (parts, body) = request.into_parts();
    let given = parts
        .headers
        .get("x-telegram-bot-api-secret-token")
        .map_or("", |given| given.to_str().unwrap_or_default());
    // Comparing hashes leaks nothing through its timing.
    if secrets::hash(given) != secrets::hash(secret) {
        let fix = "Register the webhook with Telegram again, with this server's secret.";
        return Err(Error::new(ErrorKind::Unauthorized).with_fix(fix));
    }
    let limit = BodyLimit { max: MAX_UPDATE_BYTES, refusal: ErrorKind::PayloadTooLarge };
    let bytes = body::read(&parts.headers, body, limit).await?;
    let update: Value =
        serde_json::from_slice(&bytes).map_err(|_| Error::invalid("", "expected an update as JSON"))?;
    if !update["update_id"].is_i64() {
        return Err(Error::invalid("update_id", "is required"));
    }
    // An update is processed to its end, even if Telegram disconnects.
    let app = state.app.clone();
    let task = tokio::spawn(async move { updates::handle(&app, &update).await });
    task.await.map_err(Error::internal)?
}
