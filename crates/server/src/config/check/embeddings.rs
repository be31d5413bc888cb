//! The options of the embedding model.

use std::time::Duration;

use adapters::embeddings::EmbedderSettings;
use url::Url;

use super::Reader;
use crate::config::{Embeddings, EmbeddingsProvider};

/// Timeout for an endpoint's response.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(30);

impl Reader<'_> {
    pub(super) fn embeddings(&mut self) -> Option<Embeddings> {
        let provider = self.choice("embeddings.provider", &["local", "openai", "none"]);
        let base_url = self.optional("embeddings.base_url", endpoint);
        let api_key = self.optional("embeddings.api_key", |text| Ok(text.to_owned()));
        let model = self.optional("embeddings.model", |text| Ok(text.to_owned()));
        let dimension = self.number("embeddings.dimension", 8..=8192);
        let mail = self.flag("embeddings.mail");
        let megabytes = self.number("embeddings.cache_mb", 16..=1_048_576);
        let provider = match provider {
            "none" => EmbeddingsProvider::None,
            "local" => EmbeddingsProvider::Local,
            _ => {
                for (key, missing) in
                    [("embeddings.base_url", base_url.is_none()), ("embeddings.model", model.is_none())]
                {
                    if missing && self.text(key).is_empty() {
                        self.complain(key, "is needed for embeddings.provider = \"openai\"");
                    }
                }
                EmbeddingsProvider::Http(EmbedderSettings {
                    base_url: base_url?,
                    api_key,
                    model: model?,
                    dimension: usize::try_from(dimension).ok()?,
                    time_limit: ENDPOINT_TIMEOUT,
                })
            }
        };
        Some(Embeddings { provider, mail, cache_bytes: usize::try_from(megabytes).ok()? << 20 })
    }
}

fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("expected an address such as https://api.openai.com/v1".to_owned());
    }
    Ok(url)
}
