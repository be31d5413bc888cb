//! Mailboxes.

mod counters;

use model::{
    DomainId, FolderId, MailboxId, Timestamp, WorkspaceId, domains::DomainStatus, mailboxes::MailboxSettings,
};

pub(crate) use self::counters::add_now;
pub use self::counters::{add_to_counter, counter, counters, storage, stored_bytes, unread_by_category};
use crate::{
    FromRow, Param, Row, Select, Tx,
    error::{Error, Result},
    sql::{Columns, long_list_params, long_list_placeholders, row},
    suppressions,
};

/// A mailbox as it is stored.
#[derive(Clone, Debug)]
pub struct MailboxRecord {
    /// Its alias id.
    pub id: MailboxId,
    /// Its UUID.
    pub public_id: String,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its address, normalised.
    pub email: String,
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: MailboxSettings,
    /// Whether sent mail can trigger a triager.
    pub triages_sent: bool,
    /// The custom domain of its address.
    pub domain: Option<MailboxDomain>,
    /// When it was disabled, by a user or by the loss of its domain.
    pub disabled_at: Option<Timestamp>,
    /// Why it was disabled.
    pub disabled_reason: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The custom domain of a mailbox's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxDomain {
    /// Its id.
    pub id: DomainId,
    /// Its verification status; `None` when the domain is no longer the workspace's.
    pub status: Option<DomainStatus>,
}

impl MailboxDomain {
    /// Reads its two columns.
    pub(crate) fn from_row(row: &mut Row<'_>) -> Result<Option<Self>> {
        let (id, status): (Option<DomainId>, Option<String>) = (row.next()?, row.next()?);
        let status = status
            .map(|status| status.parse().map_err(|error: String| Error::Corrupt(error.into())))
            .transpose()?;
        Ok(id.map(|id| Self { id, status }))
    }
}

/// The reason a mailbox is disabled whose domain another workspace has verified.
const DOMAIN_CLAIMED: &str = "domain_claimed";

impl FromRow for MailboxRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let mut record = Self {
            id: row.next()?,
            public_id: row.next()?,
            workspace_id: row.next()?,
            email: row.next()?,
            name: row.next()?,
            settings: row.next_json()?,
            triages_sent: row.next()?,
            domain: MailboxDomain::from_row(row)?,
            disabled_at: row.next()?,
            disabled_reason: row.next()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        };
        let claim_ended: Option<Timestamp> = row.next()?;
        if let (None, Some(ended)) = (record.disabled_at, claim_ended) {
            (record.disabled_at, record.disabled_reason) = (Some(ended), Some(DOMAIN_CLAIMED.to_owned()));
        }
        Ok(record)
    }
}

const COLUMNS: &str = "id, public_id, workspace_id, email, name, settings, triages_sent, email_domain_id,
    (SELECT d.status FROM email_domain d WHERE d.workspace_id = mailbox.workspace_id AND d.id = mailbox.email_domain_id),
    disabled_at, disabled_reason, created_at, updated_at,
    (SELECT c.ended_at FROM email_domain d JOIN domain_claim c ON c.domain = d.domain AND c.owner_workspace = d.workspace_id
        WHERE d.workspace_id = mailbox.workspace_id AND d.id = mailbox.email_domain_id)";

/// The mailboxes of the workspace, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<MailboxRecord>> {
    tx.all(
        &format!("SELECT {COLUMNS} FROM mailbox WHERE workspace_id = $1 AND deleted_at IS NULL ORDER BY id"),
        &[],
    )
    .await
}

/// Those with some ids, oldest first.
pub async fn list_some(tx: &mut Tx, ids: &[MailboxId]) -> Result<Vec<MailboxRecord>> {
    let (list, nothing) = (long_list_placeholders(2, ids.len()), MailboxId::from(""));
    let sql = format!(
        "SELECT {COLUMNS} FROM mailbox WHERE workspace_id = $1 AND id IN ({list}) AND deleted_at IS NULL ORDER BY id"
    );
    tx.all(&sql, &long_list_params(ids, &nothing).collect::<Vec<_>>()).await
}

