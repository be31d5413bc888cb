//! Notifying programs and people of events: webhooks, Telegram.

pub mod telegram;
pub mod webhooks;
