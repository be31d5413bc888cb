//! The functions between the matrix products, written so that the compiler vectorises them: a token is a column, and
//! each step runs along a row, so that no sum waits for the one before it.

use ndarray::Array2;

/// Added to the variance for stability.
const VARIANCE_EPSILON: f32 = 1e-12;

/// Layer normalisation of each column: mean 0 and variance 1, then the learned scale and offset.
pub(crate) fn normalise(columns: &mut Array2<f32>, scale: &[f32], offset: &[f32]) {
    let (height, width) = columns.dim();
    let Some(numbers) = columns.as_slice_mut() else { return };
    #[expect(clippy::cast_precision_loss, reason = "a column has hundreds of numbers")]
    let count = height as f32;
    let mut means = vec![0.0; width];
    for row in numbers.chunks_exact(width) {
        for (sum, x) in means.iter_mut().zip(row) {
            *sum += x;
        }
    }
    for sum in &mut means {
        *sum /= count;
    }
    let mut inverses = vec![0.0; width];
    for row in numbers.chunks_exact(width) {
        for ((sum, x), mean) in inverses.iter_mut().zip(row).zip(&means) {
            *sum += (x - mean) * (x - mean);
        }
    }
    for sum in &mut inverses {
        *sum = (*sum / count + VARIANCE_EPSILON).sqrt().recip();
    }
    for ((row, scale), offset) in numbers.chunks_exact_mut(width).zip(scale).zip(offset) {
        for ((x, mean), inverse) in row.iter_mut().zip(&means).zip(&inverses) {
            *x = (*x - mean) * inverse * scale + offset;
        }
    }
}

/// Softmax of each column.
pub(crate) fn softmax(columns: &mut Array2<f32>) {
    let width = columns.ncols();
    let Some(numbers) = columns.as_slice_mut() else { return };
    let mut highest = vec![f32::MIN; width];
    for row in numbers.chunks_exact(width) {
        for (highest, x) in highest.iter_mut().zip(row) {
            // Not `max`, which looks at more than one instruction does.
            *highest = if *x > *highest { *x } else { *highest };
        }
    }
    let mut sums = vec![0.0; width];
    for row in numbers.chunks_exact_mut(width) {
        for ((x, highest), sum) in row.iter_mut().zip(&highest).zip(&mut sums) {
            *x = exp(*x - highest);
            *sum += *x;
        }
    }
    for sum in &mut sums {
        *sum = sum.recip();
    }
    for row in numbers.chunks_exact_mut(width) {
        for (x, inverse) in row.iter_mut().zip(&sums) {
            *x *= inverse;
        }
    }
}

/// GELU: x times the normal distribution function at x.
pub(crate) fn gelu(numbers: &mut [f32]) {
    for x in numbers {
        *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// exp(x) for x ≤ 0, to about seven digits: a power of two by its bits, the rest by a polynomial.
fn exp(x: f32) -> f32 {
    // Adding this rounds to an integer, which is then in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let power = (x * std::f32::consts::LOG2_E).max(-126.0);
    let rounded = power + ROUND;
    let t = (power - (rounded - ROUND)) * std::f32::consts::LN_2;
    let series = 1.0
        + t * (1.0
            + t * (0.5 + t * (0.166_666_67 + t * (0.041_666_67 + t * (0.008_333_34 + t * 0.001_388_89)))));
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    series * f32::from_bits(exponent << 23)
}

/// The error function, to about seven digits: a rational approximation between -4 and 4, and ±1 beyond.
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let s = x * x;
    let above = -2.726_142e-10;
    let above = above * s + 2.770_681_4e-8;
    let above = above * s - 2.101_024e-6;
    let above = above * s - 5.692_506_4e-5;
    let above = above * s - 7.349_906_3e-4;
    let above = above * s - 2.954_6e-3;
    let above = above * s - 1.609_603_3e-2;
    let below = -1.456_607_2e-5;
    let below = below * s - 2.133_740_6e-4;
    let below = below * s - 1.682_827e-3;
    let below = below * s - 7.373_329e-3;
    let below = below * s - 1.426_473_9e-2;
    x * above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_close_to_the_real_ones() {
        for step in -400_i16..=0 {
            let x = f32::from(step) / 20.0;
            assert!((exp(x) - x.exp()).abs() <= 1e-6 * x.exp().max(1e-30) + 1e-12, "{x}");
        }
        for (x, expected) in
            [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (9.0, 1.0)]
        {
            assert!((erf(x) - expected).abs() < 1e-6, "{x}");
            assert!((erf(-x) + expected).abs() < 1e-6, "-{x}");
        }
    }
}
