//! Simulates a crash at the n-th commit: which of the open stores are to crash, and which have.
//!
//! A store is known by its address, since several may be open in the process that tests them.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use crate::error::{Error, Result};

/// When a process crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its last transaction is rolled back.
    BeforeCommit,
    /// Its last transaction is durable, and its caller is never answered.
    AfterCommit,
}

struct Crash {
    commits: u32,
    moment: Moment,
    dead: bool,
}

/// By the address of the open store.
static CRASHES: LazyLock<Mutex<HashMap<usize, Crash>>> = LazyLock::new(Mutex::default);

/// Another store that was open at the same address may have crashed.
pub(in crate::sql) fn begin_to_live(store: usize) {
    CRASHES.lock().unwrap_or_else(PoisonError::into_inner).remove(&store);
}

/// Simulates a crash at the n-th commit from now on.
pub(super) fn crash_at(store: usize, commits: u32, moment: Moment) {
    let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    crashes.insert(store, Crash { commits, moment, dead: false });
}

/// Cancels the crash, unless it has happened, and returns whether it has.
pub(super) fn has_crashed(store: usize) -> bool {
    let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    let dead = crashes.get(&store).is_some_and(|crash| crash.dead);
    if !dead {
        crashes.remove(&store);
    }
    dead
}

/// Fails after a crash, or crashes before this commit. Returns whether to crash right after it.
pub(in crate::sql) fn survives_until_commit(store: usize) -> Result<bool> {
    let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(crash) = crashes.get_mut(&store) else { return Ok(false) };
    if crash.dead {
        return Err(died());
    }
    crash.commits = crash.commits.saturating_sub(1);
    crash.dead = crash.commits == 0;
    match crash.moment {
        Moment::BeforeCommit if crash.dead => Err(died()),
        Moment::BeforeCommit => Ok(false),
        Moment::AfterCommit => Ok(crash.dead),
    }
}

/// Whether the process has crashed.
pub(super) fn is_dead(store: usize) -> bool {
    let crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    crashes.get(&store).is_some_and(|crash| crash.dead)
}

/// Fails after a crash.
pub(in crate::sql) fn is_alive(store: usize) -> Result<()> {
    if is_dead(store) { Err(died()) } else { Ok(()) }
}

/// The error after a crash.
pub(in crate::sql) fn died() -> Error {
    Error::Unavailable("a test let the process die".into())
}
