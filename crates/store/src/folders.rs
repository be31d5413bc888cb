//! Folders of a mailbox.

use model::{
    FolderId, MailboxId,
    folders::{Folder, SystemFolder},
};

use crate::{
    Select, Tx,
    error::Result,
    mailboxes::{self, MailboxName},
    sql::{Columns, Insert, columns},
};

columns!(Folder in folder { id, name, unread_count, total_count, system });

const COLUMNS: &str = Folder::COLUMNS;

const ORDER: &str = "folder.position, folder.name, folder.id";

/// The folders of a mailbox: the system ones first, then the others by name. `None` if there is no such mailbox.
pub async fn list(tx: &mut Tx, mailbox: &MailboxName) -> Result<Option<Vec<Folder>>> {
    let found = mailboxes::list_rows(tx, mailbox, "folder", ORDER).await?;
    Ok(found.map(|folders: Vec<Folder>| folders.into_iter().filter(Folder::is_shown).collect()))
}

/// Selects the folders of a mailbox.
pub fn select_list(mailbox: &MailboxId) -> Select<'_, Folder> {
    let sql = format!(
        "SELECT {COLUMNS} FROM folder WHERE workspace_id = $1 AND mailbox_id = $2
             AND (id <> 'review' OR total_count > 0) ORDER BY {ORDER}"
    );
    Select::new(sql, vec![mailbox.into()])
}

/// Finds a folder.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &FolderId) -> Result<Option<Folder>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM folder WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Adds the folder of messages in review, beside the scheduled ones, unless it is there.
pub async fn ensure_review(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
    const BESIDE_SCHEDULED: i64 = 3;
    insert(tx, mailbox, &Folder::system(SystemFolder::Review), BESIDE_SCHEDULED).await?;
    Ok(())
}

/// Adds a folder. False when its id is taken.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, folder: &Folder, position: i64) -> Result<bool> {
    Insert::into("folder")
        .column("mailbox_id", mailbox)
        .record(folder)
        .column("position", position)
        .unless_same("workspace_id, mailbox_id, id")
        .run(tx)
        .await
}

/// Renames a folder; its id stays, since clients keep it.
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
