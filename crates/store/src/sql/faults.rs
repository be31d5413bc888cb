//! For tests only: makes the n-th statement of a transaction fail, to prove that nothing of it is left behind.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use model::WorkspaceId;

use crate::error::{Error, Result};

struct Fault {
    after: &'static str,
    number: u32,
    fired: bool,
}

static FAULTS: LazyLock<Mutex<HashMap<WorkspaceId, Fault>>> = LazyLock::new(Mutex::default);

/// Makes the `number`-th statement of the workspace's transactions fail, counted from one that contains `after`.
pub fn fail_statement(workspace: &WorkspaceId, after: &'static str, number: u32) {
    let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    faults.insert(workspace.clone(), Fault { after, number, fired: false });
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
        return Err(Error::Unavailable("a test made this statement fail".to_owned()));
    }
    Ok(())
}
