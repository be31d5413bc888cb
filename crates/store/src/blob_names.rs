//! Since when the blobs of a bucket are given names that nothing else had before.
//!
//! Programs before migration 35 do not find such blobs. So names have suffixes from the moment on at which none of these
//! programs runs any more, and from that moment on none of them can be started on the store.

use model::Timestamp;

use crate::{SystemTx, error::Result, migrations};

/// The migration that programs must know to find such blobs.
pub const SCHEMA: i64 = 35;

/// A day after the upgrade, so that nodes from before schema 33, which do not say that they run, are gone as well; at
/// once in a store that was new then. A node that has ended without a word counts for a day too.
const MAY_BEGIN: &str = "(applied_at < $2 - 86400000000
      OR applied_at = (SELECT earliest.applied_at FROM schema_migration AS earliest WHERE earliest.version = 1))
    AND NOT EXISTS (SELECT 1 FROM node WHERE node.schema_version < $1)";

/// Whether blobs get new names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshNames {
    /// Since this time they do.
    Since(Timestamp),
    /// No program is in the way of that.
    MayBegin,
    /// Programs may run that would not find the blobs.
    NotYet,
}

/// Looks up whether blobs get new names.
pub async fn find(tx: &mut SystemTx, now: Timestamp) -> Result<FreshNames> {
    let sql = format!(
        "SELECT required_since, CAST(CASE WHEN {MAY_BEGIN} THEN 1 ELSE 0 END AS BIGINT)
         FROM migration WHERE version = $1"
    );
    let found: Option<(Option<Timestamp>, bool)> = tx.one(&sql, &[SCHEMA.into(), now.into()]).await?;
    Ok(match found {
        Some((Some(since), _)) => FreshNames::Since(since),
        Some((None, true)) => FreshNames::MayBegin,
        _ => FreshNames::NotYet,
    })
}

/// Lets blobs get new names from now on, if no older program is in the way.
pub async fn begin(tx: &mut SystemTx, now: Timestamp) -> Result<FreshNames> {
    migrations::require_if(tx, SCHEMA, now, MAY_BEGIN).await?;
    find(tx, now).await
}

/// The same for a store that a backup with such names is restored into, and which no program uses yet.
pub async fn begin_restored(tx: &mut SystemTx, now: Timestamp) -> Result<()> {
    migrations::require(tx, SCHEMA, now).await
}
