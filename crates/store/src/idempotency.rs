//! Responses stored for idempotency keys, in the transaction of the effect they describe.

use model::Timestamp;

use crate::{
    Tx,
    error::Result,
    sql::{Columns, columns},
};

/// How long a response is stored.
pub const RETENTION_SECONDS: i64 = 24 * 3600;

/// A stored response.
#[derive(Clone, Debug)]
pub struct StoredAnswer {
    /// The hash of the request that was answered.
    pub fingerprint: Vec<u8>,
    /// The HTTP status.
    pub status: i64,
    /// The body, sealed with the workspace's data key.
    pub answer: Vec<u8>,
    /// When it was sent.
    pub created_at: Timestamp,
}

columns!(StoredAnswer { fingerprint, status, answer, created_at });

/// Finds the response stored for a key, unless it has expired.
pub async fn find(tx: &mut Tx, key: &str, now: Timestamp) -> Result<Option<StoredAnswer>> {
    tx.one(
        &format!(
            "SELECT {} FROM idempotency
         WHERE workspace_id = $1 AND key = $2 AND created_at > $3",
            StoredAnswer::COLUMNS
        ),
        &[key.into(), now.plus_seconds(-RETENTION_SECONDS).into()],
    )
    .await
}

/// Claims a key for the transaction, replacing an expired response. False when the key has a valid response; on
/// PostgreSQL this waits for a transaction that has claimed the same key.
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
                now.plus_seconds(-RETENTION_SECONDS).into(),
            ],
        )
        .await?;
    Ok(claimed == 1)
}

/// Stores the response for a key that this transaction has claimed.
pub async fn store(tx: &mut Tx, key: &str, status: i64, answer: &[u8]) -> Result<()> {
    tx.pipeline(
        "UPDATE idempotency SET status = $3, answer = $4 WHERE workspace_id = $1 AND key = $2",
        &[key.into(), status.into(), answer.into()],
    )
    .await
}
