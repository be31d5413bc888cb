//! Work that nobody asks for: ending what has had its time, and keeping an eye on the stores.

use std::time::Duration;

use crate::{
    account::affiliate,
    core::{app::App, error::Result},
    upkeep::storage,
};

/// How often PostgreSQL is asked whether its figures are out of date.
const STATISTICS: Duration = Duration::from_secs(2);

/// Does one round of upkeep. Every node may do it; the statements are safe to repeat.
#[crate::boxed]
pub async fn run(app: &App) -> Result<()> {
    app.store_key_uses().await?;
    if let Err(error) = app.check_blobs().await {
        tracing::warn!(%error, "the blob store does not work");
    }
    let now = app.now();
    loop {
        let gone = app.db().system_write(async move |tx| store::system::sweep(tx, now).await).await?;
        if gone == 0 {
            break;
        }
        tracing::debug!(gone, "swept old rows");
    }
    storage::end_mailboxes(app).await?;
    affiliate::accrue(app).await
}

/// Keeps what PostgreSQL knows about its tables close to what is in them, for as long as it is polled.
#[crate::boxed]
pub async fn keep_statistics(app: App) {
    while !app.db().is_sole_node() {
        tokio::time::sleep(STATISTICS).await;
        let counted = app.db().system_write(async |tx| store::system::refresh_statistics(tx).await);
        match counted.await {
            Ok(0) => {}
            Ok(tables) => tracing::debug!(tables, "counted anew what has changed much"),
            Err(error) => tracing::warn!(%error, "the tables could not be counted anew"),
        }
    }
}
