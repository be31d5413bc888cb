//! The bot: its API calls, and what their failures mean.

use std::time::Duration;

use serde_json::{Value, json};

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    ports::BotFault,
};

/// The worker that sends notices and handles updates.
pub(super) const WORKER: &str = "telegram";
/// The delay after a failure.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The timeout of a call.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a call.
pub(super) async fn call(
    app: &App,
    method: &'static str,
    body: Value,
    timeout: Duration,
) -> Result<Value, BotFault> {
    match app.bot() {
        Some(bot) => bot.call(method, body, timeout).await,
        None => Err(BotFault::Unreachable("there is no bot".to_owned())),
    }
}

/// The bot's name, which is part of its URL. It never changes while the server runs.
pub(super) async fn name(app: &App) -> Result<String> {
    let unavailable = |fix: &'static str| Error::new(ErrorKind::TelegramUnavailable).with_fix(fix);
    if app.bot().is_none() {
        let fix = "This server has no Telegram bot. Its operator can set telegram.bot_token.";
        return Err(unavailable(fix));
    }
    let found = app.bot_name().get_or_try_init(async || {
        let found = call(app, "getMe", json!({}), REQUEST_TIMEOUT).await.map_err(|fault| {
            tracing::warn!(%fault, "Telegram getMe failed");
            let refused = matches!(fault, BotFault::Refused { code: 401 | 404, .. });
            unavailable(if refused {
                "Telegram does not know the bot. Ask this server's operator to check telegram.bot_token."
            } else {
                "Telegram cannot be reached. Try again in a minute."
            })
        })?;
        let name = found["username"].as_str().unwrap_or_default();
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain {
            Ok(name.to_owned())
        } else {
            Err(unavailable("Telegram gave the bot no name. Try again in a minute."))
        }
    });
    found.await.cloned()
}

/// Sends a text to a chat. A courtesy: the request is done, whether or not this gets through.
pub(super) async fn say(app: &App, chat: i64, text: &str) {
    let body = json!({ "chat_id": chat, "text": text, "link_preview_options": { "is_disabled": true } });
    if let Err(fault) = call(app, "sendMessage", body, REQUEST_TIMEOUT).await {
        tracing::debug!(%fault, "Telegram sendMessage failed; giving up");
    }
}
