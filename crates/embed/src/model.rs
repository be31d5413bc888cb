//! The forward pass: six layers of attention over the tokens of a text, then mean pooling.
//!
//! Several texts are computed together: their tokens are the columns of one matrix, so that a product prepares its
//! weights once for all of them. Only attention looks at each text by itself, so no text is padded to the length of
//! another. Columns, because a product and the functions between products then read numbers that lie side by side.

use std::ops::Range;

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

    fn apply(&self, tokens: &Array2<f32>) -> Array2<f32> {
        let mut out = Array2::zeros((self.bias.len(), tokens.ncols()));
        for (mut row, bias) in out.rows_mut().into_iter().zip(&self.bias) {
            row.fill(*bias);
        }
        general_mat_mul(1.0, &self.weight, tokens, 1.0, &mut out);
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

    fn apply(&self, tokens: &mut Array2<f32>) {
        normalise(tokens, &self.scale, &self.offset);
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

    fn apply(&self, tokens: &Array2<f32>, texts: &[Range<usize>]) -> Array2<f32> {
        let mut mixed = self.mixed.apply(&self.attend(tokens, texts));
        mixed += tokens;
        self.mixed_norm.apply(&mut mixed);
        let mut inner = self.inner.apply(&mixed);
        if let Some(numbers) = inner.as_slice_mut() {
            gelu(numbers);
        }
        let mut outer = self.outer.apply(&inner);
        outer += &mixed;
        self.outer_norm.apply(&mut outer);
        outer
    }

    /// Self-attention: of each text by itself, one head at a time.
    fn attend(&self, tokens: &Array2<f32>, texts: &[Range<usize>]) -> Array2<f32> {
        let (query, key, value) =
            (self.query.apply(tokens), self.key.apply(tokens), self.value.apply(tokens));
        let mut attended = Array2::zeros(tokens.dim());
        #[expect(clippy::cast_precision_loss, reason = "the number is 32")]
        let scale = (HEAD as f32).sqrt().recip();
        for text in texts {
            let mut shares = Array2::zeros((text.len(), text.len()));
            let text = Slice::from(text.clone());
            for head in 0..HEADS {
                let head = Slice::from(head * HEAD..(head + 1) * HEAD);
                let [query, key, value] = [&query, &key, &value].map(|all| part(all, head, text));
                general_mat_mul(scale, &key.t(), &query, 0.0, &mut shares);
                softmax(&mut shares);
                let mut attended = attended.slice_axis_mut(Axis(0), head);
                general_mat_mul(1.0, &value, &shares, 0.0, &mut attended.slice_axis_mut(Axis(1), text));
            }
        }
        attended
    }
}

/// Some columns of some rows.
fn part(all: &Array2<f32>, rows: Slice, columns: Slice) -> ArrayView2<'_, f32> {
    let mut part = all.view();
    part.slice_axis_inplace(Axis(0), rows);
    part.slice_axis_inplace(Axis(1), columns);
    part
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

    /// The vectors of texts, each of length 1.
    pub(crate) fn embed(&self, texts: &[Vec<u16>]) -> Vec<Vec<f32>> {
        let (mut ranges, mut end) = (Vec::with_capacity(texts.len()), 0);
        for tokens in texts {
            ranges.push(end..end + tokens.len());
            end += tokens.len();
        }
        let mut rows = Array2::zeros((end, DIMENSION));
        let positions = texts.iter().flat_map(|tokens| self.positions.rows().into_iter().zip(tokens));
        for (mut row, (position, token)) in rows.rows_mut().into_iter().zip(positions) {
            row.assign(&position);
            if let Some(row) = row.as_slice_mut() {
                self.words.add_row(usize::from(*token), row);
            }
        }
        let mut tokens = rows.t().as_standard_layout().into_owned();
        self.norm.apply(&mut tokens);
        for layer in &self.layers {
            tokens = layer.apply(&tokens, &ranges);
        }
        let pool = |text: Range<usize>| {
            let sum = tokens.slice_axis(Axis(1), Slice::from(text)).sum_axis(Axis(1));
            let length = sum.dot(&sum).sqrt().max(f32::MIN_POSITIVE);
            (sum / length).to_vec()
        };
        ranges.into_iter().map(pool).collect()
    }
}
