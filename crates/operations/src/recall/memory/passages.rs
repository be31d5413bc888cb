//! Makes the passages of a text: chunks with their vectors and terms, the texts sealed.

use hmac::{Hmac, KeyInit, Mac};
use model::search::words::{telling_words, words};
use sha2::Sha256;
use store::{
    memory::{Embedding, NewPassage},
    vault::DataKey,
};
use zeroize::Zeroizing;

use super::chunks;
use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    ports::{EmbedFault, Embedder, Urgency},
};

/// The purpose that texts of passages are sealed for.
pub(crate) const PURPOSE: &str = "passage";
/// Maximum terms of a text; a chunk has far fewer.
const MAX_TERMS: usize = 1000;

/// Hashes terms with a key of the workspace, so that the index reveals nothing to a reader of the disk.
pub(crate) struct TermKey(Zeroizing<[u8; 32]>);

impl TermKey {
    pub(crate) fn new(key: &DataKey) -> Self {
        Self(key.mac_key("memory words"))
    }

    /// The hashed terms of a text.
    pub(crate) fn hashes(&self, text: &str) -> Vec<u32> {
        words(text, MAX_TERMS).iter().filter_map(|word| self.hash(word)).collect()
    }

    /// The hashed terms of a query, without stop words.
    pub(crate) fn query_hashes(&self, text: &str) -> Vec<u32> {
        telling_words(text, MAX_TERMS).iter().filter_map(|word| self.hash(word)).collect()
    }

    fn hash(&self, word: &str) -> Option<u32> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0[..]).ok()?;
        mac.update(word.as_bytes());
        mac.finalize().into_bytes().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// The embedder, or the error that there is none.
pub(crate) fn embedder(app: &App) -> Result<&dyn Embedder> {
    app.embedder().map(|embedder| &**embedder).ok_or_else(|| {
        Error::new(ErrorKind::MemoryUnavailable)
            .with_fix("Set embeddings.provider to local or openai, then start the server again.")
    })
}

/// Embeds texts, or fails with 503.
pub(crate) async fn embed(app: &App, texts: Vec<String>, urgency: Urgency) -> Result<Vec<Vec<f32>>> {
    let embedder = embedder(app)?;
    let count = texts.len();
    let vectors = embedder.embed(texts, urgency).await.map_err(|error| fault(&error))?;
    let fits =
        |vector: &Vec<f32>| vector.len() == embedder.dimension() && vector.iter().all(|x| x.is_finite());
    if vectors.len() != count || !vectors.iter().all(fits) {
        return Err(fault(&EmbedFault::Unavailable("vectors of another shape came back".to_owned())));
    }
    Ok(vectors)
}

fn fault(fault: &EmbedFault) -> Error {
    tracing::warn!(%fault, "embedding failed");
    let error = Error::new(ErrorKind::MemoryUnavailable);
    match fault {
        EmbedFault::Unavailable(_) => error
            .with_retry_after(10)
            .with_fix("Try again later; the operator finds the reason in the server's log."),
        EmbedFault::Refused(_) => error.with_fix("The provider of embeddings refused the text; change it."),
    }
}

/// The chunks of a text, at most that many. May take long, so it runs on a blocking thread.
pub(crate) async fn cut(app: &App, text: String, limit: usize) -> Result<Vec<String>> {
    embedder(app)?;
    let app = app.clone();
    let work = tokio::task::spawn_blocking(move || match app.embedder() {
        Some(embedder) => chunks::cut(&**embedder, &text, limit),
        None => Vec::new(),
    });
    work.await.map_err(Error::internal)
}

/// The passages of texts, numbered from `first`.
pub(crate) async fn make(
    app: &App,
    key: &DataKey,
    texts: Vec<String>,
    first: i64,
    urgency: Urgency,
) -> Result<Vec<NewPassage>> {
    let vectors = embed(app, texts.clone(), urgency).await?;
    let term_key = TermKey::new(key);
    let mut passages = Vec::with_capacity(texts.len());
    for ((position, text), vector) in (first..).zip(&texts).zip(&vectors) {
        passages.push(NewPassage {
            position,
            text: key.seal(PURPOSE, text.as_bytes()).map_err(store::Error::from)?,
            embedding: stored(app, vector)?,
            words: embed::index::encode_terms(&term_key.hashes(text)),
        });
    }
    Ok(passages)
}

/// A vector as it is stored.
pub(crate) fn stored(app: &App, vector: &[f32]) -> Result<Embedding> {
    let embedder = embedder(app)?;
    Ok(Embedding {
        model: embedder.model().to_owned(),
        dimension: i64::try_from(vector.len()).unwrap_or(i64::MAX),
        exact: vector.iter().flat_map(|number| number.to_le_bytes()).collect(),
        code: embed::index::encode(vector),
    })
}

/// Opens a sealed text of the memory.
pub(crate) fn open(key: &DataKey, purpose: &str, sealed: &[u8]) -> Result<String> {
    let bytes = key.open(purpose, sealed).map_err(store::Error::from)?;
    String::from_utf8(bytes).map_err(Error::internal)
}

/// The cosine distance of a stored vector to a unit vector; `None` when they cannot be compared.
pub(crate) fn distance(stored: &[u8], query: &[f32]) -> Option<f64> {
    let (numbers, rest) = stored.as_chunks::<4>();
    if numbers.len() != query.len() || !rest.is_empty() {
        return None;
    }
    let (mut product, mut length) = (0.0_f64, 0.0_f64);
    for (bytes, other) in numbers.iter().zip(query) {
        let number = f64::from(f32::from_le_bytes(*bytes));
        product += number * f64::from(*other);
        length += number * number;
    }
    let distance = 1.0 - product / length.sqrt().max(f64::MIN_POSITIVE);
    Some((distance.clamp(0.0, 2.0) * 1e6).round() / 1e6)
}
