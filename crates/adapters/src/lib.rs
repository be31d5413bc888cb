//! Clients of outside services: each stands behind a port of `operations::ports`, and only `server` chooses which are used.
//!
//! What is asked and what follows from an answer is decided by operations; here is how each service is spoken to, within
//! bounds of time and size.

pub mod embeddings;
pub mod facilitator;
mod http;
pub mod language_model;
pub mod smtp;
pub mod telegram;
pub mod webhook_http;
