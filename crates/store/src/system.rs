//! Statements that cross workspaces: credentials, addresses, upkeep.
//!
//! Everything else goes through a [`Tx`](crate::Tx), which cannot leave its workspace.

mod credentials;
mod sweep;

use model::{EmailId, MailboxId, Plan, Timestamp, WorkspaceId, mailboxes::MailboxSettings};

pub use self::{
    credentials::{
        KeyAccess, MailboxNames, MembershipAccess, SessionAccess, expire_key, find_key, find_session,
        key_exists, memberships, session_exists, touch_key, valid_keys,
    },
    sweep::sweep,
};
use crate::{
    FromRow, Row, SystemTx, addresses::domain_of, error::Result, mailboxes::MailboxDomain, sql::row, turns,
};

/// Whether there is no account yet. If so, no other transaction can add one before this one ends.
pub async fn is_first_account(tx: &mut SystemTx) -> Result<bool> {
    if counts(tx).await?.0 > 0 {
        return Ok(false);
    }
    tx.lock_accounts().await?;
    Ok(counts(tx).await?.0 == 0)
}

/// How many workspaces and accounts there are, for the welcome page and operators.
pub async fn counts(tx: &mut SystemTx) -> Result<(i64, i64)> {
    let counts: Option<(i64, i64)> =
        tx.one("SELECT (SELECT count(*) FROM account), (SELECT count(*) FROM workspace)", &[]).await?;
    Ok(counts.unwrap_or_default())
}

/// Checks that the store answers.
pub async fn ping(tx: &mut SystemTx) -> Result<()> {
    tx.one::<(i64,)>("SELECT count(*) FROM schema_migration", &[]).await?;
    Ok(())
}

/// Writes an unchanged value, to test whether the store is writable.
pub async fn probe(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE schema_migration SET name = name WHERE version = 1", &[]).await?;
    Ok(())
}

/// Runs ANALYZE on PostgreSQL tables that have changed a lot, and returns how many. Autovacuum runs once a minute at
/// best; until then a store that fills up is queried with plans for empty tables, which scan all emails of a mailbox
/// to find one. SQLite has fixed statistics.
pub async fn refresh_statistics(tx: &mut SystemTx) -> Result<usize> {
    // One node at a time.
    const LOCK: i64 = 0x7374_6174;
    if !tx.is_postgres() {
        return Ok(0);
    }
    if !lock_for_transaction(tx, LOCK).await? {
        return Ok(0);
    }
    let changed: Vec<(String,)> = tx
        .all(
            "SELECT quote_ident(relname) FROM pg_stat_user_tables WHERE schemaname = current_schema()
             AND n_mod_since_analyze > 100 + n_live_tup / 2",
            &[],
        )
        .await?;
    for (table,) in &changed {
        tx.run(&format!("ANALYZE {table}"), &[]).await?;
    }
    Ok(changed.len())
}

/// Takes a lock of PostgreSQL until the end of the transaction, unless another transaction has it. Returns whether it did.
pub(crate) async fn lock_for_transaction(tx: &mut SystemTx, lock: i64) -> Result<bool> {
    let sql = "SELECT CAST(1 AS BIGINT) WHERE pg_try_advisory_xact_lock($1)";
    Ok(tx.one::<(i64,)>(sql, &[lock.into()]).await?.is_some())
}

/// Whether the role that we connect as bypasses row-level security, so that this second check is off.
pub async fn bypasses_row_security(tx: &mut SystemTx) -> Result<bool> {
    if !tx.is_postgres() {
        return Ok(false);
    }
    let sql = "SELECT count(*) FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)";
    let found: Option<(i64,)> = tx.one(sql, &[]).await?;
    Ok(found.is_some_and(|(roles,)| roles > 0))
}

/// The time by the store's own clock, where it has one.
pub async fn store_clock(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let Some(clock) = tx.own_clock() else { return Ok(None) };
    let found: Option<(Timestamp,)> = tx.one(&format!("SELECT {clock}"), &[]).await?;
    Ok(found.map(|(now,)| now))
}

