//! Folders of a mailbox.

use model::{FolderId, MailboxId, folders::Folder};

use crate::{FromRow, Row, Tx, error::Result};

impl FromRow for Folder {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            name: row.next()?,
            unread_count: row.next()?,
            total_count: row.next()?,
            system: row.next()?,
        })
    }
}

const COLUMNS: &str = "id, name, unread_count, total_count, system";

/// The folders of a mailbox: the system ones first, then the others by name.
pub async fn list(tx: &mut Tx, mailbox: &MailboxId) -> Result<Vec<Folder>> {
    tx.all(
        &format!("SELECT {COLUMNS} FROM folder WHERE workspace_id = $1 AND mailbox_id = $2 ORDER BY position, name, id"),
        &[mailbox.into()],
    )
    .await
}

/// Finds a folder.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &FolderId) -> Result<Option<Folder>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM folder WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Adds a folder. False when its id is taken.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, folder: &Folder, position: i64) -> Result<bool> {
    let added = tx
        .run(
            "INSERT INTO folder (workspace_id, mailbox_id, id, name, position, system, unread_count, total_count)
             VALUES ($1, $2, $3, $4, $5, $6, 0, 0) ON CONFLICT (workspace_id, mailbox_id, id) DO NOTHING",
            &[
                mailbox.into(),
                (&folder.id).into(),
                (&folder.name).into(),
                position.into(),
                folder.system.into(),
            ],
        )
        .await?;
    Ok(added == 1)
}

/// Renames a folder; its id stays, since callers hold it.
pub async fn rename(tx: &mut Tx, mailbox: &MailboxId, id: &FolderId, name: &str) -> Result<()> {
    tx.run(
        "UPDATE folder SET name = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into(), name.into()],
    )
    .await?;
    Ok(())
}

/// Deletes an empty folder.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, id: &FolderId) -> Result<()> {
    tx.run(
        "DELETE FROM folder WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into()],
    )
    .await?;
    Ok(())
}

/// How many folders a mailbox has.
pub async fn count(tx: &mut Tx, mailbox: &MailboxId) -> Result<i64> {
    let found = tx
        .one("SELECT count(*) FROM folder WHERE workspace_id = $1 AND mailbox_id = $2", &[mailbox.into()])
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}
