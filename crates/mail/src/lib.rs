//! Mail as bytes and values: what an address is, how a message is read, judged and shown, how SMTP is spoken.
//!
//! This crate knows no workspaces, no plans and no database: it only turns bytes into values and back.

pub mod address;
pub mod authentication;
pub mod auto_reply;
pub mod classify;
pub mod client;
pub mod compose;
pub mod dns;
pub mod message;
pub mod mta_sts;
pub mod mx;
pub mod net;
pub mod reports;
pub mod safe_text;
pub mod scan;
pub mod sign;
pub mod smtp;
pub mod srs;
pub mod verification;
