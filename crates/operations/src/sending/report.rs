//! Telling a sender that a mail could not be delivered.

use model::WorkspaceId;

use crate::{App, Result};

/// Writes the report about a mail into the mailbox that sent it, once.
pub(super) async fn write(_app: &App, _workspace: &WorkspaceId, _id: &str) -> Result<()> {
    Ok(())
}
