//! What was read from the store a moment ago, by name: who sends many messages asks for the same again and again.
//!
//! It is invalidated by the next write of this process that could change it, so a caller never sees anything older than its
//! own change. Writes of another process take effect after half a second, as for callers.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use store::Db;
use tokio::time::Instant;

use crate::core::lock::lock;

const TTL: Duration = Duration::from_millis(500);
/// Maximum remembered values; beyond it all are forgotten.
const CAPACITY: usize = 1000;

/// Values that were read a moment ago.
pub(crate) struct Recent<V>(Mutex<HashMap<String, (V, Moment)>>);

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A moment before something is read.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    /// The number of writes before.
    changes: u64,
}

impl Moment {
    /// Now.
    pub(crate) fn now(db: &Db) -> Self {
        Self { changes: db.changes(), at: Instant::now() }
    }
}

impl<V: Clone> Recent<V> {
    /// A value that is still valid.
    pub(crate) fn find(&self, now: Moment, name: &str) -> Option<V> {
        let all = lock(&self.0);
        let (value, read) = all.get(name)?;
        let is_valid = read.changes == now.changes && now.at.duration_since(read.at) < TTL;
        is_valid.then(|| value.clone())
    }

    /// Remembers a value that was read after a moment.
    pub(crate) fn keep(&self, before: Moment, name: &str, value: V) {
        let mut all = lock(&self.0);
        if all.len() >= CAPACITY && !all.contains_key(name) {
            all.clear();
        }
        all.insert(name.to_owned(), (value, before));
    }
}
