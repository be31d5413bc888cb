//! Triagers of a mailbox.

use model::{MailboxId, TriagerId, triagers::Triager};
use serde::Serialize;

use crate::{
    FromRow, Row, Tx,
    error::{Error, Result},
};

impl FromRow for Triager {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            mailbox_id: row.next()?,
            name: row.next()?,
            instructions: row.next()?,
            is_default: row.next()?,
            enabled: row.next()?,
            triggers: row.next_json()?,
            tasks: row.next_json()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        })
    }
}

const COLUMNS: &str =
    "id, mailbox_id, name, instructions, is_default, enabled, triggers, tasks, created_at, updated_at";

/// The triagers of a mailbox, the default one first, then the oldest.
pub async fn list(tx: &mut Tx, mailbox: &MailboxId) -> Result<Vec<Triager>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM triager WHERE workspace_id = $1 AND mailbox_id = $2 ORDER BY is_default DESC, id"
    );
    tx.all(&sql, &[mailbox.into()]).await
}

/// Finds a triager.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &TriagerId) -> Result<Option<Triager>> {
    let sql =
        format!("SELECT {COLUMNS} FROM triager WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3");
    tx.one(&sql, &[mailbox.into(), id.into()]).await
}

/// The default triager of a mailbox.
pub async fn find_default(tx: &mut Tx, mailbox: &MailboxId) -> Result<Option<Triager>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM triager WHERE workspace_id = $1 AND mailbox_id = $2 AND is_default = 1"
    );
    tx.one(&sql, &[mailbox.into()]).await
}

/// Adds a triager.
pub async fn insert(tx: &mut Tx, triager: &Triager) -> Result<()> {
    let (triggers, tasks) = (json(&triager.triggers)?, json(&triager.tasks)?);
    tx.run(
        "INSERT INTO triager (workspace_id, mailbox_id, id, name, instructions, is_default, enabled, triggers, tasks,
           created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
        &[
            (&triager.mailbox_id).into(),
            (&triager.id).into(),
            (&triager.name).into(),
            (&triager.instructions).into(),
            triager.is_default.into(),
            triager.enabled.into(),
            (&triggers).into(),
            (&tasks).into(),
            triager.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Stores a triager's changeable fields.
pub async fn update(tx: &mut Tx, triager: &Triager) -> Result<()> {
    let (triggers, tasks) = (json(&triager.triggers)?, json(&triager.tasks)?);
    tx.run(
        "UPDATE triager SET name = $4, instructions = $5, is_default = $6, enabled = $7, triggers = $8, tasks = $9,
           updated_at = $10 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[
            (&triager.mailbox_id).into(),
            (&triager.id).into(),
            (&triager.name).into(),
            (&triager.instructions).into(),
            triager.is_default.into(),
            triager.enabled.into(),
            (&triggers).into(),
            (&tasks).into(),
            triager.updated_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Deletes a triager. What it found and what it did stays.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, id: &TriagerId) -> Result<()> {
    tx.run(
        "DELETE FROM triager WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into()],
    )
    .await?;
    Ok(())
}

/// Notes whether mail that is sent could set a triager of the mailbox off.
pub async fn note_sent(tx: &mut Tx, mailbox: &MailboxId, triages_sent: bool) -> Result<()> {
    tx.run(
        "UPDATE mailbox SET triages_sent = $3 WHERE workspace_id = $1 AND id = $2",
        &[mailbox.into(), triages_sent.into()],
    )
    .await?;
    Ok(())
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.into()))
}
