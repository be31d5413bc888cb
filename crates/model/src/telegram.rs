//! The messaging-app link of a mailbox.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Timestamp;

/// Whether notices get through to a linked chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TelegramStatus {
    /// They do.
    Active,
    /// The chat takes none: the bot was blocked, or the chat is gone. `/start` in the chat begins again.
    Blocked,
}

/// The link of a mailbox.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct TelegramLink {
    /// Whether a chat is linked.
    pub linked: bool,
    /// The name of the chat.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chat_title: Option<String>,
    /// When it was linked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub linked_at: Option<Timestamp>,
    /// Whether notices get through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<TelegramStatus>,
}

/// What links a chat: the code, and the address that brings it to the bot.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TelegramCode {
    /// The code. It works once.
    pub code: String,
    /// An address that opens the bot with the code.
    pub url: String,
    /// The end of its time.
    pub expires_at: Timestamp,
}

/// The answer to removing a link, which says nothing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TelegramUnlinked {}
