//! Accounts, workspaces, members, API keys, usage and affiliates.

pub mod accounts;
pub mod affiliate;
pub mod api_keys;
pub mod audit;
pub mod confirmations;
pub mod identity;
pub mod members;
pub mod password_resets;
pub mod usage;
pub mod workspaces;
