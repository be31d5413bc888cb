//! The messaging-app link of a mailbox.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Timestamp;

/// Whether notifications reach a linked chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TelegramStatus {
    /// They arrive.
    Active,
    /// They do not: the bot was blocked, or the chat was deleted. Send `/start` in the chat to resume.
    Blocked,
}

/// The link between a mailbox and a chat.
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
    /// Whether notifications arrive.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<TelegramStatus>,
}

/// A code that links a chat, and the URL that opens the bot with it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TelegramCode {
    /// The code. It works once.
    pub code: String,
    /// A URL that opens the bot with the code.
    pub url: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The empty result of unlinking a chat.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TelegramUnlinked {}
