//! The assistant features: conversations, triage, tasks, integrations.

pub mod conversations;
pub mod integrations;
pub mod tasks;
pub mod triage;
pub mod triagers;
