//! Confirmations of destructive tools: each allows one call, once.

use model::Timestamp;

use crate::{Tx, error::Result};

/// Stores what a token allows.
pub async fn insert(tx: &mut Tx, hash: &[u8], fingerprint: &[u8], expires_at: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO confirmation (workspace_id, token_hash, fingerprint, expires_at) VALUES ($1, $2, $3, $4)",
        &[hash.into(), fingerprint.into(), expires_at.into()],
    )
    .await?;
    Ok(())
}

/// Redeems a token for a call. False when it is unknown, expired, for another call, or used with another idempotency
/// key.
pub async fn redeem(
    tx: &mut Tx,
    hash: &[u8],
    fingerprint: &[u8],
    used_by: &str,
    now: Timestamp,
) -> Result<bool> {
    let redeemed = tx
        .run(
            "UPDATE confirmation SET used_by = $4
             WHERE workspace_id = $1 AND token_hash = $2 AND fingerprint = $3 AND expires_at > $5
             AND (used_by IS NULL OR used_by = $4)",
            &[hash.into(), fingerprint.into(), used_by.into(), now.into()],
        )
        .await?;
    Ok(redeemed == 1)
}
