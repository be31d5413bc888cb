//! Which message a request is about: uniformly at random, or by Zipf's law, as people look at mail.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fill;

/// How messages are drawn.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    /// All are equally likely.
    Uniform,
    /// The n-th most popular one is drawn n times less often than the first. Popular ones lie anywhere in the mailbox.
    Zipf,
}

/// An endless sequence of random numbers that connections share.
pub(super) struct Sequence(AtomicU64);

impl Sequence {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    pub(super) fn next(&self) -> u64 {
        let mut state = self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x2545_f491_4f6c_dd1d);
        fill::next_random(&mut state)
    }
}

impl Draw {
    /// A number from 1 to `count`.
    pub(super) fn number(self, random: u64, count: usize) -> usize {
        let rank = match self {
            Self::Uniform => return usize::try_from(random % count as u64).unwrap_or_default() + 1,
            Self::Zipf => zipf(random, count),
        };
        // A prime that divides no count of this benchmark spreads the ranks over the mailbox.
        rank.wrapping_mul(7_368_787) % count + 1
    }
}

/// A rank below `count`, by the inverse of the integral of 1 / x.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a random share, and a rank below the count"
)]
fn zipf(random: u64, count: usize) -> usize {
    let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
    ((count as f64).powf(share) as usize).min(count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_within_the_mailbox_and_popular_ones_repeat() {
        let sequence = Sequence::new();
        let draws =
            |draw: Draw| -> Vec<usize> { (0..10_000).map(|_| draw.number(sequence.next(), 1000)).collect() };
        for draw in [Draw::Uniform, Draw::Zipf] {
            assert!(draws(draw).iter().all(|number| (1..=1000).contains(number)));
        }
        let most = |numbers: &[usize]| {
            let mut counts = std::collections::HashMap::new();
            for number in numbers {
                *counts.entry(*number).or_insert(0) += 1;
            }
            counts.into_values().max().unwrap_or(0)
        };
        assert!(most(&draws(Draw::Uniform)) < 40 && most(&draws(Draw::Zipf)) > 500);
    }
}
