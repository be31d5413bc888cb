//! Reviews that nobody has decided about in time are rejected.

use model::{
    ReviewId, Timestamp, WorkspaceId,
    audit::{AuditDetails, changes},
    reviews::ReviewState,
};
use serde_json::json;
use store::{
    audit,
    reviews::{self, ReviewRecord},
};

use super::decide::{end_unsent, lock};
use crate::core::{
    app::App,
    audit::Author,
    error::{Error, ErrorKind, Result},
};

/// What the audit log calls it.
pub(crate) const EXPIRE_REVIEW: &str = "expireReview";

/// Reviews that are ended in one round.
const MAX_EXPIRED: i64 = 100;

/// Ends what has expired, and returns when the next review expires. Every node may call it at any time.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<Option<Timestamp>> {
    let now = app.now();
    loop {
        let due = app.db().system_read(async move |tx| reviews::expired(tx, now, MAX_EXPIRED).await).await?;
        let is_last = due.len() < usize::try_from(MAX_EXPIRED).unwrap_or_default();
        for (workspace, id) in due {
            if let Err(error) = expire(app, &workspace, id, now).await {
                tracing::warn!(%workspace, %error, "review not expired; retrying");
                return Ok(Some(now.plus_seconds(5)));
            }
        }
        if is_last {
            break;
        }
    }
    Ok(app.db().system_read(async |tx| reviews::next_expiry(tx).await).await?)
}

async fn expire(app: &App, workspace: &WorkspaceId, id: ReviewId, now: Timestamp) -> Result<()> {
    let (app_, key) = (app.clone(), app.data_key(workspace).await?);
    let ended = app.db().write(workspace, async move |tx| {
        let Some(found) = reviews::find(tx, &id).await? else { return Ok(()) };
        let before = lock(tx, &found).await?;
        if before.state != ReviewState::Pending || before.expires_at > now {
            return Ok(());
        }
        let review = ReviewRecord { state: ReviewState::Expired, decided_at: Some(now), ..before.clone() };
        end_unsent(tx, &app_, &key, &review).await?;
        let entry = app_.audit_entry(&Author::service("review expiry"), EXPIRE_REVIEW);
        let mut details = AuditDetails::default();
        details.about("review", &review.id).in_mailbox(&review.mailbox_id).changed(changes(
            &json!({ "state": before.state }),
            &json!({ "state": review.state }),
            &["state"],
        ));
        Ok::<_, Error>(audit::insert(tx, &[(&entry, &details)]).await?)
    });
    match ended.await {
        // Somebody decided in the last moment.
        Err(error) if error.kind() == ErrorKind::ReviewDecided => Ok(()),
        other => other,
    }
}
