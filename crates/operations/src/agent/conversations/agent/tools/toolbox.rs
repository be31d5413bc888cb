//! The tools of one message of a conversation, and its tool calls so far.

use std::collections::{HashMap, HashSet};

use model::{EmailId, conversations::ToolUse};
use serde_json::Value;

use super::recipients::NamedRecipients;
use crate::{
    agent::{conversations::agent::turn::Turn, integrations::session::Session},
    core::{app::App, call::Call},
};

/// The tools of one message, and its tool calls so far.
pub(in super::super) struct Toolbox<'a> {
    pub(super) app: &'a App,
    pub(super) call: &'a Call,
    pub(super) turn: &'a Turn,
    /// Drafts that this conversation saved.
    pub(super) own_drafts: HashSet<EmailId>,
    /// The recipients it may send to.
    pub(super) named: NamedRecipients,
    /// Whether the one message was sent.
    pub(super) sent: bool,
    pub(super) drafts_saved: usize,
    pub(super) sessions: HashMap<usize, Session>,
    pub(super) room: usize,
    /// The tool calls so far.
    pub(in super::super) used: Vec<ToolUse>,
    /// Notes for the person, beside the answer.
    pub(in super::super) notes: Vec<String>,
}

/// The result of a tool.
pub(super) struct ToolResult {
    pub(super) data: Value,
    pub(super) email: Option<EmailId>,
    /// Whether it saved a draft instead of sending.
    pub(super) drafted: bool,
}

impl ToolResult {
    pub(super) const fn data(data: Value) -> Self {
        Self { data, email: None, drafted: false }
    }
}

/// Characters of one result.
pub(super) const MAX_RESULT_CHARS: usize = 24_000;
