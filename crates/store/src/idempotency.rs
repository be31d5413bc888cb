//! Answers kept for idempotency keys, written in the transaction of the effect they describe.

use model::Timestamp;

use crate::{
    Tx,
    error::Result,
    sql::{Columns, columns},
};

/// How long an answer is kept.
pub const KEPT_SECONDS: i64 = 24 * 3600;

/// A kept answer.
#[derive(Clone, Debug)]
pub struct KeptAnswer {
    /// The hash of the request that was answered.
    pub fingerprint: Vec<u8>,
    /// The HTTP status.
    pub status: i64,
    /// The body, sealed with the workspace's data key.
    pub answer: Vec<u8>,
    /// When it was given.
    pub created_at: Timestamp,
}

columns!(KeptAnswer { fingerprint, status, answer, created_at });

/// Finds the answer kept for a key, unless it is too old.
pub async fn find(tx: &mut Tx, key: &str, now: Timestamp) -> Result<Option<KeptAnswer>> {
    tx.one(
        &format!(
            "SELECT {} FROM idempotency
         WHERE workspace_id = $1 AND key = $2 AND created_at > $3",
            KeptAnswer::COLUMNS
        ),
        &[key.into(), now.plus_seconds(-KEPT_SECONDS).into()],
    )
    .await
}

/// Takes a key for the transaction, replacing an answer that is too old. False when the key has a fresh answer; on
/// PostgreSQL this waits for a transaction that holds the same key.
pub async fn claim(tx: &mut Tx, key: &str, fingerprint: &[u8], now: Timestamp) -> Result<bool> {
    let claimed = tx
        .run(
            "INSERT INTO idempotency (workspace_id, key, fingerprint, status, answer, created_at)
             VALUES ($1, $2, $3, 0, $4, $5)
             ON CONFLICT (workspace_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, created_at = excluded.created_at
             WHERE idempotency.created_at <= $6",
            &[
                key.into(),
                fingerprint.into(),
                [].as_slice().into(),
                now.into(),
                now.plus_seconds(-KEPT_SECONDS).into(),
            ],
        )
        .await?;
    Ok(claimed == 1)
}

/// Stores the answer for a key that this transaction has claimed.
pub async fn keep(tx: &mut Tx, key: &str, status: i64, answer: &[u8]) -> Result<()> {
    tx.run(
        "UPDATE idempotency SET status = $3, answer = $4 WHERE workspace_id = $1 AND key = $2",
        &[key.into(), status.into(), answer.into()],
    )
    .await?;
    Ok(())
}
