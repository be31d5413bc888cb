//! Sentence embeddings: the model all-MiniLM-L6-v2, compiled into the program.
//!
//! Weights are stored with 8 bits and computed with 32. Nothing here knows workspaces, waits or does I/O; an
//! embedding takes tens of milliseconds of one core, so call it from a blocking thread. Several texts together take
//! less than one by one.
//! `scripts/make-embedding-asset` makes the asset and the tests' reference.

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

/// The model's name, as stored with every vector.
pub const NAME: &str = "all-MiniLM-L6-v2-int8";
/// Tokens that are computed together: two of the longest texts. With more, intermediate results leave the
/// processor's cache.
const MAX_BATCH_TOKENS: usize = 2 * MAX_TOKENS;

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

/// The vector of a text, of length 1. Text beyond [`MAX_TOKENS`] is ignored. The first call loads the model.
pub fn embed(text: &str) -> Vec<f32> {
    embed_all(&[text]).pop().unwrap_or_default()
}

/// The vectors of texts, in their order: the same as one by one, but sooner, above all those of short texts.
pub fn embed_all(texts: &[impl AsRef<str>]) -> Vec<Vec<f32>> {
    embed_in_steps(texts, || {})
}

/// The same, with pauses: calls back after every step, which takes some tens of milliseconds.
pub fn embed_in_steps(texts: &[impl AsRef<str>], mut after_step: impl FnMut()) -> Vec<Vec<f32>> {
    let mut vectors = Vec::with_capacity(texts.len());
    let (mut batch, mut batch_tokens) = (Vec::new(), 0);
    for text in texts {
        let tokens = vocabulary().encode(text.as_ref(), MAX_TOKENS);
        if batch_tokens + tokens.len() > MAX_BATCH_TOKENS {
            vectors.extend(weights().embed(&std::mem::take(&mut batch)));
            after_step();
            batch_tokens = 0;
        }
        batch_tokens += tokens.len();
        batch.push(tokens);
    }
    if !batch.is_empty() {
        vectors.extend(weights().embed(&batch));
        after_step();
    }
    vectors
}

/// The number of tokens of a text, without the markers at its ends, counted up to a limit.
pub fn count_tokens(text: &str, limit: usize) -> usize {
    vocabulary().encode(text, limit.saturating_add(2)).len().saturating_sub(2)
}
