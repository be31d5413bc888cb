//! What a key or a session gives access to, found by the hash of its secret, before the workspace is known.

use std::collections::HashMap;

use model::{AccountId, ApiKeyId, MailboxId, Plan, Role, Scope, SessionId, Timestamp, WorkspaceId};

use crate::{
    FromRow, Param, Row, SystemTx,
    api_keys::{KeyHash, narrowed_hash},
    error::Result,
    sql::row,
    sql::{LIST_LENGTH, list_params, list_placeholders, long_list_params, long_list_placeholders},
};

/// What a valid API key gives access to.
#[derive(Clone, Debug)]
pub struct KeyAccess {
    /// The key.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its role.
    pub role: Role,
    /// The workspace's plan.
    pub plan: Plan,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// What it may do; `None` for everything.
    pub scopes: Option<Vec<Scope>>,
    /// The mailboxes that it sees; `None` for all.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Which state of the key this is.
    pub revision: i64,
    /// The hash that it is stored under.
    stored_hash: Vec<u8>,
    /// The names of these mailboxes.
    pub mailbox_names: Vec<MailboxNames>,
}

impl KeyAccess {
    /// A key of a workspace on Free that may do everything.
    pub const fn full(id: ApiKeyId, workspace_id: WorkspaceId) -> Self {
        Self {
            id,
            name: String::new(),
            workspace_id,
            role: Role::Admin,
            plan: Plan::Free,
            expires_at: None,
            scopes: None,
            mailbox_ids: None,
            revision: 0,
            stored_hash: Vec::new(),
            mailbox_names: Vec::new(),
        }
    }
}

impl FromRow for KeyAccess {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            name: row.next()?,
            workspace_id: row.next()?,
            role: row.next()?,
            plan: row.next()?,
            expires_at: row.next()?,
            scopes: row.next_optional_json()?,
            mailbox_ids: row.next_optional_json()?,
            revision: row.next()?,
            stored_hash: row.next()?,
            mailbox_names: Vec::new(),
        })
    }
}

/// The names of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxNames {
    /// Its alias id.
    pub id: MailboxId,
    /// Its UUID.
    pub public_id: String,
    /// Its address, normalised.
    pub email: String,
    /// Whether it is deleted; its address may belong to another one since.
    pub is_deleted: bool,
}

row!(MailboxNames { id, public_id, email, is_deleted });

/// Finds a key by the hash of its secret.
pub async fn find_key(tx: &mut SystemTx, secret_hash: &KeyHash) -> Result<Option<KeyAccess>> {
    let narrowed = narrowed_hash(secret_hash);
    let found: Option<KeyAccess> = tx
        .one(
            "SELECT k.id, k.name, k.workspace_id, k.role, w.plan, k.expires_at, k.scopes, k.mailbox_ids, k.revision, k.secret_hash
             FROM api_key k JOIN workspace w ON w.id = k.workspace_id WHERE k.secret_hash IN ($1, $2)",
            &[secret_hash.as_slice().into(), narrowed.as_slice().into()],
        )
        .await?;
    let Some(mut key) = found else { return Ok(None) };
    let is_narrowed = key.scopes.is_some() || key.mailbox_ids.is_some();
    if key.stored_hash != if is_narrowed { narrowed.as_slice() } else { secret_hash.as_slice() } {
        return Ok(None);
    }
    if let Some(ids) = &key.mailbox_ids {
        key.mailbox_names = mailbox_names(tx, &key.workspace_id, ids).await?;
    }
    Ok(Some(key))
}

/// The names of some mailboxes of a workspace.
async fn mailbox_names(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    ids: &[MailboxId],
) -> Result<Vec<MailboxNames>> {
    let sql = format!(
        "SELECT id, public_id, email, CAST(CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END AS BIGINT)
         FROM mailbox WHERE workspace_id = $1 AND id IN ({})",
        long_list_placeholders(2, ids.len())
    );
    let nothing = MailboxId::from("");
    let ids = long_list_params(ids, &nothing);
    tx.all(&sql, &std::iter::once(workspace.into()).chain(ids).collect::<Vec<Param<'_>>>()).await
}

/// What a valid session gives access to.
#[derive(Clone, Debug)]
pub struct SessionAccess {
    /// The session.
    pub id: SessionId,
    /// The account.
    pub account_id: AccountId,
    /// Its address.
    pub email: String,
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
            email: row.next()?,
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
            "SELECT s.id, s.account_id, a.email, a.is_admin, s.chosen_workspace, s.expires_at
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

/// Whether a key is still valid, in this state.
pub async fn key_exists(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    key: &ApiKeyId,
    revision: i64,
) -> Result<bool> {
    let sql = "SELECT count(*) FROM api_key
        WHERE workspace_id = $1 AND id = $2 AND length(secret_hash) = 32 AND revision = $3";
    let found: Option<(i64,)> = tx.one(sql, &[workspace.into(), key.into(), revision.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// The states of the valid keys among those with these hashes, by hash.
pub async fn valid_keys(tx: &mut SystemTx, hashes: &[KeyHash]) -> Result<HashMap<KeyHash, i64>> {
    let sql =
        format!("SELECT secret_hash, revision FROM api_key WHERE secret_hash IN ({})", list_placeholders(1));
    let stored: HashMap<KeyHash, KeyHash> =
        hashes.iter().flat_map(|hash| [(*hash, *hash), (narrowed_hash(hash), *hash)]).collect();
    let wanted: Vec<&KeyHash> = stored.keys().collect();
    let mut living = HashMap::with_capacity(hashes.len());
    for some in wanted.chunks(LIST_LENGTH) {
        let params: Vec<Param<'_>> = list_params(some.iter().map(|hash| hash.as_slice()), &[]).collect();
        let found: Vec<(Vec<u8>, i64)> = tx.all(&sql, &params).await?;
        let known = |hash: Vec<u8>| stored.get(hash.as_slice()).copied();
        living.extend(found.into_iter().filter_map(|(hash, revision)| Some((known(hash)?, revision))));
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
