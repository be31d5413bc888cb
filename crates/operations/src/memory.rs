//! The memory store's credentials: the workspace's own data key, which everything remembered is sealed with.

use model::usage::{MemoryCredentials, MemoryStatus};

use crate::{App, Call, Operation, Result};

/// Reads whether the memory store can be used.
pub const CREDENTIALS: Operation =
    Operation::read("getMemoryCredentials", "Reads the state of the memory store's credentials.");

pub(crate) const OPERATIONS: &[&Operation] = &[&CREDENTIALS];

/// Reads whether the memory store can be used.
pub async fn credentials(app: &App, call: &Call) -> Result<MemoryCredentials> {
    let usable = app.data_key(&call.workspace).await.is_ok() && app.blob_fault().is_none();
    let status = if usable { MemoryStatus::Ready } else { MemoryStatus::Unavailable };
    Ok(MemoryCredentials { status })
}
