//! Sign-ups that are pending until the link in their email is opened.

use model::Timestamp;

use crate::{SystemTx, error::Result};

/// Adds a sign-up.
pub async fn insert(
    tx: &mut SystemTx,
    token_hash: &[u8],
    email: &str,
    details: &str,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO sign_up (token_hash, email, details, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
        &[token_hash.into(), email.into(), details.into(), now.into(), expires_at.into()],
    )
    .await?;
    Ok(())
}

/// How many sign-ups of an address are pending.
pub async fn count(tx: &mut SystemTx, email: &str, now: Timestamp) -> Result<i64> {
    let found = tx
        .one("SELECT count(*) FROM sign_up WHERE email = $1 AND expires_at > $2", &[email.into(), now.into()])
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// The address and the details of a sign-up, if its link is still valid.
pub async fn find(tx: &mut SystemTx, token_hash: &[u8], now: Timestamp) -> Result<Option<(String, String)>> {
    tx.one(
        "SELECT email, details FROM sign_up WHERE token_hash = $1 AND expires_at > $2",
        &[token_hash.into(), now.into()],
    )
    .await
}

/// Deletes a sign-up. False when it was deleted already.
pub async fn delete(tx: &mut SystemTx, token_hash: &[u8]) -> Result<bool> {
    let gone = tx.run("DELETE FROM sign_up WHERE token_hash = $1", &[token_hash.into()]).await?;
    Ok(gone == 1)
}
