//! Periodic work: deleting what has expired, and checking the stores.

use std::time::Duration;

use crate::{
    account::affiliate,
    core::{app::App, error::Result},
    upkeep::storage,
};

/// How often PostgreSQL is asked whether its statistics are stale.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs one round of maintenance. Every node may do it; the statements are idempotent.
#[crate::boxed]
pub async fn run(app: &App) -> Result<()> {
    app.store_key_uses().await?;
    if let Err(error) = app.check_blobs().await {
        tracing::warn!(%error, "blob store probe failed; retrying");
    }
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
