//! The memory of messages in transfer, counted over all connections of the process.

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

    /// An empty lease, to be grown.
    pub(super) fn lease(&self) -> Lease {
        Lease { budget: self.clone(), bytes: 0 }
    }
}

/// A part of a budget, released when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    budget: Budget,
    bytes: usize,
}

impl Lease {
    /// Reserves more, if available.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.0.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Releases all of it.
    pub(super) fn release(&mut self) {
        self.budget.0.fetch_add(std::mem::take(&mut self.bytes), Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}
