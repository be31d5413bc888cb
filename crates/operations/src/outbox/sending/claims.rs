//! Who has which records of the queue: the claims of this node in the store, and the tasks that hold them here.
//!
//! A claim is renewed for as long as this node lives, so one that no task holds would keep its record from everybody.
//! However a task ends, it gives its records back; what slips through is found and released when the worker starts again,
//! and before each renewal.

use std::time::Duration;

use model::Timestamp;
use store::queue::{self, Claimed};

use crate::core::{app::App, error::Result, state::outbox::Group};

/// How long a node that took a record on is believed to be alive.
pub(super) const LEASE_SECONDS: i64 = 60;
/// How often a node says that it is still at work.
pub const RENEW_SECONDS: u64 = 15;
/// When something is tried again that this server itself could not do.
const AGAIN_SECONDS: i64 = 60;
/// When a mail is tried again after code panicked over it for the first time.
const AFTER_PANIC_SECONDS: i64 = 2;

/// A task's place and the records that it still has. However the task ends, others get them back.
pub(super) struct ClaimedRecords {
    pub(super) app: App,
    pub(super) destination: String,
    left: Vec<Claimed>,
    /// When what is left may be tried again.
    again_at: Timestamp,
}

impl ClaimedRecords {
    pub(super) fn new(app: &App, destination: &str) -> Self {
        app.outbox().begin(destination);
        let again_at = app.now().plus_seconds(AGAIN_SECONDS);
        Self { app: app.clone(), destination: destination.to_owned(), left: Vec::new(), again_at }
    }

    /// The next mail, unless the process is about to end.
    pub(super) fn next(&mut self) -> Option<Group> {
        if self.app.outbox().is_ending() {
            return None;
        }
        let group = self.app.outbox().next(&self.destination)?;
        self.left.extend(group.records.iter().cloned());
        Some(group)
    }

    /// Takes records off that are settled.
    pub(super) fn settled(&mut self, group: &Group) {
        let done = self.take_off(group);
        self.app.outbox().let_go(&done);
    }

    /// Gives a mail back that nothing was noted about, to be tried again in a moment.
    pub(super) async fn release_soon(&mut self, group: &Group) {
        let again_at = self.app.now().plus_seconds(AFTER_PANIC_SECONDS);
        let records = self.take_off(group);
        release(self.app.clone(), records, again_at).await;
    }

    fn take_off(&mut self, group: &Group) -> Vec<Claimed> {
        let is_of =
            |record: &Claimed| record.outbound == group.outbound && record.workspace == group.workspace;
        let (off, left) = std::mem::take(&mut self.left).into_iter().partition(is_of);
        self.left = left;
        off
    }

    /// Gives back what waits for the destination.
    pub(super) fn give_up(&mut self) {
        self.left.extend(self.app.outbox().take_waiting(Some(&self.destination)));
        self.again_at = self.app.now();
    }
}

impl Drop for ClaimedRecords {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.left);
        self.app.outbox().end(&self.destination);
        spawn_release(&self.app, left, self.again_at);
    }
}

/// Stands for a worker that starts tasks for what was claimed. When a panic ends it, what no task is at is given back at
/// once, so that other nodes can go on while it is restarted.
pub struct Dispatcher(App);

impl Dispatcher {
    /// To be kept for as long as the worker runs.
    pub fn new(app: &App) -> Self {
        Self(app.clone())
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // At the end of the process [`finish`] does it.
        if std::thread::panicking() {
            let untried = self.0.outbox().take_waiting(None);
            spawn_release(&self.0, untried, self.0.now());
        }
    }
}

fn spawn_release(app: &App, records: Vec<Claimed>, at: Timestamp) {
    // Without a runtime the process is ending, and others will find out by themselves.
    if !records.is_empty()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(release(app.clone(), records, at));
    }
}

/// Gives records back that were not tried. They are let go of here only when the store knows, so that they are not
/// claimed by this node in between.
async fn release(app: App, records: Vec<Claimed>, at: Timestamp) {
    for record in records {
        let _claiming = app.outbox().claiming().await;
        if let Err(error) = release_one(&app, record.clone(), at).await {
            tracing::warn!(%error, "queue claim not released; releasing it before the next renewal");
        }
        app.outbox().let_go(&[record]);
    }
}

async fn release_one(app: &App, record: Claimed, at: Timestamp) -> Result<()> {
    let (workspace, node) = (record.workspace.clone(), app.outbox().node().to_owned());
    Ok(app.db().write(&workspace, async move |tx| queue::release(tx, &record, &node, at).await).await?)
}

/// Releases claims of this node that no task holds.
async fn release_strays(app: &App) -> Result<()> {
    // Nothing is claimed or let go of meanwhile.
    let _claiming = app.outbox().claiming().await;
    let node = app.outbox().node().to_owned();
    let mut strays = app.db().system_read(async move |tx| queue::claimed_by(tx, &node).await).await?;
    strays.retain(|record| !app.outbox().holds(record));
    for record in strays {
        tracing::warn!(queue_id = record.outbound, "queue claim without a task; releasing it");
        release_one(app, record, app.now()).await?;
    }
    Ok(())
}

/// Says that this node is still at work on what it has taken on.
#[crate::boxed]
pub async fn renew(app: &App) -> Result<()> {
    release_strays(app).await?;
    if app.outbox().is_idle() {
        return Ok(());
    }
    let (node, until) = (app.outbox().node().to_owned(), app.now().plus_seconds(LEASE_SECONDS));
    Ok(app.db().system_write(async move |tx| queue::renew(tx, &node, until).await).await?)
}

/// Lets the tasks of this node end after the mail that each is at, and waits until they have: what another server has
/// taken should be noted before the process ends.
#[crate::boxed]
pub async fn finish(app: &App) {
    app.outbox().prepare_to_end();
    while !app.outbox().is_idle() {
        // Beside the worker there may be others who wait for the same.
        let _ = tokio::time::timeout(Duration::from_millis(50), app.outbox().task_ended()).await;
    }
    let untried = app.outbox().take_waiting(None);
    release(app.clone(), untried, app.now()).await;
}

/// Lets go of what nobody works on any more: records of a worker that failed, and those of a process of the past where
/// this process has the store alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    if app.db().is_sole_node() {
        let node = app.outbox().node().to_owned();
        app.db().system_write(async move |tx| queue::release_all_but(tx, &node).await).await?;
    }
    release_strays(app).await
}
