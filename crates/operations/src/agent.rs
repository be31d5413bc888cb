//! What acts by itself or on a question: conversations, triage, tasks, integrations.

pub mod conversations;
pub mod integrations;
pub mod tasks;
pub mod triage;
pub mod triagers;
