//! Random numbers that a test can repeat, and break.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use operations::ports::Entropy;

/// Pseudo-random numbers, the same in every run.
pub(crate) struct SeededEntropy {
    state: AtomicU64,
    /// Whether asking for a number panics.
    broken: Arc<AtomicBool>,
}

impl SeededEntropy {
    /// Numbers from a seed.
    pub(crate) fn new(seed: u64, broken: Arc<AtomicBool>) -> Self {
        Self { state: AtomicU64::new(seed), broken }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        assert!(!self.broken.load(Ordering::SeqCst), "the random numbers are broken");
        for chunk in buffer.chunks_mut(8) {
            // SplitMix64: well mixed and three lines long.
            let mut state = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(state ^ (state >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}
