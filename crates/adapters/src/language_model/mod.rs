//! A language model behind any OpenAI-compatible endpoint: chat completions, plain or streamed, with tools.
//!
//! A response is bounded in time and size. Failures that may pass are retried with backoff; for an endpoint that
//! keeps failing a circuit breaker opens, so that callers learn at once that there is no model.

mod breaker;
mod client;
mod reasoning;
mod settings;
mod streamed_reply;
mod wire;

pub use self::{client::HttpAssistant, settings::AssistantSettings};
