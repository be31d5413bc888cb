//! The options of the language model.

use std::time::Duration;

use adapters::language_model::AssistantSettings;
use url::Url;

use super::Reader;

impl Reader<'_> {
    /// The language model; `None` when none is configured.
    pub(super) fn ai(&mut self) -> Option<AssistantSettings> {
        let base_url = self.optional("ai.base_url", endpoint);
        let model = self.text("ai.model").to_owned();
        let api_key = Some(self.text("ai.api_key").to_owned()).filter(|key| !key.is_empty());
        let time_limit = self.number("ai.timeout_seconds", 1..=30).unsigned_abs();
        let attempts = self.number("ai.attempts", 1..=10);
        let concurrency = self.number("ai.concurrency", 1..=1000);
        let token_field = self.choice("ai.token_field", &["max_tokens", "max_completion_tokens"]);
        if let Some(key) = &api_key
            && !key.bytes().all(|byte| (0x21..0x7f).contains(&byte))
        {
            self.complain("ai.api_key", "must consist of printable ASCII characters without spaces");
        }
        match (self.text("ai.base_url").is_empty(), model.is_empty()) {
            (true, true) => return None,
            (true, false) => self.complain("ai.base_url", "is needed with ai.model"),
            (false, true) => self.complain("ai.model", "is needed with ai.base_url"),
            (false, false) => {}
        }
        Some(AssistantSettings {
            base_url: base_url?,
            api_key,
            model,
            time_limit: Duration::from_secs(time_limit),
            attempts: u32::try_from(attempts).unwrap_or(1),
            concurrency: usize::try_from(concurrency).unwrap_or(1),
            token_field,
        })
    }
}

fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && !url.path().ends_with("/chat/completions")
    });
    // Without the value, which may hold a secret.
    url.ok_or_else(|| {
        "expected a URL such as https://api.example.com/v1, the part before /chat/completions".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Sources};

    fn load(pairs: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let pair = |(name, value): &(&str, &str)| (format!("AGENT_MAILBOX__AI__{name}"), (*value).to_owned());
        let environment = pairs.iter().map(pair).collect();
        let sources = Sources { working_dir: "/nowhere".into(), environment, ..Sources::default() };
        Config::load(&sources).map_err(|all| all.iter().map(|one| one.key.clone()).collect())
    }

    // rules: AGENT-8
    #[test]
    fn a_model_needs_an_address_and_a_name() {
        assert!(load(&[]).unwrap().ai.is_none());
        let base = ("BASE_URL", "http://127.0.0.1:11434/v1");
        let ai = load(&[base, ("MODEL", "qwen3:4b"), ("API_KEY", "sk-secret")]).unwrap().ai.unwrap();
        assert_eq!((ai.model.as_str(), ai.base_url.as_str()), ("qwen3:4b", "http://127.0.0.1:11434/v1"));
        assert!(!format!("{ai:?}").contains("sk-secret"));
        assert_eq!(load(&[base]).unwrap_err(), ["ai.model"]);
        assert_eq!(load(&[("MODEL", "m")]).unwrap_err(), ["ai.base_url"]);
        assert_eq!(load(&[("BASE_URL", "x"), ("MODEL", "m")]).unwrap_err(), ["ai.base_url"]);
        assert_eq!(
            load(&[base, ("MODEL", "m"), ("TIMEOUT_SECONDS", "31")]).unwrap_err(),
            ["ai.timeout_seconds"]
        );
        assert_eq!(load(&[base, ("MODEL", "m"), ("API_KEY", "a b")]).unwrap_err(), ["ai.api_key"]);
    }
}
