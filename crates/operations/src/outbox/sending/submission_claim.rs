//! The claim on a message that is made with its submission.
//!
//! While this node reaches a destination and nothing older waits for it, what is submitted here is claimed by the
//! transaction that queues it. Then it needs no look at the queue and no transaction for a claim.

use model::{Timestamp, WorkspaceId, sending::RecipientState};
use store::{outbound::DeliveryRecord, queue::ClaimedDelivery};

use super::{
    claims::{LEASE_SECONDS, spawn_release},
    worker,
};
use crate::core::app::App;

/// The claimed recipients of a message. Unless it is delivered, the claim ends with this value; if the message was queued
/// nevertheless, for instance because the answer to the commit was lost, the claim is found as one without a task.
pub(super) struct SubmissionClaim {
    app: App,
    records: Vec<ClaimedDelivery>,
    /// When it expires.
    pub(super) until: Timestamp,
}

impl SubmissionClaim {
    /// Claims the recipients of a message that is about to be queued, if this node can deliver to all of them at once.
    ///
    /// The claim is known here before it is in the store, so that it is never taken for one without a task.
    pub(super) fn make(
        app: &App,
        workspace: &WorkspaceId,
        message: &str,
        recipients: &[DeliveryRecord],
    ) -> Option<Self> {
        let claimed = |one: &DeliveryRecord| ClaimedDelivery {
            workspace: workspace.clone(),
            outbound: message.to_owned(),
            position: one.position,
            recipient: one.recipient.clone(),
            destination: one.destination.clone(),
            attempts: one.attempts,
        };
        let is_queued = |one: &&DeliveryRecord| one.state == RecipientState::Queued;
        let records: Vec<ClaimedDelivery> = recipients.iter().filter(is_queued).map(claimed).collect();
        let outbox = app.outbox();
        if records.is_empty() || !records.iter().all(|one| outbox.takes_at_once(&one.destination)) {
            return None;
        }
        let until = app.now().plus_seconds(LEASE_SECONDS);
        Some(Self { app: app.clone(), records: outbox.claim(records), until })
    }

    /// Starts the delivery, after the commit.
    pub(super) fn deliver(mut self) {
        let records = std::mem::take(&mut self.records);
        if self.app.outbox().is_shutting_down() {
            spawn_release(&self.app, records, self.app.now());
        } else {
            // The tasks run on their own.
            drop(worker::deliver(&self.app, records));
        }
    }
}

impl Drop for SubmissionClaim {
    fn drop(&mut self) {
        self.app.outbox().release(&self.records);
    }
}
