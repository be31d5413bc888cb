//! Work that goes on beside the doors: asking external scanners, looking after block lists, stored mail and domains.

use std::time::Duration;

use operations::{App, domains, scanning, storage};

/// How long a worker waits for news before it looks by itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often stored mail is looked after, and when first.
const CARE: Duration = Duration::from_hours(24);
const FIRST_CARE: Duration = Duration::from_hours(1);
/// How often domains are looked at whose time has come.
const DOMAINS: Duration = Duration::from_secs(30);

/// Asks external scanners about mail that waits for them.
pub(super) async fn scan(app: App) {
    let mut wakes = app.db().listen();
    loop {
        match scanning::judge_waiting(&app).await {
            // There may be more.
            Ok(judged) if judged > 0 => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "mail waits for its scan");
                // News would not mend what is wrong, and may come without end.
                tokio::time::sleep(PATIENCE).await;
            }
        }
        let _ = tokio::time::timeout(PATIENCE, wakes.recv()).await;
    }
}

/// Reads block lists again when they change. Whoever takes mail in needs this, whatever else the process does.
pub(super) async fn watch_lists(app: App) {
    loop {
        tokio::time::sleep(PATIENCE).await;
        let lists = app.scanning().clone();
        let _ = tokio::task::spawn_blocking(move || lists.reload()).await;
    }
}

/// Removes blobs that nothing needs, and reads back everything that is stored, once a day.
pub(super) async fn care_for_storage(app: App) {
    tokio::time::sleep(super::irregular(&app, FIRST_CARE)).await;
    loop {
        match storage::sweep_blobs(&app).await {
            Ok(gone) => tracing::debug!(gone, "swept blobs that nothing needs"),
            Err(error) => tracing::warn!(%error, "blobs that nothing needs could not be swept"),
        }
        match storage::scrub(&app).await {
            Ok(found) => {
                tracing::info!(
                    checked = found.checked,
                    damaged = found.damaged.len(),
                    "read stored mail back"
                );
            }
            Err(error) => tracing::warn!(%error, "stored mail could not be read back"),
        }
        tokio::time::sleep(super::irregular(&app, CARE)).await;
    }
}

/// Looks custom domains up in DNS, each when its time has come.
pub(super) async fn check_domains(app: App) {
    loop {
        tokio::time::sleep(super::irregular(&app, DOMAINS)).await;
        match domains::check_due(&app).await {
            Ok(checked) => tracing::debug!(checked, "looked at custom domains"),
            Err(error) => tracing::warn!(%error, "custom domains could not be looked at"),
        }
    }
}
