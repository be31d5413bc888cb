//! Mail as bytes and values: what an address is, how a message is read, judged and shown, how SMTP is spoken.
//!
//! This crate knows no workspaces, no plans and no database: it only turns bytes into values and back.

pub mod address;
#[cfg(feature = "network")]
pub mod authentication;
pub mod auto_reply;
pub mod bounce_class;
pub mod classify;
#[cfg(feature = "network")]
pub mod client;
pub mod compose;
#[cfg(feature = "display")]
pub mod display;
#[cfg(feature = "network")]
pub mod dns;
mod encryption;
pub mod html;
pub mod message;
#[cfg(feature = "network")]
pub mod mta_sts;
#[cfg(feature = "network")]
pub mod mx;
pub mod net;
mod printable;
pub mod reports;
pub mod safe_text;
pub mod scan;
#[cfg(feature = "network")]
pub mod sign;
pub mod smtp;
#[cfg(feature = "network")]
pub mod srs;
pub mod verification;

pub use self::{encryption::Encryption, printable::printable};
