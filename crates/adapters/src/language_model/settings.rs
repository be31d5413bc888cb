//! The model, its endpoint and its limits.

use std::{fmt, time::Duration};

use url::Url;

/// The model, its endpoint and its limits.
#[derive(Clone)]
pub struct AssistantSettings {
    /// The base URL above `chat/completions`, such as `https://api.example.com/v1`.
    pub base_url: Url,
    /// The API key.
    pub api_key: Option<String>,
    /// The model.
    pub model: String,
    /// Timeout of a request, retries included.
    pub time_limit: Duration,
    /// Maximum attempts of a request.
    pub attempts: u32,
    /// Maximum concurrent requests.
    pub concurrency: usize,
    /// The field that limits the answer's length: endpoints disagree about its name.
    pub token_field: &'static str,
}

impl fmt::Debug for AssistantSettings {
    /// Without the key and the URL, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantSettings").field("model", &self.model).finish_non_exhaustive()
    }
}
