//! Telling programs and people what happened: webhooks, Telegram.

pub mod telegram;
pub mod webhooks;
