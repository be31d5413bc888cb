//! Locking what is kept in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic while it was locked leaves nothing half-done in the state that we keep, so it is used on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
