//! What a transaction may touch: the rows of one workspace, or those of all.

use model::WorkspaceId;

/// What a transaction may touch.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Workspace(WorkspaceId),
    System,
}

impl Scope {
    pub(super) fn workspace(&self) -> WorkspaceId {
        WorkspaceId::from(self.setting())
    }

    /// The value of the setting that PostgreSQL's row-level security compares with.
    pub(super) fn setting(&self) -> &str {
        match self {
            Self::Workspace(id) => id.as_str(),
            Self::System => "*",
        }
    }
}
