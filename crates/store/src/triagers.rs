//! Triagers of a mailbox.

use model::{MailboxId, TriagerId, triagers::Triager};

use crate::{
    Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

columns!(Triager {
    id, mailbox_id, name, instructions, is_default, enabled, triggers as json, tasks as json, created_at,
    updated_at,
});

const COLUMNS: &str = Triager::COLUMNS;

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
    Insert::into("triager").record(triager).run(tx).await?;
    Ok(())
}

/// Stores a triager's changeable fields.
pub async fn update(tx: &mut Tx, triager: &Triager) -> Result<()> {
    update_row(
        tx,
        "triager",
        &[("mailbox_id", (&triager.mailbox_id).into()), ("id", (&triager.id).into())],
        triager,
    )
    .await?;
    Ok(())
}

/// Deletes a triager. Its tasks and runs stay.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, id: &TriagerId) -> Result<()> {
    tx.run(
        "DELETE FROM triager WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into()],
    )
    .await?;
    Ok(())
}

/// Sets whether sent mail can trigger a triager of the mailbox.
pub async fn set_triages_sent(tx: &mut Tx, mailbox: &MailboxId, triages_sent: bool) -> Result<()> {
    tx.run(
        "UPDATE mailbox SET triages_sent = $3 WHERE workspace_id = $1 AND id = $2",
        &[mailbox.into(), triages_sent.into()],
    )
    .await?;
    Ok(())
}
