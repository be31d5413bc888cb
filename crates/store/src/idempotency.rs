//! Responses stored for idempotency keys, in the transaction of the effect they describe.

use model::Timestamp;

use crate::{
    Param, Tx,
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

/// The statement for one key, which can be made into one for many: it has parameters among its values only.
fn claim_statement() -> String {
    let retention = RETENTION_SECONDS * 1_000_000;
    format!(
        "INSERT INTO idempotency (workspace_id, key, fingerprint, status, answer, created_at)
         VALUES ($1, $2, $3, 0, $4, $5)
         ON CONFLICT (workspace_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, created_at = excluded.created_at
         WHERE idempotency.created_at <= excluded.created_at - {retention}"
    )
}

/// A key to be claimed.
#[derive(Clone, Copy, Debug)]
pub struct KeyClaim<'a> {
    /// The key.
    pub key: &'a str,
    /// The hash of the request.
    pub fingerprint: &'a [u8],
    /// When.
    pub now: Timestamp,
}

impl<'a> KeyClaim<'a> {
    fn params(&self) -> Vec<Param<'a>> {
        vec![self.key.into(), self.fingerprint.into(), [].as_slice().into(), self.now.into()]
    }
}

/// Claims a key for the transaction, replacing an expired response. False when the key has a valid response; on
/// PostgreSQL this waits for a transaction that has claimed the same key.
pub async fn claim(tx: &mut Tx, key: &str, fingerprint: &[u8], now: Timestamp) -> Result<bool> {
    claim_all(tx, vec![KeyClaim { key, fingerprint, now }]).await
}

/// The same for several keys. False when one of them has a valid response, or is named twice.
pub async fn claim_all(tx: &mut Tx, mut claims: Vec<KeyClaim<'_>>) -> Result<bool> {
    // In one order, so that two transactions cannot wait for each other.
    claims.sort_unstable_by_key(|claim| claim.key);
    if claims.windows(2).any(|pair| pair[0].key == pair[1].key) {
        return Ok(false);
    }
    if tx.is_postgres() && claims.len() > 1 {
        let rows = claims.iter().map(KeyClaim::params).collect();
        let claimed: Vec<(String,)> =
            tx.all_of_rows(&format!("{} RETURNING key", claim_statement()), rows).await?;
        return Ok(claimed.len() == claims.len());
    }
    let statement = claim_statement();
    for claim in &claims {
        if tx.run(&statement, &claim.params()).await? != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stores the response for a key that this transaction has claimed.
pub async fn store(tx: &mut Tx, key: &str, status: i64, answer: &[u8]) -> Result<()> {
    tx.pipeline(
        "UPDATE idempotency SET status = $3, answer = $4 WHERE workspace_id = $1 AND key = $2",
        &[key.into(), status.into(), answer.into()],
    )
    .await
}
