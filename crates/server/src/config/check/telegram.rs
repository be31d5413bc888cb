//! The options of the Telegram bot.

use operations::BotUpdates;
use url::Url;

use super::Reader;
use crate::config::Telegram;

impl Reader<'_> {
    pub(super) fn telegram(&mut self) -> Option<Telegram> {
        let token = self.optional("telegram.bot_token", token);
        let api_base = self.parsed("telegram.api_base", api_base);
        let by_webhook = self.choice("telegram.mode", &["polling", "webhook"]) == "webhook";
        let secret = self.optional("telegram.webhook_secret", webhook_secret);
        let hearing = match (by_webhook, secret) {
            (false, _) => BotUpdates::Polling,
            (true, Some(secret)) => BotUpdates::Webhook(secret),
            (true, None) => {
                if self.text("telegram.webhook_secret").is_empty() {
                    self.complain("telegram.webhook_secret", "is needed for telegram.mode = \"webhook\"");
                }
                return None;
            }
        };
        Some(Telegram { token: token?, api_base: api_base?, hearing })
    }
}

// No message repeats the value: it is a secret.

fn token(text: &str) -> Result<String, String> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    match text.split_once(':') {
        Some((number, secret))
            if number.bytes().all(|byte| byte.is_ascii_digit()) && plain(number) && plain(secret) =>
        {
            Ok(text.to_owned())
        }
        _ => Err("is no token of a bot, such as BotFather gives: digits, a colon, letters".to_owned()),
    }
}

fn webhook_secret(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if plain && (16..=256).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err("must be 16 to 256 letters, digits, underscores and hyphens".to_owned())
}

fn api_base(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none() => {
            Ok(url)
        }
        _ => Err(format!("{text:?} is no address of a web server")),
    }
}
