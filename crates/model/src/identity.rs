//! The caller itself.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{MailboxId, Plan, Role, Scope, Timestamp, WorkspaceId};

/// What a caller authenticated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdentityKind {
    /// An API key.
    Key,
    /// A session of the console.
    Session,
}

/// The caller, and what it may do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Identity {
    /// Whether the caller is an API key or a session of the console.
    pub kind: IdentityKind,
    /// The id of the key or of the session.
    pub id: String,
    /// The name of the key, or of the person.
    pub name: String,
    /// Its role in the workspace.
    pub role: Role,
    /// What it may do; null for everything that its role may do.
    pub scopes: Option<Vec<Scope>>,
    /// The only mailboxes that it sees; null for all.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Its workspace.
    pub workspace: IdentityWorkspace,
    /// When it expires; null if never.
    pub expires_at: Option<Timestamp>,
}

/// The workspace of a caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IdentityWorkspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
}
