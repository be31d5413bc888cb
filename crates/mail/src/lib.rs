//! Mail as bytes and values: what an address is, and later how a message is read and written.
//!
//! This crate knows no workspaces, no plans and no database: it only turns bytes into values and back.

pub mod address;
