//! Wake-ups: what one node tells all others the moment a transaction is durable.
//!
//! They only say where to look. Whoever listens reads the truth from the store, so a lost wake-up costs time, never
//! correctness.

use model::WorkspaceId;

/// A reason to look at the store again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// What happened, such as `recall`.
    pub topic: String,
    /// Where.
    pub workspace: WorkspaceId,
}

impl Wake {
    /// The notification channel in PostgreSQL.
    pub(super) const CHANNEL: &str = "agent_mailbox";

    pub(super) fn encode(&self) -> String {
        format!("{} {}", self.topic, self.workspace)
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let (topic, workspace) = text.split_once(' ')?;
        Some(Self { topic: topic.to_owned(), workspace: WorkspaceId::from(workspace) })
    }
}
