//! The daily check of everything stored, which the nodes share: unused blobs are deleted, and contents are read back,
//! range after range of workspaces.

use std::time::Duration;

use model::WorkspaceId;
use store::{
    storage_rounds::{self, NextRange, WorkspaceRange},
    system,
};

use tokio::time::Instant;

use super::storage::{self, ScrubReport};
use crate::core::{app::App, error::Result, supervisor::isolate};

/// How often the claim of a range is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How often progress is recorded.
const RECORD_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait while other nodes check what is left of a round.
const SHARED_PAUSE: Duration = Duration::from_secs(30);
/// Workspaces that are listed at once.
const BATCH: i64 = 100;

/// Checks the next range of workspaces. Without one it returns how long to wait for more.
#[crate::boxed]
pub async fn check_next(app: &App) -> Result<Option<Duration>> {
    let (node, now) = (app.node().to_owned(), app.now());
    let next = app.db().system_write(async move |tx| storage_rounds::claim_next(tx, &node, now).await);
    let range = match next.await? {
        NextRange::Claimed(range) => range,
        NextRange::Shared => return Ok(Some(SHARED_PAUSE)),
        NextRange::RoundEnded(until_next) => {
            return Ok(Some(Duration::from_micros(until_next.unsigned_abs())));
        }
    };
    check_range(app, range).await?;
    Ok(None)
}

/// Checks a range, as long as this node has it.
async fn check_range(app: &App, mut range: WorkspaceRange) -> Result<()> {
    let mut recorded_at = Instant::now();
    loop {
        let after = range.checked_up_to.clone();
        let listed = app.db().system_read(async move |tx| system::workspaces_after(tx, &after, BATCH).await);
        let workspaces: Vec<WorkspaceId> =
            listed.await?.into_iter().take_while(|id| *id <= range.last).collect();
        if workspaces.is_empty() {
            break;
        }
        for workspace in workspaces {
            let renewing = renew_regularly(app, &range);
            tokio::select! {
                checked = isolate("storage", check_workspace(app, &workspace)) => if let Err(error) = checked {
                    tracing::error!(%workspace, %error, "stored mail not checked; trying again in the next round");
                },
                lost = renewing => return lost,
            }
            workspace.as_str().clone_into(&mut range.checked_up_to);
            if recorded_at.elapsed() >= RECORD_INTERVAL {
                if !renew(app, &range).await? {
                    return Ok(());
                }
                recorded_at = Instant::now();
            }
        }
    }
    let (node, done) = (app.node().to_owned(), range);
    Ok(app.db().system_write(async move |tx| storage_rounds::finish(tx, &done, &node).await).await?)
}

async fn check_workspace(app: &App, workspace: &WorkspaceId) -> Result<()> {
    let deleted = storage::sweep_workspace(app, workspace).await?;
    let mut found = ScrubReport::default();
    storage::scrub_workspace(app, workspace, &mut found).await?;
    let damaged = found.damaged.len();
    tracing::debug!(%workspace, checked = found.checked, damaged, deleted, "stored mail checked");
    Ok(())
}

/// Renews the claim of a range until it is lost.
async fn renew_regularly(app: &App, range: &WorkspaceRange) -> Result<()> {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        if !renew(app, range).await? {
            return Ok(());
        }
    }
}

async fn renew(app: &App, range: &WorkspaceRange) -> Result<bool> {
    let (node, now, range) = (app.node().to_owned(), app.now(), range.clone());
    // What is lost with the database's last half second is checked again.
    let renewed = async move |tx: &mut store::SystemTx| storage_rounds::renew(tx, &range, &node, now).await;
    Ok(app.db().asynchronous_system_write(renewed).await?)
}
