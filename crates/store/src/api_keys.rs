//! API keys. Only the hash of a key is stored.
//!
//! A key that is narrowed is stored under the hash of its hash. Programs that know no narrowed keys look for the hash
//! itself and find nothing, so that none of them lets such a key do everything. For the same reason a row without its
//! narrowing, as such a program would write it, is no key here: the two hashes tell what the row must be.

use model::{AccountId, ApiKeyId, WorkspaceId, api_keys::ApiKey};
use sha2::{Digest, Sha256};

use crate::{
    SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

columns!(ApiKey {
    id, name, role, scopes as optional_json, mailbox_ids as optional_json, hint, expires_at, last_used_at, created_at,
});

/// The SHA-256 hash of a key's secret.
pub type KeyHash = [u8; 32];

/// The hash that a narrowed key is stored under.
pub(crate) fn narrowed_hash(hash: &[u8]) -> KeyHash {
    Sha256::digest(hash).into()
}

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

/// Finds a key.
pub async fn find(tx: &mut Tx, id: &ApiKeyId) -> Result<Option<ApiKey>> {
    let sql = format!("SELECT {} FROM api_key WHERE workspace_id = $1 AND id = $2", ApiKey::COLUMNS);
    tx.one(&sql, &[id.into()]).await
}

/// The same, with the row locked until the transaction ends.
pub async fn find_for_change(tx: &mut Tx, id: &ApiKeyId) -> Result<Option<ApiKey>> {
    let (columns, lock) = (ApiKey::COLUMNS, tx.for_update());
    let sql = format!("SELECT {columns} FROM api_key WHERE workspace_id = $1 AND id = $2{lock}");
    tx.one(&sql, &[id.into()]).await
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

/// Adds a key, which an account made or the operator.
pub async fn insert(
    tx: &mut Tx,
    key: &ApiKey,
    secret_hash: &KeyHash,
    creator: Option<&AccountId>,
) -> Result<()> {
    let stored = if key.is_narrowed() { narrowed_hash(secret_hash) } else { *secret_hash };
    let insert = Insert::into("api_key").record(key).column("secret_hash", stored.as_slice());
    insert.column("created_by", creator).run(tx).await?;
    Ok(())
}

/// The account that made a key; `None` for the operator, and for keys from before that was recorded.
pub async fn creator(tx: &mut Tx, id: &ApiKeyId) -> Result<Option<AccountId>> {
    let sql = "SELECT created_by FROM api_key WHERE workspace_id = $1 AND id = $2";
    Ok(tx.one::<(Option<AccountId>,)>(sql, &[id.into()]).await?.and_then(|(creator,)| creator))
}

/// Stores the new name of a key.
pub async fn rename(tx: &mut Tx, id: &ApiKeyId, name: &str) -> Result<()> {
    let sql = "UPDATE api_key SET name = $3 WHERE workspace_id = $1 AND id = $2";
    tx.run(sql, &[id.into(), name.into()]).await?;
    Ok(())
}

/// Stores a key that may do less than before. The row must be locked with [`find_for_change`].
pub async fn narrow(tx: &mut Tx, before: &ApiKey, key: &ApiKey) -> Result<()> {
    update_row(tx, "api_key", &[("id", (&key.id).into())], key).await?;
    let sql = "SELECT secret_hash FROM api_key WHERE workspace_id = $1 AND id = $2";
    let found: Option<(Vec<u8>,)> = tx.one(sql, &[(&key.id).into()]).await?;
    let mut hash = found.map(|(hash,)| hash).unwrap_or_default();
    // One of another length is no hash: the key has expired for good.
    if key.is_narrowed() && !before.is_narrowed() && hash.len() == size_of::<KeyHash>() {
        hash = narrowed_hash(&hash).to_vec();
    }
    let sql =
        "UPDATE api_key SET secret_hash = $3, revision = revision + 1 WHERE workspace_id = $1 AND id = $2";
    tx.run(sql, &[(&key.id).into(), hash.as_slice().into()]).await?;
    Ok(())
}

/// Revokes a key. False when there is none.
pub async fn delete(tx: &mut Tx, id: &ApiKeyId) -> Result<bool> {
    let gone = tx.run("DELETE FROM api_key WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(gone == 1)
}

/// The workspace of a key, for operators.
pub async fn find_workspace(tx: &mut SystemTx, id: &ApiKeyId) -> Result<Option<WorkspaceId>> {
    let found: Option<(WorkspaceId,)> =
        tx.one("SELECT workspace_id FROM api_key WHERE id = $1", &[id.into()]).await?;
    Ok(found.map(|(workspace,)| workspace))
}
