//! Workspaces. Their own id is the workspace of the transaction.

use model::{Plan, Timestamp, WorkspaceId};

use crate::{SystemTx, Tx, error::Result, sql::row};

/// A workspace as it is stored, with what the same query can count.
#[derive(Clone, Debug)]
pub struct WorkspaceRecord {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The owner's stable address.
    pub owner_address: String,
    /// Its time zone.
    pub timezone: String,
    /// Its plan.
    pub plan: Plan,
    /// The data key, wrapped by the master key.
    pub data_key: Vec<u8>,
    /// The affiliate's workspace that referred it.
    pub referred_by: Option<WorkspaceId>,
    /// Mailboxes in it.
    pub mailbox_count: i64,
    /// API keys in it.
    pub api_key_count: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

row!(WorkspaceRecord {
    id,
    name,
    owner_address,
    timezone,
    plan,
    data_key,
    referred_by,
    mailbox_count,
    api_key_count,
    created_at,
    updated_at,
});

const SELECT: &str = "SELECT w.id, w.name, w.owner_address, w.timezone, w.plan, w.data_key, w.referred_by,
    (SELECT count(*) FROM mailbox m WHERE m.workspace_id = w.id AND m.deleted_at IS NULL),
    (SELECT count(*) FROM api_key k WHERE k.workspace_id = w.id), w.created_at, w.updated_at FROM workspace w";

/// Adds a workspace.
pub async fn insert(tx: &mut Tx, workspace: &WorkspaceRecord) -> Result<()> {
    tx.run(
        "INSERT INTO workspace (id, name, owner_address, timezone, plan, data_key, referred_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
        &[
            (&workspace.name).into(),
            (&workspace.owner_address).into(),
            (&workspace.timezone).into(),
            workspace.plan.into(),
            (&workspace.data_key).into(),
            workspace.referred_by.as_ref().into(),
            workspace.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Finds the transaction's workspace.
pub async fn find(tx: &mut Tx) -> Result<Option<WorkspaceRecord>> {
    tx.one(&format!("{SELECT} WHERE w.id = $1"), &[]).await
}

/// All workspaces, for operators, a page at a time.
pub async fn list_all(tx: &mut SystemTx, after: &WorkspaceId, limit: i64) -> Result<Vec<WorkspaceRecord>> {
    tx.all(&format!("{SELECT} WHERE w.id > $1 ORDER BY w.id LIMIT $2"), &[after.into(), limit.into()]).await
}

/// Changes name and time zone; `None` keeps the value. False when the workspace was deleted.
pub async fn update(tx: &mut Tx, name: Option<&str>, timezone: Option<&str>, now: Timestamp) -> Result<bool> {
    let changed = tx
        .run(
            "UPDATE workspace SET name = coalesce($2, name), timezone = coalesce($3, timezone), updated_at = $4
             WHERE id = $1",
            &[name.into(), timezone.into(), now.into()],
        )
        .await?;
    Ok(changed == 1)
}

/// Deletes the workspace with everything in it.
pub async fn delete(tx: &mut Tx) -> Result<()> {
    tx.run("DELETE FROM workspace WHERE id = $1", &[]).await?;
    Ok(())
}

/// Sets the plan. False when there is no such workspace.
pub async fn set_plan(tx: &mut Tx, plan: Plan, now: Timestamp) -> Result<bool> {
    let changed = tx
        .run("UPDATE workspace SET plan = $2, updated_at = $3 WHERE id = $1", &[plan.into(), now.into()])
        .await?;
    Ok(changed == 1)
}

/// Locks the workspace until the transaction ends, so that what counts against a quota cannot change meanwhile.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    let sql = format!("SELECT id FROM workspace WHERE id = $1{}", tx.for_update());
    tx.one::<(String,)>(&sql, &[]).await?;
    Ok(())
}
