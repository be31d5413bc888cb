//! Statements that cross workspaces: credentials, addresses, upkeep.
//!
//! Everything else goes through a [`Tx`](crate::Tx), which cannot leave its workspace.

use model::{
    AccountId, ApiKeyId, EmailId, MailboxId, Plan, Role, SessionId, Timestamp, WorkspaceId,
    mailboxes::MailboxSettings,
};

use crate::{
    FromRow, Param, Row, SystemTx,
    addresses::domain_of,
    error::Result,
    mailboxes::MailboxDomain,
    password_guesses,
    sql::{LIST, list_places, listed},
    turns,
};

/// Subjects whose wrong passwords are counted; beyond that those with the fewest go.
const MAX_PASSWORD_GUESSES: i64 = 200_000;

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
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

impl FromRow for KeyAccess {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            workspace_id: row.next()?,
            role: row.next_named()?,
            plan: row.next_named()?,
            expires_at: row.next()?,
        })
    }
}

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
    /// When it ends.
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

impl FromRow for MembershipAccess {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            workspace_id: row.next()?,
            name: row.next()?,
            role: row.next_named()?,
            plan: row.next_named()?,
        })
    }
}

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

/// Whether a key can still be used.
pub async fn key_exists(tx: &mut SystemTx, workspace: &WorkspaceId, key: &ApiKeyId) -> Result<bool> {
    let sql = "SELECT count(*) FROM api_key WHERE workspace_id = $1 AND id = $2 AND length(secret_hash) = 32";
    let found: Option<(i64,)> = tx.one(sql, &[workspace.into(), key.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// The hash of a key's secret.
pub type KeyHash = [u8; 32];

/// Which of these hashes are those of keys that can be used.
pub async fn living_keys(tx: &mut SystemTx, hashes: &[KeyHash]) -> Result<Vec<Vec<u8>>> {
    let sql = format!("SELECT secret_hash FROM api_key WHERE secret_hash IN ({})", list_places(1));
    let mut living = Vec::with_capacity(hashes.len());
    for some in hashes.chunks(LIST) {
        let params: Vec<Param<'_>> = listed(some.iter().map(KeyHash::as_slice), &[]).collect();
        let found: Vec<(Vec<u8>,)> = tx.all(&sql, &params).await?;
        living.extend(found.into_iter().map(|(hash,)| hash));
    }
    Ok(living)
}

/// Whether a session is still there.
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

/// Ends a key for good: it stays in the list, and no secret has the hash that it is kept with from now on.
pub async fn end_key(tx: &mut SystemTx, workspace: &WorkspaceId, key: &ApiKeyId) -> Result<()> {
    tx.run(
        "UPDATE api_key SET secret_hash = $3 WHERE workspace_id = $1 AND id = $2",
        &[workspace.into(), key.into(), key.as_str().as_bytes().into()],
    )
    .await?;
    Ok(())
}

/// Ends keys that had their time, a bounded number, and tells how many. A hash that can be found has 32 bytes.
async fn end_expired_keys(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let due: Vec<(WorkspaceId, ApiKeyId)> = tx
        .all(
            "SELECT workspace_id, id FROM api_key WHERE expires_at <= $1 AND length(secret_hash) = 32 LIMIT $2",
            &[now.into(), SystemTx::SWEEP.into()],
        )
        .await?;
    for (workspace, key) in &due {
        end_key(tx, workspace, key).await?;
    }
    Ok(due.len() as u64)
}

/// Whether there is no account yet. Then no other transaction adds one before this one has ended.
pub async fn is_first_account(tx: &mut SystemTx) -> Result<bool> {
    if counts(tx).await?.0 > 0 {
        return Ok(false);
    }
    tx.lock_accounts().await?;
    Ok(counts(tx).await?.0 == 0)
}

/// How many workspaces and accounts there are, for the welcome and for operators.
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

/// Writes what is there already, to find out whether anything can be written.
pub async fn probe(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE schema_migration SET name = name WHERE version = 1", &[]).await?;
    Ok(())
}

/// Lets PostgreSQL count what has changed much since it last did, and tells how many tables it looked at. Its own upkeep
/// comes round once a minute at best; until then a store that fills up is read with plans for empty tables, which go
/// through all mail of a mailbox to find one. SQLite has figures that do not change.
pub async fn refresh_statistics(tx: &mut SystemTx) -> Result<usize> {
    // Nodes need not do the same at the same time.
    const LOCK: i64 = 0x7374_6174;
    if !tx.is_postgres() {
        return Ok(0);
    }
    let sql = "SELECT CAST(1 AS BIGINT) WHERE pg_try_advisory_xact_lock($1)";
    if tx.one::<(i64,)>(sql, &[LOCK.into()]).await?.is_none() {
        return Ok(0);
    }
    let changed: Vec<(String,)> = tx
        .all(
            "SELECT quote_ident(relname) FROM pg_stat_user_tables WHERE schemaname = current_schema()
             AND n_mod_since_analyze > 500 + n_live_tup / 2",
            &[],
        )
        .await?;
    for (table,) in &changed {
        tx.run(&format!("ANALYZE {table}"), &[]).await?;
    }
    Ok(changed.len())
}

/// Whether the role that we connect as passes row-level security unseen, so that the second wall does not stand.
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

/// The latest time at which anything was noted, for comparing it with the clock.
pub async fn newest_time(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let sql =
        "SELECT max(at) FROM (SELECT max(at) AS at FROM audit UNION ALL SELECT max(created_at) FROM account
               UNION ALL SELECT max(applied_at) FROM schema_migration) AS times";
    let found: Option<(Option<Timestamp>,)> = tx.one(sql, &[]).await?;
    Ok(found.and_then(|(at,)| at))
}

/// Ends and deletes what has had its time, a bounded number of rows of each kind, and tells how many went.
pub async fn sweep(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let most = SystemTx::SWEEP;
    let mut gone = end_expired_keys(tx, now).await? + sweep_tokens(tx, now).await?;
    for (sql, before) in [
        ("DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at <= $1 LIMIT $2)", now),
        (
            "DELETE FROM idempotency WHERE (workspace_id, key) IN
             (SELECT workspace_id, key FROM idempotency WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM audit WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM audit WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-90 * 24 * 3600),
        ),
        (
            "DELETE FROM event WHERE (workspace_id, sequence) IN
             (SELECT workspace_id, sequence FROM event WHERE occurred_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
        (
            "DELETE FROM webhook_delivery WHERE (workspace_id, webhook_id, id) IN
             (SELECT workspace_id, webhook_id, id FROM webhook_delivery
              WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-7 * 24 * 3600),
        ),
        (
            "DELETE FROM send_use WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM send_use WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-48 * 3600),
        ),
        (
            "DELETE FROM auto_reply WHERE (workspace_id, mailbox_id, sender) IN
             (SELECT workspace_id, mailbox_id, sender FROM auto_reply WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-7 * 24 * 3600),
        ),
        (
            "DELETE FROM destination WHERE name IN (SELECT name FROM destination WHERE resting_until <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM payment WHERE (network, asset, payer, nonce) IN
             (SELECT network, asset, payer, nonce FROM payment WHERE amount = 0 AND expires_at <= $1 LIMIT $2)",
            now.plus_seconds(-120),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), most.into()]).await?;
    }
    Ok(gone + sweep_passwords(tx, now, most).await? + sweep_triage(tx, now, most).await?)
}

/// The same for links of people who are not logged in, and for their wrong passwords.
async fn sweep_passwords(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<u64> {
    let mut gone = password_guesses::trim(tx, MAX_PASSWORD_GUESSES).await?;
    for sql in [
        "DELETE FROM password_reset WHERE token_hash IN
         (SELECT token_hash FROM password_reset WHERE expires_at <= $1 LIMIT $2)",
        "DELETE FROM sign_up WHERE token_hash IN
         (SELECT token_hash FROM sign_up WHERE expires_at <= $1 LIMIT $2)",
        "DELETE FROM password_guess WHERE subject IN
         (SELECT subject FROM password_guess WHERE expires_at <= $1 LIMIT $2)",
    ] {
        gone += tx.run(sql, &[now.into(), most.into()]).await?;
    }
    Ok(gone)
}

/// The same for what triagers leave behind.
async fn sweep_triage(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<u64> {
    let mut gone = 0;
    for (sql, before) in [
        // Without a model nobody works on these, and later nobody wants them any more.
        (
            "DELETE FROM triage_job WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM triage_job WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM triager_run WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM triager_run WHERE started_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
        (
            "UPDATE triager_run SET status = 'FAILED', summary = 'It was given up.', finished_at = $1
             WHERE (workspace_id, mailbox_id, id) IN (SELECT workspace_id, mailbox_id, id FROM triager_run
               WHERE started_at <= $1 AND status = 'RUNNING' LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM task WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM task WHERE status <> 'open' AND updated_at <= $1 LIMIT $2)",
            now.plus_seconds(-90 * 24 * 3600),
        ),
        (
            "DELETE FROM calendar_event WHERE (workspace_id, mailbox_id, uid) IN
             (SELECT workspace_id, mailbox_id, uid FROM calendar_event WHERE updated_at <= $1 LIMIT $2)",
            now.plus_seconds(-400 * 24 * 3600),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), most.into()]).await?;
    }
    Ok(gone)
}

/// The same for what agents and chats hold.
async fn sweep_tokens(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let mut gone = 0;
    for (sql, before) in [
        (
            "DELETE FROM confirmation WHERE (workspace_id, token_hash) IN
             (SELECT workspace_id, token_hash FROM confirmation WHERE expires_at <= $1 LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM telegram_code WHERE (workspace_id, mailbox_id) IN
             (SELECT workspace_id, mailbox_id FROM telegram_code WHERE expires_at <= $1 LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM telegram_notice WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM telegram_notice WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), SystemTx::SWEEP.into()]).await?;
    }
    Ok(gone)
}

/// Where an address leads.
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
            plan: row.next_named()?,
            mailbox_id: row.next()?,
            settings: row.next_json()?,
            domain: MailboxDomain::from_row(row)?,
            disabled_at: row.next()?,
            stored_bytes: row.next()?,
        })
    }
}