/// The latest recorded time, to compare it with the clock.
pub async fn newest_time(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let sql =
        "SELECT max(at) FROM (SELECT max(at) AS at FROM audit UNION ALL SELECT max(created_at) FROM account
               UNION ALL SELECT max(applied_at) FROM schema_migration
               UNION ALL SELECT max(applied_at) FROM migration) AS times";
    let found: Option<(Option<Timestamp>,)> = tx.one(sql, &[]).await?;
    Ok(found.and_then(|(at,)| at))
}

/// The mailbox that an address is delivered to.
#[derive(Clone, Debug)]
pub struct Route {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its plan.
    pub plan: Plan,
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// Its settings.
    pub settings: MailboxSettings,
    /// The custom domain of its address.
    pub domain: Option<MailboxDomain>,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Bytes that the workspace stores.
    pub stored_bytes: i64,
}

impl FromRow for Route {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            workspace_id: row.next()?,
            plan: row.next()?,
            mailbox_id: row.next()?,
            settings: row.next_json()?,
            domain: MailboxDomain::from_row(row)?,
            disabled_at: row.next()?,
            stored_bytes: row.next()?,
        })
    }
}

/// Finds the mailbox of an address: in the workspace that has verified the domain, or else in the one that has the
/// address on a hosted domain.
pub async fn route(tx: &mut SystemTx, address: &str) -> Result<Option<Route>> {
    tx.one(
        "SELECT m.workspace_id, w.plan, m.id, m.settings, m.email_domain_id,
           (SELECT d.status FROM email_domain d WHERE d.workspace_id = m.workspace_id AND d.id = m.email_domain_id),
           m.disabled_at,
           CAST(coalesce((SELECT sum(c.value) FROM mailbox_counter c
             WHERE c.workspace_id = m.workspace_id AND c.name = 'storage_bytes'), 0) AS BIGINT)
           + coalesce((SELECT k.stored_bytes FROM memory_counter k WHERE k.workspace_id = m.workspace_id), 0)
         FROM mailbox m JOIN workspace w ON w.id = m.workspace_id
         WHERE m.email = $1 AND m.deleted_at IS NULL AND m.workspace_id = coalesce(
           (SELECT c.owner_workspace FROM domain_claim c WHERE c.domain = $2 AND c.proven_at IS NOT NULL),
           (SELECT a.owner_workspace FROM address a WHERE a.address = $1))",
        &[address.into(), domain_of(address).into()],
    )
    .await
}

/// The operator's workspace: the first one of the first operator account.
pub async fn operator_workspace(tx: &mut SystemTx) -> Result<Option<WorkspaceId>> {
    let found = tx
        .one(
            "SELECT m.workspace_id FROM account a JOIN member m ON m.account_id = a.id
             WHERE a.is_admin = 1 ORDER BY a.created_at, a.id, m.joined_at, m.workspace_id LIMIT 1",
            &[],
        )
        .await?;
    Ok(found.map(|(workspace,)| workspace))
}

