//! What a key or a session gives access to, found by the hash of its secret, before the workspace is known.

use model::{AccountId, ApiKeyId, Plan, Role, SessionId, Timestamp, WorkspaceId};

use crate::{
    FromRow, Param, Row, SystemTx,
    error::Result,
    sql::row,
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// What a valid API key gives access to.
#[derive(Clone, Debug)]
pub struct KeyAccess {
    /// The key.
    pub id: ApiKeyId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its role.
    pub role: Role,
    /// The workspace's plan.
    pub plan: Plan,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

row!(KeyAccess { id, workspace_id, role, plan, expires_at });

/// Finds a key by the hash of its secret.
pub async fn find_key(tx: &mut SystemTx, secret_hash: &[u8]) -> Result<Option<KeyAccess>> {
    tx.one(
        "SELECT k.id, k.workspace_id, k.role, w.plan, k.expires_at FROM api_key k JOIN workspace w ON w.id = k.workspace_id
         WHERE k.secret_hash = $1",
        &[secret_hash.into()],
    )
    .await
}

/// What a valid session gives access to.
#[derive(Clone, Debug)]
pub struct SessionAccess {
    /// The session.
    pub id: SessionId,
    /// The account.
    pub account_id: AccountId,
    /// Whether the account operates this server.
    pub is_admin: bool,
    /// The workspace chosen in the console.
    pub chosen_workspace: WorkspaceId,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The workspaces of the account.
    pub memberships: Vec<MembershipAccess>,
}

/// A workspace that a session can act in.
#[derive(Clone, Debug)]
pub struct MembershipAccess {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The account's role in it.
    pub role: Role,
    /// Its plan.
    pub plan: Plan,
}

impl FromRow for SessionAccess {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            account_id: row.next()?,
            is_admin: row.next()?,
            chosen_workspace: row.next()?,
            expires_at: row.next()?,
            memberships: Vec::new(),
        })
    }
}

row!(MembershipAccess { workspace_id, name, role, plan });

/// Finds a session by the hash of its secret.
pub async fn find_session(tx: &mut SystemTx, secret_hash: &[u8]) -> Result<Option<SessionAccess>> {
    let found: Option<SessionAccess> = tx
        .one(
            "SELECT s.id, s.account_id, a.is_admin, s.chosen_workspace, s.expires_at
             FROM session s JOIN account a ON a.id = s.account_id WHERE s.secret_hash = $1",
            &[secret_hash.into()],
        )
        .await?;
    let Some(mut session) = found else { return Ok(None) };
    session.memberships = memberships(tx, &session.account_id).await?;
    Ok(Some(session))
}

/// The workspaces of an account, oldest first.
pub async fn memberships(tx: &mut SystemTx, account: &AccountId) -> Result<Vec<MembershipAccess>> {
    tx.all(
        "SELECT w.id, w.name, m.role, w.plan FROM member m JOIN workspace w ON w.id = m.workspace_id
         WHERE m.account_id = $1 ORDER BY m.joined_at, w.id",
        &[account.into()],
    )
    .await
}

/// Whether a key is still valid.
pub async fn key_exists(tx: &mut SystemTx, workspace: &WorkspaceId, key: &ApiKeyId) -> Result<bool> {
    let sql = "SELECT count(*) FROM api_key WHERE workspace_id = $1 AND id = $2 AND length(secret_hash) = 32";
    let found: Option<(i64,)> = tx.one(sql, &[workspace.into(), key.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// The hash of a key's secret.
pub type KeyHash = [u8; 32];

/// Which of these hashes belong to valid keys.
pub async fn valid_keys(tx: &mut SystemTx, hashes: &[KeyHash]) -> Result<Vec<Vec<u8>>> {
    let sql = format!("SELECT secret_hash FROM api_key WHERE secret_hash IN ({})", list_placeholders(1));
    let mut living = Vec::with_capacity(hashes.len());
    for some in hashes.chunks(LIST_LENGTH) {
        let params: Vec<Param<'_>> = list_params(some.iter().map(KeyHash::as_slice), &[]).collect();
        let found: Vec<(Vec<u8>,)> = tx.all(&sql, &params).await?;
        living.extend(found.into_iter().map(|(hash,)| hash));
    }
    Ok(living)
}

/// Whether a session still exists.
pub async fn session_exists(tx: &mut SystemTx, session: &SessionId) -> Result<bool> {
    let found: Option<(i64,)> =
        tx.one("SELECT count(*) FROM session WHERE id = $1", &[session.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Marks keys as used.
pub async fn touch_key(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    key: &ApiKeyId,
    at: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE api_key SET last_used_at = $3 WHERE workspace_id = $1 AND id = $2",
        &[workspace.into(), key.into(), at.into()],
    )
    .await?;
    Ok(())
}

/// Expires a key for good: it stays in the list, and no secret has its new hash.
pub async fn expire_key(tx: &mut SystemTx, workspace: &WorkspaceId, key: &ApiKeyId) -> Result<()> {
    tx.run(
        "UPDATE api_key SET secret_hash = $3 WHERE workspace_id = $1 AND id = $2",
        &[workspace.into(), key.into(), key.as_str().as_bytes().into()],
    )
    .await?;
    Ok(())
}
