//! The memory that messages may take while they come in, counted over all connections of the process.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Bytes that are left for messages in transfer; clones share them.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// What is left of it.
    pub fn free(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Nothing of it yet, to be grown.
    pub(super) fn lease(&self) -> Lease {
        Lease { budget: self.clone(), bytes: 0 }
    }
}

/// A part of a budget, given back when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    budget: Budget,
    bytes: usize,
}

impl Lease {
    /// Takes more, if there is as much.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.0.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Gives all of it back.
    pub(super) fn release(&mut self) {
        self.budget.0.fetch_add(std::mem::take(&mut self.bytes), Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}
