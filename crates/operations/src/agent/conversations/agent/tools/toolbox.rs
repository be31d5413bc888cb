//! What one message of a conversation may use, and what it has used.

use std::collections::{HashMap, HashSet};

use model::{EmailId, conversations::ToolUse};
use serde_json::Value;

use super::recipients::Named;
use crate::{
    agent::{conversations::agent::turn::Turn, integrations::session::Session},
    core::{app::App, call::Call},
};

/// What one message may use, and what it has used.
pub(in super::super) struct Toolbox<'a> {
    pub(super) app: &'a App,
    pub(super) call: &'a Call,
    pub(super) turn: &'a Turn,
    /// Drafts that this conversation saved.
    pub(super) own_drafts: HashSet<EmailId>,
    /// Whom it may send to.
    pub(super) named: Named,
    /// Whether the one mail of this message has left.
    pub(super) sent: bool,
    pub(super) drafts_saved: usize,
    pub(super) sessions: HashMap<usize, Session>,
    pub(super) room: usize,
    /// What was used so far.
    pub(in super::super) used: Vec<ToolUse>,
    /// What the person is told besides the answer.
    pub(in super::super) notes: Vec<String>,
}

/// What a tool gave.
pub(super) struct Done {
    pub(super) data: Value,
    pub(super) email: Option<EmailId>,
    /// Whether it saved a draft instead of sending.
    pub(super) drafted: bool,
}

impl Done {
    pub(super) const fn data(data: Value) -> Self {
        Self { data, email: None, drafted: false }
    }
}

/// Characters of one result.
pub(super) const MAX_RESULT_CHARS: usize = 24_000;
