//! Scopes: what a key that is narrowed may do.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of operations that a key can be narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All reads, and waiting for messages.
    Read,
    /// Labels, folders, flags, moving and deleting messages, imports.
    Organize,
    /// Writing drafts, and changing or cancelling what is scheduled.
    Draft,
    /// Sending, replying, forwarding and scheduling.
    Send,
    /// The mailbox agent, triage, memory and documents.
    Agent,
    /// Mailboxes, domains, webhooks, integrations, policies and members.
    Manage,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Organize, Self::Draft, Self::Send, Self::Agent, Self::Manage];

    /// The name as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Organize => "organize",
            Self::Draft => "draft",
            Self::Send => "send",
            Self::Agent => "agent",
            Self::Manage => "manage",
        }
    }

    /// A list of this scope alone.
    pub const fn alone(self) -> &'static [Self] {
        match self {
            Self::Read => &[Self::Read],
            Self::Organize => &[Self::Organize],
            Self::Draft => &[Self::Draft],
            Self::Send => &[Self::Send],
            Self::Agent => &[Self::Agent],
            Self::Manage => &[Self::Manage],
        }
    }
}

impl FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| {
            format!("unknown scope {text:?}; the scopes are {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}
