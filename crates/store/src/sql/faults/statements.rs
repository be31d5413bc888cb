//! Makes the n-th statement of a transaction fail or panic.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use model::WorkspaceId;

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

/// Makes the first statement of the workspace that contains the text panic, as a bug in its caller would.
pub fn panic_in_statement(workspace: &WorkspaceId, text: &'static str) {
    insert(workspace, Fault { after: text, number: 1, panics: true, fired: false });
}

fn insert(workspace: &WorkspaceId, fault: Fault) {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.clone(), fault);
}

/// Stops failing and returns whether a statement failed.
pub fn stop_failing(workspace: &WorkspaceId) -> bool {
    let mut faults = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    faults.remove(workspace).is_some_and(|fault| fault.fired)
}

/// Counts a statement; `seen` belongs to its transaction.
pub(in crate::sql) fn check(workspace: &WorkspaceId, seen: &mut u32, sql: &str) -> Result<()> {
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
