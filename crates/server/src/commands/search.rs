//! `reindex`: rebuilds the search index from the stored messages.

use std::process::ExitCode;

use operations::{App, storage};
use serde_json::json;

use super::progress::Progress;
use crate::{config::Config, failure::Result, open, output};

/// Rebuilds the index, also while the service runs.
pub async fn run(config: Config) -> Result<ExitCode> {
    let count = rebuild(&open::attach(&config).await?).await?;
    output::result(&json!({ "indexed": count }), || {
        format!("Indexed {}.", output::plural(count, "message"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Rebuilds the index and shows the progress.
pub(super) async fn rebuild(app: &App) -> Result<u64> {
    let emails: Result<(i64, i64), store::Error> =
        app.db().system_read(async |tx| store::search::coverage(tx).await).await;
    let total = u64::try_from(emails?.0).unwrap_or_default();
    let mut progress = Progress::new(total);
    let count = storage::rebuild_search(app, |done| progress.reach(done, done)).await?;
    app.db().index_texts().await?;
    progress.end();
    Ok(count)
}
