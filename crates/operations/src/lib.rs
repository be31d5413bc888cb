//! What may be done: one function per operation, free of HTTP, and the gates every call goes through.
//!
//! Doors (the API, the console, later MCP and others) translate to and from these functions. What an operation costs
//! and needs is declared in its [`Operation`] constant, and [`catalog`] lists them all.

pub mod accounts;
pub mod admin;
mod admission;
pub mod affiliate;
pub mod api_keys;
mod app;
pub mod assistant;
pub mod attachments;
pub mod backlog;
mod call;
pub mod confirmations;
pub mod conversations;
mod credentials;
mod cursor;
pub mod domains;
pub mod drafts;
pub mod email_context;
pub mod emails;
mod error;
pub mod events;
pub mod folders;
pub mod inbound;
pub mod integrations;
pub mod knowledge;
pub mod labels;
pub mod mail_log;
pub mod mailboxes;
pub mod members;
pub mod memory;
mod metering;
mod operation;
mod operator;
pub mod outside;
pub mod password_resets;
mod passwords;
pub mod payments;
mod readiness;
pub mod scanning;
pub mod scheduled_sends;
pub mod search;
pub mod secrets;
pub mod sending;
mod settings;
pub mod storage;
pub mod supervisor;
pub mod tasks;
pub mod telegram;
pub mod threads;
pub mod trace;
pub mod triage;
pub mod triagers;
mod turns;
pub mod upkeep;
pub mod usage;
pub mod webhooks;
pub mod workers;
pub mod workspaces;

pub use admission::{Admission, Entrance, Idempotency, Replay, gate_errors};
pub use app::{App, AppParts, RunningKey, status_of};
pub use call::{Actor, Call, IdempotencyClaim};
use credentials::Credentials;
pub use credentials::{Access, Caller, Credential};
pub use error::{Detail, Error, ErrorKind, Result};
pub use metering::{Credits, Meter, Rate, Reservation};
pub use operation::{Answer, Operation, catalog};
use operations_macros::boxed;
pub use passwords::{Client, HashingCost, device::DEVICE_SECONDS};
pub use settings::{Outbound, Settings, SignUpPolicy};

/// A name as it is stored: without white space around it. Control characters and empty names are refused.
pub(crate) fn clean_name(path: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::invalid(path, "must not be empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(path, "must not contain control characters"));
    }
    Ok(name.to_owned())
}

/// An address as it is stored and compared.
pub(crate) fn clean_email(path: &str, email: &str) -> Result<mail::address::Address> {
    mail::address::Address::parse(email.trim()).map_err(|error| Error::invalid(path, error.to_string()))
}

/// Locks a mutex. A panic while it was held leaves nothing half-done in the state that we keep, so it is used on.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