/// Workspaces after the given one, by ascending id.
pub async fn workspaces_after(tx: &mut SystemTx, after: &str, most: i64) -> Result<Vec<WorkspaceId>> {
    let found: Vec<(WorkspaceId,)> = tx
        .all("SELECT id FROM workspace WHERE id > $1 ORDER BY id LIMIT $2", &[after.into(), most.into()])
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The next workspaces, after the given one, with messages that were not scanned yet.
pub async fn unscanned_workspaces(
    tx: &mut SystemTx,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let waiting =
        "SELECT workspace_id FROM email WHERE scan_status IS NULL AND outgoing = 0 AND arrived_at <= $1
        AND workspace_id > $2 ORDER BY workspace_id LIMIT 1";
    turns::next_workspaces(tx, waiting, now, after, most).await
}

/// Messages of a workspace that were not scanned yet, oldest first.
pub async fn unscanned(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    most: usize,
) -> Result<Vec<(MailboxId, EmailId)>> {
    tx.all(
        "SELECT mailbox_id, id FROM email WHERE workspace_id = $1 AND scan_status IS NULL AND outgoing = 0
         ORDER BY arrived_at LIMIT $2",
        &[workspace.into(), i64::try_from(most).unwrap_or(i64::MAX).into()],
    )
    .await
}

/// Deleted mailboxes whose grace period is over.
pub async fn expired_mailboxes(
    tx: &mut SystemTx,
    before: Timestamp,
) -> Result<Vec<(WorkspaceId, MailboxId)>> {
    tx.all(
        "SELECT workspace_id, id FROM mailbox WHERE deleted_at <= $1 LIMIT $2",
        &[before.into(), SystemTx::SWEEP.into()],
    )
    .await
}

/// A mailbox of any workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceMailbox {
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The workspace's plan.
    pub plan: Plan,
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// Its address.
    pub email: String,
    /// Whether the workspace owns the address: on a hosted domain, or on one that it has verified.
    pub is_proven: bool,
}

row!(WorkspaceMailbox { workspace_id, plan, mailbox_id, email, is_proven });

/// Finds mailboxes of any workspace by their address, id or UUID: at most two, the one with a verified address first.
/// Several workspaces may have the same address on an unverified domain.
pub async fn find_mailboxes(tx: &mut SystemTx, named: &str) -> Result<Vec<WorkspaceMailbox>> {
    tx.all(
        "SELECT m.workspace_id, w.plan, m.id, m.email, CASE WHEN m.email_domain_id IS NULL OR EXISTS (
             SELECT 1 FROM email_domain d WHERE d.workspace_id = m.workspace_id AND d.id = m.email_domain_id
             AND d.status = 'verified') THEN 1 ELSE 0 END
         FROM mailbox m JOIN workspace w ON w.id = m.workspace_id
         WHERE (m.email = $1 OR m.id = $1 OR m.public_id = $1) AND m.deleted_at IS NULL ORDER BY 5 DESC LIMIT 2",
        &[named.into()],
    )
    .await
}

/// The storage of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceStorage {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its plan, which may limit it.
    pub plan: Plan,
    /// Bytes of mail.
    pub bytes: i64,
    /// Stored objects.
    pub objects: i64,
}

row!(WorkspaceStorage { workspace_id, name, plan, bytes, objects });

/// The workspaces with the most storage.
pub async fn largest_workspaces(tx: &mut SystemTx, most: i64) -> Result<Vec<WorkspaceStorage>> {
    tx.all(
        "SELECT w.id, w.name, w.plan, CAST(coalesce(kept.bytes, 0) AS BIGINT), CAST(coalesce(kept.objects, 0) AS BIGINT)
         FROM workspace w LEFT JOIN (SELECT workspace_id,
             sum(CASE WHEN name = 'storage_bytes' THEN value ELSE 0 END) AS bytes,
             sum(CASE WHEN name = 'blob_count' THEN value ELSE 0 END) AS objects
           FROM mailbox_counter GROUP BY workspace_id) kept ON kept.workspace_id = w.id
         ORDER BY 4 DESC, w.id LIMIT $1",
        &[most.into()],
    )
    .await
}

/// Bytes and objects of all workspaces.
pub async fn total_storage(tx: &mut SystemTx) -> Result<(i64, i64)> {
    let found = tx
        .one(
            "SELECT CAST(coalesce(sum(CASE WHEN name = 'storage_bytes' THEN value ELSE 0 END), 0) AS BIGINT),
               CAST(coalesce(sum(CASE WHEN name = 'blob_count' THEN value ELSE 0 END), 0) AS BIGINT)
             FROM mailbox_counter",
            &[],
        )
        .await?;
    Ok(found.unwrap_or_default())
}
