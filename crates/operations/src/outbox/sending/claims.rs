//! Claims on queue records: those of this node in the store, and the tasks that have them here.
//!
//! A claim is renewed as long as this node lives, so one without a task would block its record for every node.
//! However a task ends, it releases its records; a claim that is missed is found and released when the worker
//! restarts, and before each renewal.

use std::time::Duration;

use model::Timestamp;
use store::queue::{self, ClaimedDelivery};

use crate::core::{app::App, error::Result, state::outbox::Group};

/// The lease of a claimed record.
pub(super) const LEASE_SECONDS: i64 = 60;
/// How often a node renews its claims.
pub const RENEW_SECONDS: u64 = 15;
/// When a record is retried after a fault of this server.
const RETRY_SECONDS: i64 = 60;
/// When a message is retried after its first panic.
const PANIC_RETRY_SECONDS: i64 = 2;

/// The records that a task has claimed. However the task ends, they are released.
pub(super) struct ClaimedRecords {
    pub(super) app: App,
    pub(super) destination: String,
    records: Vec<ClaimedDelivery>,
    /// When the remaining records may be retried.
    retry_at: Timestamp,
}

impl ClaimedRecords {
    pub(super) fn new(app: &App, destination: &str) -> Self {
        app.outbox().begin(destination);
        let retry_at = app.now().plus_seconds(RETRY_SECONDS);
        Self { app: app.clone(), destination: destination.to_owned(), records: Vec::new(), retry_at }
    }

    /// The next message, unless the process is about to stop.
    pub(super) fn next(&mut self) -> Option<Group> {
        if self.app.outbox().is_shutting_down() {
            return None;
        }
        let group = self.app.outbox().next(&self.destination)?;
        self.records.extend(group.records.iter().cloned());
        Some(group)
    }

    /// Removes records whose attempt was recorded.
    pub(super) fn finish_group(&mut self, group: &Group) {
        let done = self.remove(group);
        self.app.outbox().release(&done);
    }

    /// Releases a message whose attempt was not recorded, to be retried soon.
    pub(super) async fn release_after_panic(&mut self, group: &Group) {
        let retry_at = self.app.now().plus_seconds(PANIC_RETRY_SECONDS);
        let records = self.remove(group);
        release(self.app.clone(), records, retry_at).await;
    }

    fn remove(&mut self, group: &Group) -> Vec<ClaimedDelivery> {
        let is_of = |record: &ClaimedDelivery| {
            record.outbound == group.outbound && record.workspace == group.workspace
        };
        let (removed, rest) = std::mem::take(&mut self.records).into_iter().partition(is_of);
        self.records = rest;
        removed
    }

    /// Releases everything queued for the destination.
    pub(super) fn give_up(&mut self) {
        self.records.extend(self.app.outbox().take_queued(Some(&self.destination)));
        self.retry_at = self.app.now();
    }
}

impl Drop for ClaimedRecords {
    fn drop(&mut self) {
        let records = std::mem::take(&mut self.records);
        self.app.outbox().end(&self.destination);
        spawn_release(&self.app, records, self.retry_at);
    }
}

/// Guards a worker that starts tasks for claimed records. When a panic ends it, records without a task are released
/// at once, so that other nodes can take them while it is restarted.
pub struct Dispatcher(App);

impl Dispatcher {
    /// To be kept as long as the worker runs.
    pub fn new(app: &App) -> Self {
        app.outbox().record_worker(true);
        Self(app.clone())
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.0.outbox().record_worker(false);
        // At shutdown [`finish`] does it.
        if std::thread::panicking() {
            let untried = self.0.outbox().take_queued(None);
            spawn_release(&self.0, untried, self.0.now());
        }
    }
}

pub(super) fn spawn_release(app: &App, records: Vec<ClaimedDelivery>, at: Timestamp) {
    // Without a runtime the process is stopping, and the claims expire.
    if !records.is_empty()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(release(app.clone(), records, at));
    }
}

/// Releases records that were not tried. They are removed from memory only after the store knows, so that this node
/// does not claim them in between.
async fn release(app: App, records: Vec<ClaimedDelivery>, at: Timestamp) {
    for record in records {
        let _claiming = app.outbox().lock_claims().await;
        if let Err(error) = release_one(&app, record.clone(), at).await {
            tracing::warn!(%error, "queue claim not released; releasing it before the next renewal");
        }
        app.outbox().release(&[record]);
    }
}

async fn release_one(app: &App, record: ClaimedDelivery, at: Timestamp) -> Result<()> {
    let (workspace, node) = (record.workspace.clone(), app.outbox().node().to_owned());
    Ok(app.db().write(&workspace, async move |tx| queue::release(tx, &record, &node, at).await).await?)
}

/// Releases claims of this node that no task has.
async fn release_strays(app: &App) -> Result<()> {
    // Nothing is claimed or released meanwhile.
    let _claiming = app.outbox().lock_claims().await;
    let node = app.outbox().node().to_owned();
    let mut strays = app.db().system_read(async move |tx| queue::claimed_by(tx, &node).await).await?;
    strays.retain(|record| !app.outbox().has_claim(record));
    for record in strays {
        tracing::warn!(queue_id = record.outbound, "queue claim without a task; releasing it");
        release_one(app, record, app.now()).await?;
    }
    Ok(())
}

/// Renews the claims of this node.
#[crate::boxed]
pub async fn renew(app: &App) -> Result<()> {
    release_strays(app).await?;
    if app.outbox().is_idle() {
        return Ok(());
    }
    let (node, until) = (app.outbox().node().to_owned(), app.now().plus_seconds(LEASE_SECONDS));
    Ok(app.db().system_write(async move |tx| queue::renew(tx, &node, until).await).await?)
}

/// Lets the tasks of this node stop after their current message, and waits for them: what another server accepted
/// should be recorded before the process stops.
#[crate::boxed]
pub async fn finish(app: &App) {
    app.outbox().begin_shutdown();
    while !app.outbox().is_idle() {
        // Besides the worker, others may be waiting for the same notification.
        let _ = tokio::time::timeout(Duration::from_millis(50), app.outbox().task_finished()).await;
    }
    let untried = app.outbox().take_queued(None);
    release(app.clone(), untried, app.now()).await;
}

/// Releases lost claims: those of a failed worker, and those of former processes where this process has the store
/// alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    if app.db().is_sole_node() {
        let node = app.outbox().node().to_owned();
        app.db().system_write(async move |tx| queue::release_all_but(tx, &node).await).await?;
    }
    release_strays(app).await
}