/// Finds the mailbox that an address leads to: that of the workspace that has proven the domain, or else of the one that has
/// the address on a hosted domain.
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

/// The workspace of the person who operates this server: the first of the first operator's account.
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

/// Workspaces after the given one, by rising id.
pub async fn workspaces_after(tx: &mut SystemTx, after: &str, most: i64) -> Result<Vec<WorkspaceId>> {
    let found: Vec<(WorkspaceId,)> = tx
        .all("SELECT id FROM workspace WHERE id > $1 ORDER BY id LIMIT $2", &[after.into(), most.into()])
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The next workspaces, behind the given one, with messages that no scanner has judged yet.
pub async fn unscanned_workspaces(
    tx: &mut SystemTx,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let waiting =
        "SELECT workspace_id FROM email WHERE scan_status IS NULL AND outgoing = 0 AND arrived_at <= $1
        AND workspace_id > $2 ORDER BY workspace_id LIMIT 1";
    turns::next(tx, waiting, now, after, most).await
}

/// Messages of a workspace that no scanner has judged yet, oldest first.
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

/// Mailboxes whose time of grace is over.
pub async fn doomed_mailboxes(tx: &mut SystemTx, before: Timestamp) -> Result<Vec<(WorkspaceId, MailboxId)>> {
    tx.all(
        "SELECT workspace_id, id FROM mailbox WHERE deleted_at <= $1 LIMIT $2",
        &[before.into(), SystemTx::SWEEP.into()],
    )
    .await
}

/// A mailbox of any workspace.
#[derive(Clone, Debug)]
pub struct FoundMailbox {
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The workspace's plan.
    pub plan: Plan,
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// Its address.
    pub email: String,
    /// Whether the address is certainly the workspace's: on a hosted domain, or on one that it has proven.
    pub is_proven: bool,
}

impl FromRow for FoundMailbox {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            workspace_id: row.next()?,
            plan: row.next_named()?,
            mailbox_id: row.next()?,
            email: row.next()?,
            is_proven: row.next()?,
        })
    }
}

/// Finds mailboxes of any workspace by their address, id or UUID: two at most, the one with a proven address first. Several
/// workspaces may have the same address on a domain that nobody has proven.
pub async fn find_mailboxes(tx: &mut SystemTx, named: &str) -> Result<Vec<FoundMailbox>> {
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

/// What a workspace keeps.
#[derive(Clone, Debug)]
pub struct StorageOf {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its plan, which may limit it.
    pub plan: Plan,
    /// Bytes of mail.
    pub bytes: i64,
    /// Things that mail is kept as.
    pub objects: i64,
}

impl FromRow for StorageOf {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            workspace_id: row.next()?,
            name: row.next()?,
            plan: row.next_named()?,
            bytes: row.next()?,
            objects: row.next()?,
        })
    }
}

/// The workspaces that keep most.
pub async fn largest_workspaces(tx: &mut SystemTx, most: i64) -> Result<Vec<StorageOf>> {
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

/// Bytes and things of all workspaces together.
pub async fn stored_in_all(tx: &mut SystemTx) -> Result<(i64, i64)> {
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
