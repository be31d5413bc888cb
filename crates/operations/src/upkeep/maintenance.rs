//! Periodic work: deleting what has expired, and checking the stores.

use std::time::Duration;

use store::{Db, concurrent_indexes};

use crate::{
    account::affiliate,
    core::{app::App, error::Result},
    upkeep::storage,
};

/// How often PostgreSQL is asked whether its statistics are stale.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs one round of maintenance: what each node does, and what one does for all.
#[crate::boxed]
pub async fn run(app: &App) -> Result<()> {
    run_here(app).await?;
    run_for_all(app).await
}

/// What each node does: it stores when keys were used here, and checks that it reaches the blobs.
#[crate::boxed]
pub async fn run_here(app: &App) -> Result<()> {
    app.store_key_uses().await?;
    if let Err(error) = app.check_blobs().await {
        tracing::warn!(%error, "blob store probe failed; retrying");
    }
    Ok(())
}

/// What one node does for all. The statements are idempotent.
#[crate::boxed]
pub async fn run_for_all(app: &App) -> Result<()> {
    let now = app.now();
    loop {
        let deleted = app.db().system_write(async move |tx| store::system::sweep(tx, now).await).await?;
        if deleted == 0 {
            break;
        }
        tracing::debug!(deleted, "expired rows deleted");
    }
    storage::delete_expired_mailboxes(app).await?;
    affiliate::accrue(app).await
}

/// Builds the indexes that an upgrade left out, while PostgreSQL is in use.
#[crate::boxed]
pub async fn build_indexes(app: &App) -> Result<()> {
    let wanted = Db::concurrent_indexes();
    let missing =
        app.db().system_read(async move |tx| concurrent_indexes::missing(tx, &wanted).await).await?;
    for index in missing {
        tracing::info!(index = index.name, "building an index; until it is there some answers take longer");
        app.db().build_index(&index).await?;
        tracing::info!(index = index.name, "index built");
    }
    Ok(())
}

/// Keeps PostgreSQL's planner statistics current, as long as it is polled.
#[crate::boxed]
pub async fn keep_statistics(app: App) {
    while !app.db().is_sole_node() {
        tokio::time::sleep(STATISTICS_INTERVAL).await;
        let counted = app.db().system_write(async |tx| store::system::refresh_statistics(tx).await);
        match counted.await {
            Ok(0) => {}
            Ok(tables) => tracing::debug!(tables, "refreshed planner statistics"),
            Err(error) => tracing::warn!(%error, "refresh of planner statistics failed; retrying"),
        }
    }
}
