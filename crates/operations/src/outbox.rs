//! Outgoing mail: drafts, sending, scheduled sends.

pub mod drafts;
pub mod scheduled_sends;
pub mod sending;
