//! A language model behind any OpenAI-compatible endpoint: chat completions, plain or streamed, with tools.
//!
//! An answer takes a bounded time and has a bounded size. What may work another time is tried again with growing pauses;
//! an endpoint that keeps failing is left alone for a while, so that callers hear at once that there is no model.

mod breaker;
mod client;
mod gathering;
mod settings;
mod thoughts;
mod wire;

pub use self::{client::HttpAssistant, settings::AssistantSettings};
