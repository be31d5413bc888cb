//! Assembles the service: the hooks that higher wings have in the inbox and the outbox.

use std::path::Path;

use crate::{
    agent::triage,
    core::{
        app::{App, AppParts, Hooks},
        error::Result,
    },
    outbox::sending,
};

/// In the order in which they run.
const HOOKS: Hooks = Hooks {
    arrival: &[&sending::IncomingReports, &sending::AutomaticMessages, &triage::Triage],
    send: &[&triage::Triage],
};

impl App {
    /// Assembles the service for a process that serves calls, and starts its meter. The meter logs its spending in
    /// the folder.
    #[crate::boxed]
    pub async fn start(parts: AppParts, spend_log: &Path) -> Result<Self> {
        Self::start_with(parts, spend_log, HOOKS).await
    }

    /// The same without background work, for callers that drive each step themselves.
    #[crate::boxed]
    pub async fn open(parts: AppParts, spend_log: &Path) -> Result<Self> {
        Self::open_with(parts, spend_log, HOOKS).await
    }

    /// Assembles the service for a command that runs beside a server without disturbing it.
    pub fn attach(parts: AppParts) -> Self {
        Self::attach_with(parts, HOOKS)
    }
}
