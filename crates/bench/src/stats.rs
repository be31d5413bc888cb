//! Medians and percentiles.

/// The value below which a share of the values lies; the values need no order.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a length is an index into it"
    )]
    let index = ((values.len() - 1) as f64 * share).round() as usize;
    values[index]
}

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
pub(crate) fn as_float(count: usize) -> f64 {
    count as f64
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(&mut values.to_vec(), 0.5)
}

/// The smallest and the largest value.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    (percentile(&mut values, 0.0), percentile(&mut values, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_value() {
        let mut values = vec![5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(percentile(&mut values, 0.0).to_string(), "1");
        assert_eq!(percentile(&mut values, 0.5).to_string(), "3");
        assert_eq!(percentile(&mut values, 1.0).to_string(), "5");
        assert_eq!(median(&[2.0, 9.0, 4.0]).to_string(), "4");
    }
}
