//! Retrieval: search, memory, knowledge.

pub mod knowledge;
pub mod memory;
pub mod search;
