//! Meaning as numbers: the sentence model all-MiniLM-L6-v2, embedded in the program.
//!
//! Weights are kept with 8 bits and computed with 32. Nothing here knows workspaces, waits or does I/O; an embedding
//! takes tens of milliseconds of one processor, so call it from a thread that may block. The asset and what the tests
//! compare with are made by `scripts/make-embedding-asset`.

pub mod index;
mod math;
mod model;
mod reader;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::OnceLock;

use self::{model::Weights, tokens::Vocabulary};

pub use self::model::{DIMENSION, MAX_TOKENS};

/// The model's name, as it is stored with every vector.
pub const NAME: &str = "all-MiniLM-L6-v2-int8";

static WEIGHTS: &[u8] = include_bytes!("../assets/minilm.bin");
static VOCABULARY: &str = include_str!("../assets/vocab.txt");

fn vocabulary() -> &'static Vocabulary {
    static LOADED: OnceLock<Vocabulary> = OnceLock::new();
    LOADED.get_or_init(|| Vocabulary::parse(VOCABULARY))
}

fn weights() -> &'static Weights {
    static LOADED: OnceLock<Weights> = OnceLock::new();
    LOADED.get_or_init(|| Weights::read(WEIGHTS))
}

/// The vector of a text, of length 1. What is longer than [`MAX_TOKENS`] is cut. The first call loads the model.
pub fn embed(text: &str) -> Vec<f32> {
    weights().embed(&vocabulary().encode(text, MAX_TOKENS))
}

/// How many tokens a text has, without those at its ends, counted up to a bound.
pub fn count_tokens(text: &str, most: usize) -> usize {
    vocabulary().encode(text, most.saturating_add(2)).len().saturating_sub(2)
}
