//! Reads the asset: 8-bit matrices with a scale per group, 32-bit vectors.

use ndarray::Array2;

/// The asset's magic bytes.
const MAGIC: &[u8] = b"MINILM02";
/// Numbers that share a scale; every row is a multiple of it.
const GROUP: usize = 128;

/// A position in the asset.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// A matrix as stored.
pub(crate) struct Packed<'a> {
    scales: Vec<f32>,
    codes: &'a [u8],
    columns: usize,
}

impl Packed<'_> {
    /// Adds a row to the given numbers.
    pub(crate) fn add_row(&self, row: usize, to: &mut [f32]) {
        let codes = &self.codes[row * self.columns..(row + 1) * self.columns];
        let scales = &self.scales[row * self.columns / GROUP..];
        for ((sums, codes), scale) in to.chunks_mut(GROUP).zip(codes.chunks(GROUP)).zip(scales) {
            for (sum, code) in sums.iter_mut().zip(codes) {
                *sum += scale * f32::from(code.cast_signed());
            }
        }
    }

    fn unpack(&self) -> Array2<f32> {
        let mut matrix = Array2::zeros((self.codes.len() / self.columns, self.columns));
        for (row, mut numbers) in matrix.rows_mut().into_iter().enumerate() {
            if let Some(numbers) = numbers.as_slice_mut() {
                self.add_row(row, numbers);
            }
        }
        matrix
    }
}

impl<'a> Reader<'a> {
    /// The asset is compiled in, so a malformed one is a build error.
    pub(crate) fn new(asset: &'a [u8]) -> Self {
        assert!(asset.starts_with(MAGIC), "the embedded model is another one");
        Self { rest: &asset[MAGIC.len()..] }
    }

    fn read_bytes(&mut self, bytes: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        head
    }

    pub(crate) fn numbers(&mut self, count: usize) -> Vec<f32> {
        let (numbers, _) = self.read_bytes(count * 4).as_chunks::<4>();
        numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    pub(crate) fn packed(&mut self, rows: usize, columns: usize) -> Packed<'a> {
        let scales = self.numbers(rows * columns / GROUP);
        Packed { scales, codes: self.read_bytes(rows * columns), columns }
    }

    pub(crate) fn matrix(&mut self, rows: usize, columns: usize) -> Array2<f32> {
        self.packed(rows, columns).unpack()
    }

    /// Whether everything was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}
