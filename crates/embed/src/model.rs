//! The forward pass: six layers of attention over the tokens of a text, then mean pooling.

use ndarray::{Array2, ArrayView2, Axis, Slice, linalg::general_mat_mul};

use crate::{
    math::{gelu, normalise, softmax},
    reader::{Packed, Reader},
};

/// The dimension of vectors.
pub const DIMENSION: usize = 384;
/// Maximum tokens of a text, including the markers at its ends.
pub const MAX_TOKENS: usize = 256;

const WORDS: usize = 30_522;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = DIMENSION / HEADS;
/// The width of the feed-forward layer.
const INNER: usize = 1536;

/// A dense layer: weights and a bias.
struct Dense {
    weight: Array2<f32>,
    bias: Vec<f32>,
}

impl Dense {
    fn read(reader: &mut Reader<'_>, outputs: usize, inputs: usize) -> Self {
        Self { weight: reader.matrix(outputs, inputs), bias: reader.numbers(outputs) }
    }

    fn apply(&self, rows: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut out = Array2::zeros((rows.nrows(), self.bias.len()));
        for mut row in out.rows_mut() {
            if let Some(row) = row.as_slice_mut() {
                row.copy_from_slice(&self.bias);
            }
        }
        general_mat_mul(1.0, rows, &self.weight.t(), 1.0, &mut out);
        out
    }
}

/// The scale and offset of a layer normalisation.
struct Norm {
    scale: Vec<f32>,
    offset: Vec<f32>,
}

impl Norm {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self { scale: reader.numbers(DIMENSION), offset: reader.numbers(DIMENSION) }
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        normalise(rows, &self.scale, &self.offset);
    }
}

struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    mixed: Dense,
    mixed_norm: Norm,
    inner: Dense,
    outer: Dense,
    outer_norm: Norm,
}

impl Layer {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            query: Dense::read(reader, DIMENSION, DIMENSION),
            key: Dense::read(reader, DIMENSION, DIMENSION),
            value: Dense::read(reader, DIMENSION, DIMENSION),
            mixed: Dense::read(reader, DIMENSION, DIMENSION),
            mixed_norm: Norm::read(reader),
            inner: Dense::read(reader, INNER, DIMENSION),
            outer: Dense::read(reader, DIMENSION, INNER),
            outer_norm: Norm::read(reader),
        }
    }

    fn apply(&self, tokens: &Array2<f32>) -> Array2<f32> {
        let mut mixed = self.mixed.apply(&self.attend(tokens).view());
        mixed += tokens;
        self.mixed_norm.apply(&mut mixed);
        let mut inner = self.inner.apply(&mixed.view());
        if let Some(numbers) = inner.as_slice_mut() {
            gelu(numbers);
        }
        let mut outer = self.outer.apply(&inner.view());
        outer += &mixed;
        self.outer_norm.apply(&mut outer);
        outer
    }

    /// Self-attention, one head at a time.
    fn attend(&self, tokens: &Array2<f32>) -> Array2<f32> {
        let tokens = tokens.view();
        let (query, key, value) =
            (self.query.apply(&tokens), self.key.apply(&tokens), self.value.apply(&tokens));
        let count = tokens.nrows();
        let mut attended = Array2::zeros((count, DIMENSION));
        let mut shares = Array2::zeros((count, count));
        #[expect(clippy::cast_precision_loss, reason = "the number is 32")]
        let scale = (HEAD as f32).sqrt().recip();
        for head in 0..HEADS {
            let columns = Slice::from(head * HEAD..(head + 1) * HEAD);
            let of_head = |all: &'_ Array2<f32>| all.slice_axis(Axis(1), columns).to_owned();
            let (query, key, value) = (of_head(&query), of_head(&key), of_head(&value));
            general_mat_mul(scale, &query, &key.t(), 0.0, &mut shares);
            for mut row in shares.rows_mut() {
                softmax(&mut row);
            }
            general_mat_mul(1.0, &shares, &value, 0.0, &mut attended.slice_axis_mut(Axis(1), columns));
        }
        attended
    }
}

/// The loaded model.
pub(crate) struct Weights {
    words: Packed<'static>,
    /// Position embeddings plus the token type, of which there is only one.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

impl Weights {
    pub(crate) fn read(asset: &'static [u8]) -> Self {
        let mut reader = Reader::new(asset);
        let words = reader.packed(WORDS, DIMENSION);
        let mut positions = reader.matrix(MAX_TOKENS, DIMENSION);
        let kinds = reader.matrix(2, DIMENSION);
        positions += &kinds.row(0);
        let norm = Norm::read(&mut reader);
        let layers = (0..LAYERS).map(|_| Layer::read(&mut reader)).collect();
        assert!(reader.is_at_end(), "the embedded model has another shape");
        Self { words, positions, norm, layers }
    }

    /// The vector of a text, of length 1.
    pub(crate) fn embed(&self, tokens: &[u16]) -> Vec<f32> {
        let mut rows = self.positions.slice_axis(Axis(0), Slice::from(..tokens.len())).to_owned();
        for (mut row, token) in rows.rows_mut().into_iter().zip(tokens) {
            if let Some(row) = row.as_slice_mut() {
                self.words.add_row(usize::from(*token), row);
            }
        }
        self.norm.apply(&mut rows);
        for layer in &self.layers {
            rows = layer.apply(&rows);
        }
        let sum = rows.sum_axis(Axis(0));
        let length = sum.dot(&sum).sqrt().max(f32::MIN_POSITIVE);
        (sum / length).to_vec()
    }
}
