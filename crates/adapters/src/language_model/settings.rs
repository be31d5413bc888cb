//! Which model is asked, where, and within which bounds.

use std::{fmt, time::Duration};

use url::Url;

/// Where the model is, and how it is asked.
#[derive(Clone)]
pub struct AssistantSettings {
    /// The address that `chat/completions` is under, such as `https://api.example.com/v1`.
    pub base_url: Url,
    /// What requests are authorised with.
    pub api_key: Option<String>,
    /// The model.
    pub model: String,
    /// How long a question may take, further attempts included.
    pub time_limit: Duration,
    /// How often a question is asked before it is given up.
    pub attempts: u32,
    /// Questions that are with the endpoint at the same time.
    pub concurrency: usize,
    /// The field that bounds an answer: endpoints disagree about its name.
    pub token_field: &'static str,
}

impl fmt::Debug for AssistantSettings {
    /// Without the key and the address, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantSettings").field("model", &self.model).finish_non_exhaustive()
    }
}
