//! Outgoing mail: drafts, sending, scheduled sends, send policies and reviews.

pub mod drafts;
pub mod reviews;
pub mod scheduled_sends;
pub mod send_policies;
pub mod sending;
pub mod suppressions;
pub mod unsubscribing;
