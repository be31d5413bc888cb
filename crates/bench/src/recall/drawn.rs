//! What the measurements of recall share: an embedder that costs nothing, and requests.

use std::net::SocketAddr;

use operations::ports::{Embedder, Embedding, Urgency};

use crate::fill;

/// A fake embedder, so that everything except the embedding is measured: a vector derived from the text. It has the name of
/// the embedded model, so that the real program does not embed the same texts again.
pub(super) struct DrawnEmbedder;

impl Embedder for DrawnEmbedder {
    fn model(&self) -> &'static str {
        embed::NAME
    }
    fn dimension(&self) -> usize {
        embed::DIMENSION
    }
    fn max_tokens(&self) -> usize {
        200
    }
    fn count_tokens(&self, text: &str, limit: usize) -> usize {
        text.split_whitespace().take(limit).count() * 2
    }
    fn embed(&self, texts: Vec<String>, _: Urgency) -> Embedding<'_> {
        Box::pin(async move { Ok(texts.iter().map(|text| drawn(text.len() as u64 ^ seed(text))).collect()) })
    }
}

pub(super) fn seed(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A vector of length 1, the same for the same number.
#[expect(clippy::cast_precision_loss, reason = "any number between -1 and 1 will do")]
pub(super) fn drawn(mut state: u64) -> Vec<f32> {
    let one = |state: &mut u64| (fill::next_random(state) >> 40) as f32 / 8_388_608.0 - 1.0;
    let vector: Vec<f32> = (0..embed::DIMENSION).map(|_| one(&mut state) + one(&mut state)).collect();
    normalised(vector)
}

pub(super) fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    for number in &mut vector {
        *number /= length;
    }
    vector
}

pub(super) fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

pub(super) fn of_json((status, body): &(u16, Vec<u8>)) -> serde_json::Value {
    assert!(*status < 300, "{}", String::from_utf8_lossy(body));
    serde_json::from_slice(body).expect("an answer is JSON")
}

pub(super) fn request(address: SocketAddr, key: &str, path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
