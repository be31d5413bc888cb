//! Clients of outside services: each implements a port of `operations::ports`, and only `server` chooses which are
//! used.
//!
//! Operations decide what to ask and what follows from a response; the adapters speak each service's protocol,
//! within timeouts and size limits.

pub mod embeddings;
pub mod facilitator;
mod http;
pub mod language_model;
pub mod smtp;
pub mod telegram;
pub mod webhook_http;
