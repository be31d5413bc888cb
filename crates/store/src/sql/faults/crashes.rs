//! Lets a process die at its n-th commit: which of the open stores are to die, and which are dead.
//!
//! A store is known by its address, since several may be open in the process that tests them.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use crate::error::{Error, Result};

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its last transaction is undone.
    BeforeCommit,
    /// Its last transaction is durable, and its caller never hears of it.
    AfterCommit,
}

struct Crash {
    commits: u32,
    moment: Moment,
    dead: bool,
}

/// By the address of the open store.
static CRASHES: LazyLock<Mutex<HashMap<usize, Crash>>> = LazyLock::new(Mutex::default);

/// Another store that was open at the same address may have died.
pub(in crate::sql) fn begin_to_live(store: usize) {
    CRASHES.lock().unwrap_or_else(PoisonError::into_inner).remove(&store);
}

/// Lets the process die at its n-th commit from now on.
pub(super) fn crash_at(store: usize, commits: u32, moment: Moment) {
    let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    crashes.insert(store, Crash { commits, moment, dead: false });
}

/// Takes the crash back, unless it has happened, and tells whether it has.
pub(super) fn has_crashed(store: usize) -> bool {
    let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    let dead = crashes.get(&store).is_some_and(|crash| crash.dead);
    if !dead {
        crashes.remove(&store);
    }
    dead
}

/// Fails where the process is dead, or dies before this commit. Tells whether it dies right after it.
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

/// Whether the process has died.
pub(super) fn is_dead(store: usize) -> bool {
    let crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
    crashes.get(&store).is_some_and(|crash| crash.dead)
}

/// Fails where the process is dead.
pub(in crate::sql) fn is_alive(store: usize) -> Result<()> {
    if is_dead(store) { Err(died()) } else { Ok(()) }
}

/// What a dead process finds.
pub(in crate::sql) fn died() -> Error {
    Error::Unavailable("a test let the process die".into())
}