/// Finds a mailbox by the name a client used: its UUID, its alias id, or its normalised address. The first one that a
/// transaction finds is the one that its audit entry names.
pub async fn find(tx: &mut Tx, named: &MailboxName) -> Result<Option<MailboxRecord>> {
    let column = named.column();
    let found: Option<MailboxRecord> = tx
        .one(
            &format!(
                "SELECT {COLUMNS} FROM mailbox WHERE workspace_id = $1 AND {column} = $2 AND deleted_at IS NULL"
            ),
            &[named.value().into()],
        )
        .await?;
    if let Some(mailbox) = &found {
        tx.audit().in_mailbox(&mailbox.id);
    }
    Ok(found)
}

/// The same, when only its id is needed.
pub async fn find_id(tx: &mut Tx, named: &MailboxName) -> Result<Option<MailboxId>> {
    let column = named.column();
    let found: Option<(MailboxId,)> = tx
        .one(
            &format!(
                "SELECT id FROM mailbox WHERE workspace_id = $1 AND {column} = $2 AND deleted_at IS NULL"
            ),
            &[named.value().into()],
        )
        .await?;
    if let Some((id,)) = &found {
        tx.audit().in_mailbox(id);
    }
    Ok(found.map(|(id,)| id))
}

/// The ways to name a mailbox in a path.
#[derive(Clone, Debug)]
pub enum MailboxName {
    /// By its UUID.
    PublicId(String),
    /// By its alias id.
    Id(MailboxId),
    /// By its normalised address.
    Email(String),
}

impl MailboxName {
    pub(crate) const fn column(&self) -> &'static str {
        match self {
            Self::PublicId(_) => "public_id",
            Self::Id(_) => "id",
            Self::Email(_) => "email",
        }
    }
    pub(crate) fn value(&self) -> &str {
        match self {
            Self::PublicId(value) | Self::Email(value) => value,
            Self::Id(id) => id.as_str(),
        }
    }
}

/// A mailbox in a statement, whose value is `$2`: by its id, or by the name that a caller used. With a name a statement
/// does not have to wait for the look-up.
#[derive(Clone, Copy, Debug)]
pub enum MailboxKey<'a> {
    /// By its id.
    Id(&'a MailboxId),
    /// By a name.
    Name(&'a MailboxName),
}

impl<'a> From<&'a MailboxId> for MailboxKey<'a> {
    fn from(id: &'a MailboxId) -> Self {
        Self::Id(id)
    }
}

impl<'a> From<&'a MailboxName> for MailboxKey<'a> {
    fn from(name: &'a MailboxName) -> Self {
        Self::Name(name)
    }
}

impl<'a> MailboxKey<'a> {
    /// The id as an expression; NULL if there is no such mailbox.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Id(_) => "$2",
            Self::Name(MailboxName::PublicId(_)) => {
                "(SELECT mailbox.id FROM mailbox WHERE mailbox.workspace_id = $1 AND mailbox.public_id = $2
                  AND mailbox.deleted_at IS NULL)"
            }
            Self::Name(MailboxName::Id(_)) => {
                "(SELECT mailbox.id FROM mailbox WHERE mailbox.workspace_id = $1 AND mailbox.id = $2
                  AND mailbox.deleted_at IS NULL)"
            }
            Self::Name(MailboxName::Email(_)) => {
                "(SELECT mailbox.id FROM mailbox WHERE mailbox.workspace_id = $1 AND mailbox.email = $2
                  AND mailbox.deleted_at IS NULL)"
            }
        }
    }

    /// Its value.
    pub(crate) fn param(self) -> Param<'a> {
        match self {
            Self::Id(id) => id.into(),
            Self::Name(name) => name.value().into(),
        }
    }
}

/// A mailbox with a figure of it.
#[derive(Clone, Debug)]
pub struct MailboxFigure {
    /// The mailbox.
    pub id: MailboxId,
    /// Whether it has the folder or the email that was asked for, if any was.
    pub has_requested: bool,
    /// The figure.
    pub figure: i64,
}

row!(MailboxFigure { id, has_requested, figure });

