//! How confident a result is, and which results are returned: the most likely ones, in that order.
//!
//! Codes and links are scored separately, but on one scale and with the same limit.

/// Codes and links that are returned at most.
const MAX_RESULTS: usize = 10;

/// Sorts by confidence and keeps the best. Equal ones keep the order of the message.
pub(super) fn keep_best<T>(mut found: Vec<T>, confidence: impl Fn(&T) -> f64) -> Vec<T> {
    found.sort_by(|one, two| confidence(two).total_cmp(&confidence(one)));
    found.truncate(MAX_RESULTS);
    found
}

/// A confidence with two digits, below certainty.
pub(super) fn confidence(score: f64) -> f64 {
    (score.clamp(0.0, 0.99) * 100.0).round() / 100.0
}
