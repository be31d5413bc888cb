//! Custom email domains, which workspace owns them, and their DKIM keys.

use model::{
    DomainId, Timestamp, WorkspaceId,
    domains::{DomainStatus, RecordStatus},
};

use crate::{
    FromRow, Row, SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

/// The status of each DNS record, by the record's name and purpose.
pub type RecordStatuses = std::collections::BTreeMap<String, RecordStatus>;

/// A custom domain as it is stored.
#[derive(Clone, Debug)]
pub struct DomainRecord {
    /// Its id.
    pub id: DomainId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its name, normalised.
    pub domain: String,
    /// Its verification status.
    pub status: DomainStatus,
    /// The verification token that its owner publishes.
    pub token: String,
    /// The status of each DNS record.
    pub found: RecordStatuses,
    /// What was wrong at the last check.
    pub last_error: Option<String>,
    /// Since when it is verified.
    pub verified_at: Option<Timestamp>,
    /// Since when a verified domain has failed its checks.
    pub failing_since: Option<Timestamp>,
    /// When it is checked next.
    pub next_check_at: Timestamp,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When another workspace verified it.
    pub ended_at: Option<Timestamp>,
}

columns!(DomainRecord in email_domain {
    id, workspace_id, domain, status, token, found as json, last_error, verified_at, failing_since,
    next_check_at, created_at, updated_at, } and ended_at =
    "(SELECT c.ended_at FROM domain_claim c WHERE c.domain = email_domain.domain
      AND c.owner_workspace = email_domain.workspace_id)" => Row::next);

const COLUMNS: &str = DomainRecord::COLUMNS;

/// A key that mail is signed with.
#[derive(Clone)]
pub struct KeyRecord {
    /// The name that the public half is published under.
    pub selector: String,
    /// How it signs: `rsa` or `ed25519`.
    pub algorithm: String,
    /// The private half, sealed.
    pub private: Vec<u8>,
    /// The public half as a TXT record.
    pub public_record: String,
    /// Whether the public half was found in DNS.
    pub published: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

columns!(KeyRecord { selector, algorithm, private, public_record, published, created_at });

/// A key of a custom domain.
#[derive(Clone)]
pub struct DomainKey {
    /// The domain.
    pub domain_id: DomainId,
    /// The key.
    pub key: KeyRecord,
}

impl FromRow for DomainKey {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { domain_id: row.next()?, key: KeyRecord::from_row(row)? })
    }
}

/// The domains of the workspace, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<DomainRecord>> {
    tx.all(&format!("SELECT {COLUMNS} FROM email_domain WHERE workspace_id = $1 ORDER BY id"), &[]).await
}

/// The keys of all domains of the workspace, in the order they are shown.
pub async fn list_keys(tx: &mut Tx) -> Result<Vec<DomainKey>> {
    tx.all(
        "SELECT domain_id, selector, algorithm, private, public_record, published, created_at FROM domain_key
         WHERE workspace_id = $1 ORDER BY domain_id, created_at, algorithm DESC",
        &[],
    )
    .await
}

/// The keys of a domain.
pub async fn keys(tx: &mut Tx, id: &DomainId) -> Result<Vec<KeyRecord>> {
    tx.all(
        &format!(
            "SELECT {} FROM domain_key
         WHERE workspace_id = $1 AND domain_id = $2 ORDER BY created_at, algorithm DESC",
            KeyRecord::COLUMNS
        ),
        &[id.into()],
    )
    .await
}

/// The keys that sign mail from a domain of the workspace: those of a verified domain whose public halves are in DNS.
/// None when the domain is not the workspace's, or not verified.
pub async fn signing_keys(tx: &mut Tx, domain: &str) -> Result<Vec<KeyRecord>> {
    tx.all(
        "SELECT k.selector, k.algorithm, k.private, k.public_record, k.published, k.created_at
         FROM email_domain d JOIN domain_key k ON k.workspace_id = d.workspace_id AND k.domain_id = d.id
         WHERE d.workspace_id = $1 AND k.workspace_id = $1 AND d.domain = $2 AND d.status = 'verified' AND k.published = 1
         ORDER BY k.created_at, k.algorithm DESC",
        &[domain.into()],
    )
    .await
}

/// Finds a domain by its id.
pub async fn find(tx: &mut Tx, id: &DomainId) -> Result<Option<DomainRecord>> {
    tx.one(&format!("SELECT {COLUMNS} FROM email_domain WHERE workspace_id = $1 AND id = $2"), &[id.into()])
        .await
}

/// The same, with the row locked until the transaction ends.
pub async fn find_for_change(tx: &mut Tx, id: &DomainId) -> Result<Option<DomainRecord>> {
    let lock = tx.for_update();
    tx.one(
        &format!("SELECT {COLUMNS} FROM email_domain WHERE workspace_id = $1 AND id = $2{lock}"),
        &[id.into()],
    )
    .await
}

/// Finds a domain by its normalised name.
pub async fn find_by_name(tx: &mut Tx, domain: &str) -> Result<Option<DomainRecord>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM email_domain WHERE workspace_id = $1 AND domain = $2"),
        &[domain.into()],
    )
    .await
}

