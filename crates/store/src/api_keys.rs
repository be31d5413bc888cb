//! API keys. Only the hash of a key is stored.

use model::{ApiKeyId, api_keys::ApiKey};

use crate::{
    SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

columns!(ApiKey { id, name, role, hint, expires_at, last_used_at, created_at });

/// The keys of the workspace, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<ApiKey>> {
    tx.all(
        &format!(
            "SELECT {} FROM api_key
         WHERE workspace_id = $1 ORDER BY created_at, id",
            ApiKey::COLUMNS
        ),
        &[],
    )
    .await
}

/// How many keys count against the plan: those that still work.
pub async fn count(tx: &mut Tx, now: model::Timestamp) -> Result<i64> {
    let found = tx
        .one(
            "SELECT count(*) FROM api_key WHERE workspace_id = $1 AND (expires_at IS NULL OR expires_at > $2)",
            &[now.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a key.
pub async fn insert(tx: &mut Tx, key: &ApiKey, secret_hash: &[u8]) -> Result<()> {
    Insert::into("api_key").record(key).column("secret_hash", secret_hash).run(tx).await?;
    Ok(())
}

/// Revokes a key. False when there is none.
pub async fn delete(tx: &mut Tx, id: &ApiKeyId) -> Result<bool> {
    let gone = tx.run("DELETE FROM api_key WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(gone == 1)
}

/// Revokes a key in any workspace, for operators. False when there is none.
pub async fn delete_anywhere(tx: &mut SystemTx, id: &ApiKeyId) -> Result<bool> {
    let gone = tx.run("DELETE FROM api_key WHERE id = $1", &[id.into()]).await?;
    Ok(gone == 1)
}