/// Selects a mailbox by its name, with two values that are built from its id, `mailbox.id`: whether it has what was
/// requested, and a figure.
pub(crate) fn select_figure<'a>(
    named: &'a MailboxName,
    values: impl FnOnce(&mut Vec<Param<'a>>) -> (String, String),
) -> Select<'a, MailboxFigure> {
    let mut params: Vec<Param<'a>> = vec![named.value().into()];
    let ((has_requested, figure), column) = (values(&mut params), named.column());
    let sql = format!(
        "SELECT mailbox.id, ({has_requested}), ({figure}) FROM mailbox
         WHERE mailbox.workspace_id = $1 AND mailbox.{column} = $2 AND mailbox.deleted_at IS NULL"
    );
    Select::new(sql, params)
}

/// Whether the mailbox has a folder, as an expression.
pub(crate) fn has_folder<'a>(folder: Option<&'a FolderId>, params: &mut Vec<Param<'a>>) -> String {
    let Some(folder) = folder else { return "1".to_owned() };
    params.push(folder.into());
    let number = params.len() + 1;
    format!(
        "SELECT count(*) FROM folder WHERE folder.workspace_id = $1 AND folder.mailbox_id = mailbox.id
         AND folder.id = ${number}"
    )
}

/// Selects a mailbox by its name, and whether it has a folder.
pub fn select_with_folder<'a>(
    named: &'a MailboxName,
    folder: Option<&'a FolderId>,
) -> Select<'a, MailboxFigure> {
    select_figure(named, |params| (has_folder(folder, params), "0".to_owned()))
}

/// The rows of a table that belong to a mailbox, in an order; `None` if there is no such mailbox. In one statement,
/// since each may be a network round trip.
pub(crate) async fn list_rows<T: Columns>(
    tx: &mut Tx,
    named: &MailboxName,
    table: &str,
    order: &str,
) -> Result<Option<Vec<T>>> {
    let sql = rows_statement::<T>(named, table, order);
    let rows: Vec<MailboxRow<T>> = tx.all(&sql, &[named.value().into()]).await?;
    Ok((!rows.is_empty()).then(|| rows.into_iter().filter_map(|row| row.0).collect()))
}

/// The statement; whether there is no row comes before its columns.
pub(crate) fn rows_statement<T: Columns>(named: &MailboxName, table: &str, order: &str) -> String {
    let (columns, column) = (T::COLUMNS, named.column());
    format!(
        "SELECT {table}.id IS NULL, {columns} FROM mailbox
         LEFT JOIN {table} ON {table}.workspace_id = $1 AND {table}.mailbox_id = mailbox.id
         WHERE mailbox.workspace_id = $1 AND mailbox.{column} = $2 AND mailbox.deleted_at IS NULL ORDER BY {order}"
    )
}

/// A row that belongs to a mailbox, if it has one.
struct MailboxRow<T>(Option<T>);

impl<T: FromRow> FromRow for MailboxRow<T> {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let is_missing: bool = row.next()?;
        Ok(Self(if is_missing { None } else { Some(T::from_row(row)?) }))
    }
}

/// Locks a mailbox until the transaction ends, so that its counters cannot change meanwhile.
pub async fn lock(tx: &mut Tx, id: &MailboxId) -> Result<()> {
    // With a single writer there is nothing to lock.
    if tx.for_update().is_empty() {
        return Ok(());
    }
    let sql = format!("SELECT id FROM mailbox WHERE workspace_id = $1 AND id = $2{}", tx.for_update());
    tx.one::<(String,)>(&sql, &[id.into()]).await?;
    Ok(())
}

/// Locks mailboxes in their order and reads them. Only on PostgreSQL.
pub(crate) fn lock_all_query() -> String {
    format!(
        "SELECT {COLUMNS} FROM mailbox WHERE workspace_id = $1 AND id = ANY (CAST($2 AS TEXT[])) AND deleted_at IS NULL
         ORDER BY id COLLATE \"C\" FOR NO KEY UPDATE"
    )
}

