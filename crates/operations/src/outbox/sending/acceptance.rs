//! Waiting until every next hop has accepted a message, for the call that sent it.

use std::time::Duration;

use model::{Timestamp, WorkspaceId, sending::RecipientState};
use store::outbound::{self, DeliveryRecord};
use tokio::{sync::watch, time::Instant};

use crate::core::{
    app::App,
    error::{Error, Result},
};

/// How often a waiting send polls the status.
const STATUS_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long events are left alone at first, and after each read: they may be about any message of the workspace, and the
/// worker of this node needs none.
const EVENT_READ_INTERVAL: Duration = Duration::from_millis(25);

/// A message that was queued, and that its sender waits for.
pub(super) struct QueuedDelivery<'a> {
    app: &'a App,
    workspace: &'a WorkspaceId,
    id: &'a str,
    recipients: usize,
}

impl<'a> QueuedDelivery<'a> {
    pub(super) const fn new(
        app: &'a App,
        workspace: &'a WorkspaceId,
        id: &'a str,
        recipients: usize,
    ) -> Self {
        Self { app, workspace, id, recipients }
    }

    /// Waits until every next hop has accepted it. False when the time is up, or when it cannot become true any more.
    ///
    /// The worker of this node publishes the outcome of its attempts. Those of another node are read from the store,
    /// after an event or at the next poll.
    pub(super) async fn wait_until_accepted(
        &mut self,
        watched: &mut watch::Receiver<Option<Vec<DeliveryRecord>>>,
        events: &mut watch::Receiver<u64>,
    ) -> Result<bool> {
        let window = self.app.settings().outbound.send_window;
        let deadline = Instant::now() + window;
        let last = self.app.now().plus_seconds(i64::try_from(window.as_secs()).unwrap_or(i64::MAX));
        let mut next_event_read = Instant::now() + EVENT_READ_INTERVAL;
        // There is no event for a repeated deferral.
        let mut next_poll = Instant::now() + STATUS_POLL_INTERVAL;
        loop {
            let recipients = tokio::select! {
                biased;
                () = self.app.ending() => return Ok(false),
                changed = watched.changed() => {
                    changed.map_err(Error::internal)?;
                    watched.borrow_and_update().clone().unwrap_or_default()
                }
                () = event_after(next_event_read, events) => {
                    if self.app.outbox().has_message(self.workspace, self.id, self.recipients) {
                        continue;
                    }
                    next_event_read = Instant::now() + EVENT_READ_INTERVAL;
                    self.read().await?
                }
                () = tokio::time::sleep_until(next_poll.min(deadline)) => {
                    next_poll = Instant::now() + STATUS_POLL_INTERVAL;
                    self.read().await?
                }
            };
            match outcome(&recipients, last) {
                Some(accepted) => return Ok(accepted),
                None if Instant::now() >= deadline => return Ok(false),
                None => {}
            }
        }
    }

    async fn read(&self) -> Result<Vec<DeliveryRecord>> {
        let wanted = self.id.to_owned();
        let read =
            self.app.db().read(self.workspace, async move |tx| outbound::recipients(tx, &wanted).await);
        Ok(read.await?)
    }
}

/// Waits for an event, but not before a time.
async fn event_after(time: Instant, events: &mut watch::Receiver<u64>) {
    tokio::time::sleep_until(time).await;
    if events.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Whether all recipients have accepted a message; `None` while that is open. A delivery deferred beyond the window ends
/// the wait.
fn outcome(recipients: &[DeliveryRecord], last: Timestamp) -> Option<bool> {
    let is = |state: RecipientState| recipients.iter().any(|one| one.state == state);
    let beyond_window = |one: &DeliveryRecord| {
        one.state == RecipientState::Queued
            && one.attempts > 0
            && one.next_attempt_at.is_some_and(|at| at > last)
    };
    if recipients.iter().any(DeliveryRecord::is_failed)
        || recipients.is_empty()
        || recipients.iter().any(beyond_window)
    {
        return Some(false);
    }
    (!is(RecipientState::Queued)).then_some(true)
}
