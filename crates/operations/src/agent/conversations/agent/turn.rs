//! A message of a conversation that is about to be answered, with everything loaded for it.

use std::sync::Arc;

use model::{
    MailboxId, Timestamp,
    conversations::{AgentMessage, Conversation},
};
use store::vault::DataKey;

use crate::agent::integrations;

/// A message that is about to be answered. It has locked its conversation.
pub struct Turn {
    pub(super) mailbox: MailboxId,
    pub(super) address: String,
    pub(super) conversation: Conversation,
    pub(super) message: AgentMessage,
    pub(super) history: Vec<AgentMessage>,
    pub(super) offered: Vec<integrations::OfferedTool>,
    /// The sender of the thread that the conversation is about.
    pub(super) about: Option<String>,
    pub(super) until: Timestamp,
    pub(super) key: Arc<DataKey>,
}
