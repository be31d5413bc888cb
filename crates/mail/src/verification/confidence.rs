//! How sure a find is, and which finds are given: the likeliest ones, in the order of their confidence.
//!
//! Codes and links are judged apart, but both are given on one scale and up to the same number.

/// The most codes and the most links that are given.
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