/// Locks mailboxes in their order, and returns those that are not deleted. Only on PostgreSQL.
pub(crate) fn lock_all<'a>(ids: &'a [Param<'a>]) -> Select<'a, (MailboxId,)> {
    let sql = "SELECT id FROM mailbox WHERE workspace_id = $1 AND id = ANY (CAST($2 AS TEXT[])) AND deleted_at IS NULL
         ORDER BY id COLLATE \"C\" FOR NO KEY UPDATE";
    Select::new(sql.to_owned(), vec![Param::List(ids)])
}

/// Locks a mailbox until the transaction ends, and returns whether it is there and not deleted.
pub async fn lock_present(tx: &mut Tx, id: &MailboxId) -> Result<bool> {
    let sql = format!(
        "SELECT id FROM mailbox WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL{}",
        tx.for_update()
    );
    Ok(tx.one::<(String,)>(&sql, &[id.into()]).await?.is_some())
}

/// A mailbox with the bytes that its workspace stores.
pub struct MailboxWithStorage {
    /// The mailbox.
    pub mailbox: MailboxRecord,
    /// What the workspace stores.
    pub stored_bytes: i64,
    /// Whether it or its workspace has a send policy.
    pub has_policies: bool,
}

impl FromRow for MailboxWithStorage {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            mailbox: MailboxRecord::from_row(row)?,
            stored_bytes: row.next()?,
            has_policies: row.next()?,
        })
    }
}

/// Finds a mailbox that is about to send a message: in one statement, since each may be a network round trip.
pub async fn find_with_storage(tx: &mut Tx, named: &MailboxName) -> Result<Option<MailboxWithStorage>> {
    let column = named.column();
    tx.one(
        &format!(
            "SELECT {COLUMNS},
               CAST(coalesce((SELECT sum(value) FROM mailbox_counter
                 WHERE workspace_id = $1 AND name = 'storage_bytes'), 0) AS BIGINT)
               + coalesce((SELECT stored_bytes FROM memory_counter WHERE workspace_id = $1), 0),
               EXISTS (SELECT 1 FROM send_policy WHERE send_policy.workspace_id = $1
                 AND send_policy.mailbox_id IN ('', mailbox.id))
             FROM mailbox WHERE workspace_id = $1 AND {column} = $2 AND deleted_at IS NULL"
        ),
        &[named.value().into()],
    )
    .await
}

/// How many mailboxes the workspace has.
pub async fn count(tx: &mut Tx) -> Result<i64> {
    let found =
        tx.one("SELECT count(*) FROM mailbox WHERE workspace_id = $1 AND deleted_at IS NULL", &[]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// How many mailboxes have an address on a custom domain.
pub async fn count_on_domain(tx: &mut Tx, domain: &DomainId) -> Result<i64> {
    let found = tx
        .one(
            "SELECT count(*) FROM mailbox WHERE workspace_id = $1 AND email_domain_id = $2 AND deleted_at IS NULL",
            &[domain.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a mailbox. Its address must be free, and claimed on a hosted domain.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxRecord) -> Result<()> {
    tx.run(
        "INSERT INTO mailbox (workspace_id, id, public_id, email, name, settings, email_domain_id, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
        &[
            (&mailbox.id).into(),
            (&mailbox.public_id).into(),
            (&mailbox.email).into(),
            (&mailbox.name).into(),
            Param::Json(&mailbox.settings),
            mailbox.domain.as_ref().map(|domain| &domain.id).into(),
            mailbox.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Stores a mailbox's name and settings.
pub async fn update(tx: &mut Tx, mailbox: &MailboxRecord) -> Result<()> {
    tx.run(
        "UPDATE mailbox SET name = $3, settings = $4, updated_at = $5 WHERE workspace_id = $1 AND id = $2",
        &[
            (&mailbox.id).into(),
            (&mailbox.name).into(),
            Param::Json(&mailbox.settings),
            mailbox.updated_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Marks a mailbox as deleted; its rows are removed after the grace period.
pub async fn mark_deleted(tx: &mut Tx, id: &MailboxId, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE mailbox SET deleted_at = $3, updated_at = $3 WHERE workspace_id = $1 AND id = $2",
        &[id.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a mailbox for good, once its emails are deleted.
pub async fn delete(tx: &mut Tx, id: &MailboxId) -> Result<()> {
    suppressions::delete_of_mailbox(tx, id).await?;
    tx.run("DELETE FROM mailbox WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(())
}

/// Keeps a mailbox from being deleted until the transaction ends. False when it is deleted already.
pub(crate) async fn keep(tx: &mut Tx, id: &MailboxId) -> Result<bool> {
    let lock = tx.for_key_share();
    let sql = format!("SELECT id FROM mailbox WHERE workspace_id = $1 AND id = $2{lock}");
    Ok(tx.one::<(String,)>(&sql, &[id.into()]).await?.is_some())
}
