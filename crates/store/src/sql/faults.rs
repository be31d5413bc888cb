//! For tests only: makes the n-th statement of a transaction fail or panic, to prove that nothing of it is left behind, or
//! the whole process as good as dead at its n-th commit, to prove that whatever was told or stored before fits together.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use model::WorkspaceId;

use super::Db;
use crate::error::{Error, Result};

struct Fault {
    after: &'static str,
    number: u32,
    panics: bool,
    fired: bool,
}

static FAULTS: LazyLock<Mutex<HashMap<WorkspaceId, Fault>>> = LazyLock::new(Mutex::default);

/// Makes the `number`-th statement of the workspace's transactions fail, counted from one that contains `after`.
pub fn fail_statement(workspace: &WorkspaceId, after: &'static str, number: u32) {
    insert(workspace, Fault { after, number, panics: false, fired: false });
}

/// Makes the first statement of the workspace that contains the text panic, as a fault of the code that calls it would.
pub fn panic_in_statement(workspace: &WorkspaceId, text: &'static str) {
    insert(workspace, Fault { after: text, number: 1, panics: true, fired: false });
}

fn insert(workspace: &WorkspaceId, fault: Fault) {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.clone(), fault);
}

/// Stops failing and tells whether a statement failed.
pub fn stop_failing(workspace: &WorkspaceId) -> bool {
    let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    faults.remove(workspace).is_some_and(|fault| fault.fired)
}

/// Counts a statement; `seen` belongs to its transaction.
pub(super) fn check(workspace: &WorkspaceId, seen: &mut u32, sql: &str) -> Result<()> {
    let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(fault) = faults.get_mut(workspace) else { return Ok(()) };
    if *seen > 0 || sql.contains(fault.after) {
        *seen += 1;
    }
    if *seen == fault.number {
        fault.fired = true;
        assert!(!fault.panics, "a test made this statement panic");
        return Err(Error::Unavailable("a test made this statement fail".into()));
    }
    Ok(())
}

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

impl Db {
    fn address(&self) -> usize {
        std::sync::Arc::as_ptr(&self.0).addr()
    }

    /// Another store that was open at the same address may have died.
    pub(super) fn begin_to_live(&self) {
        CRASHES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address());
    }

    /// Lets the process die at its n-th commit from now on: from then on nothing reaches the store. Counted from one.
    pub fn crash_at(&self, commits: u32, moment: Moment) {
        let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
        crashes.insert(self.address(), Crash { commits, moment, dead: false });
    }

    /// Takes the crash back, unless it has happened, and tells whether it has.
    pub fn has_crashed(&self) -> bool {
        let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
        let dead = crashes.get(&self.address()).is_some_and(|crash| crash.dead);
        if !dead {
            crashes.remove(&self.address());
        }
        dead
    }

    /// Fails where the process is dead, or dies before this commit. Tells whether it dies right after it.
    pub(super) fn survives_until_commit(&self) -> Result<bool> {
        let mut crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(crash) = crashes.get_mut(&self.address()) else { return Ok(false) };
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
    pub fn is_dead(&self) -> bool {
        let crashes = CRASHES.lock().unwrap_or_else(PoisonError::into_inner);
        crashes.get(&self.address()).is_some_and(|crash| crash.dead)
    }

    /// Fails where the process is dead.
    pub(super) fn is_alive(&self) -> Result<()> {
        if self.is_dead() { Err(died()) } else { Ok(()) }
    }
}

/// What a dead process finds.
pub(super) fn died() -> Error {
    Error::Unavailable("a test let the process die".into())
}
