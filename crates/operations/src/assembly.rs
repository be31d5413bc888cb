//! Puts the service together: the hooks that wings above the inbox and the outbox have there.

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
    arrival: &[&sending::ReportNotes, &sending::AutomaticMail, &triage::Triage],
    send: &[&triage::Triage],
};

impl App {
    /// Puts the parts together for a process that serves calls, and starts its meter.
    ///
    /// What its meter spends is logged in the folder.
    #[crate::boxed]
    pub async fn start(parts: AppParts, spend_log: &Path) -> Result<Self> {
        Self::start_with(parts, spend_log, HOOKS).await
    }

    /// The same without anything that goes on by itself, for those who say what happens when.
    #[crate::boxed]
    pub async fn open(parts: AppParts, spend_log: &Path) -> Result<Self> {
        Self::open_with(parts, spend_log, HOOKS).await
    }

    /// Puts the parts together for a command that works beside a server, which it does not disturb.
    pub fn attach(parts: AppParts) -> Self {
        Self::attach_with(parts, HOOKS)
    }
}