/// How many domains the workspace has.
pub async fn count(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT count(*) FROM email_domain WHERE workspace_id = $1", &[]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a domain that was claimed, with its keys.
pub async fn insert(tx: &mut Tx, domain: &DomainRecord, keys: &[KeyRecord]) -> Result<()> {
    Insert::into("email_domain").record(domain).run(tx).await?;
    insert_keys(tx, &domain.id, keys).await
}

/// Adds keys to a domain.
pub async fn insert_keys(tx: &mut Tx, id: &DomainId, keys: &[KeyRecord]) -> Result<()> {
    for key in keys {
        Insert::into("domain_key").column("domain_id", id).record(key).run(tx).await?;
    }
    Ok(())
}

/// Deletes a key of a domain.
pub async fn delete_key(tx: &mut Tx, id: &DomainId, selector: &str) -> Result<()> {
    tx.run(
        "DELETE FROM domain_key WHERE workspace_id = $1 AND domain_id = $2 AND selector = $3",
        &[id.into(), selector.into()],
    )
    .await?;
    Ok(())
}

/// Stores the outcome of a check.
pub async fn update(tx: &mut Tx, domain: &DomainRecord) -> Result<()> {
    update_row(tx, "email_domain", &[("id", (&domain.id).into())], domain).await?;
    Ok(())
}

/// Records whether the public half of a key is in DNS.
pub async fn set_published(tx: &mut Tx, id: &DomainId, selector: &str, published: bool) -> Result<()> {
    tx.run(
        "UPDATE domain_key SET published = $4 WHERE workspace_id = $1 AND domain_id = $2 AND selector = $3",
        &[id.into(), selector.into(), published.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a domain and its keys.
pub async fn delete(tx: &mut Tx, id: &DomainId) -> Result<()> {
    tx.run("DELETE FROM email_domain WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(())
}

/// Claims a domain for the workspace; several workspaces may. False when another workspace has verified it.
pub async fn claim(tx: &mut Tx, domain: &str) -> Result<bool> {
    let claimed = tx
        .run(
            "INSERT INTO domain_claim (owner_workspace, domain) SELECT $1, $2
             WHERE NOT EXISTS (SELECT 1 FROM domain_claim WHERE domain = $2 AND proven_at IS NOT NULL)",
            &[domain.into()],
        )
        .await?;
    Ok(claimed == 1)
}

/// Whether the workspace's claim to a domain is valid: it expires when another workspace verifies the domain.
///
/// With `lock`, all claims to the domain are locked until the transaction ends, always in the same order: workspaces
/// that verify a domain at the same time do so one after the other.
pub async fn is_claim_valid(tx: &mut Tx, domain: &str, lock: bool) -> Result<bool> {
    let (which, lock) = if lock {
        ("CAST($1 AS TEXT) IS NOT NULL", tx.for_update())
    } else {
        ("(owner_workspace = $1 OR proven_at IS NOT NULL)", "")
    };
    let sql = format!(
        "SELECT owner_workspace, proven_at, ended_at FROM domain_claim
         WHERE domain = $2 AND {which} ORDER BY owner_workspace{lock}"
    );
    let claims: Vec<(WorkspaceId, Option<Timestamp>, Option<Timestamp>)> =
        tx.all(&sql, &[domain.into()]).await?;
    let own = |owner: &WorkspaceId| owner == tx.workspace();
    let stands = claims.iter().any(|(owner, _, ended)| own(owner) && ended.is_none());
    Ok(stands && !claims.iter().any(|(owner, proven, _)| !own(owner) && proven.is_some()))
}

/// Records that the workspace has verified the domain; all other claims expire. The claim must be valid.
pub async fn prove(tx: &mut Tx, domain: &str, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE domain_claim SET proven_at = $3 WHERE owner_workspace = $1 AND domain = $2",
        &[domain.into(), now.into()],
    )
    .await?;
    tx.run(
        "UPDATE domain_claim SET ended_at = $3 WHERE owner_workspace <> $1 AND domain = $2 AND ended_at IS NULL",
        &[domain.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Revokes the verification: the claim is one of several again.
pub async fn unprove(tx: &mut Tx, domain: &str) -> Result<()> {
    tx.run(
        "UPDATE domain_claim SET proven_at = NULL WHERE owner_workspace = $1 AND domain = $2",
        &[domain.into()],
    )
    .await?;
    Ok(())
}

/// Expires the workspace's claim: another one has verified the domain.
pub async fn expire_claim(tx: &mut Tx, domain: &str, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE domain_claim SET proven_at = NULL, ended_at = coalesce(ended_at, $3)
         WHERE owner_workspace = $1 AND domain = $2",
        &[domain.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a claim in any state.
pub async fn delete_claim(tx: &mut Tx, domain: &str) -> Result<()> {
    tx.run("DELETE FROM domain_claim WHERE owner_workspace = $1 AND domain = $2", &[domain.into()]).await?;
    Ok(())
}

/// The workspace that has verified a domain.
pub async fn owner(tx: &mut SystemTx, domain: &str) -> Result<Option<WorkspaceId>> {
    let found: Option<(WorkspaceId,)> = tx
        .one(
            "SELECT owner_workspace FROM domain_claim WHERE domain = $1 AND proven_at IS NOT NULL",
            &[domain.into()],
        )
        .await?;
    Ok(found.map(|(owner,)| owner))
}

/// Domains whose check is due, the most overdue first.
pub async fn due(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<Vec<(WorkspaceId, DomainId)>> {
    tx.all(
        "SELECT workspace_id, id FROM email_domain WHERE next_check_at <= $1 ORDER BY next_check_at LIMIT $2",
        &[now.into(), most.into()],
    )
    .await
}

/// Claims a due check for one node, by deferring the next one. False when another node was faster.
pub async fn claim_check(tx: &mut Tx, id: &DomainId, now: Timestamp, until: Timestamp) -> Result<bool> {
    let taken = tx
        .run(
            "UPDATE email_domain SET next_check_at = $4 WHERE workspace_id = $1 AND id = $2 AND next_check_at <= $3",
            &[id.into(), now.into(), until.into()],
        )
        .await?;
    Ok(taken == 1)
}
