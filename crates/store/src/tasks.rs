//! Tasks that triagers found.

use model::{
    MailboxId, TaskId,
    tasks::{Task, TaskStatus},
};

use crate::{
    Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

columns!(Task { id, title, due_at, priority, status, email_id, triager_id, created_at, updated_at });

const COLUMNS: &str = Task::COLUMNS;

/// The tasks of a mailbox, newest first, before the given one.
pub async fn list(
    tx: &mut Tx,
    mailbox: &MailboxId,
    status: Option<TaskStatus>,
    before: Option<&TaskId>,
    most: i64,
) -> Result<Vec<Task>> {
    // Ids ascend with time; this sorts after all of them.
    let before = before.map_or("~", TaskId::as_str);
    let of_status = if status.is_some() { "status = $5" } else { "coalesce($5, status) = status" };
    let sql = format!(
        "SELECT {COLUMNS} FROM task WHERE workspace_id = $1 AND mailbox_id = $2 AND id < $3 AND {of_status}
         ORDER BY id DESC LIMIT $4"
    );
    tx.all(&sql, &[mailbox.into(), before.into(), most.into(), status.into()]).await
}

/// Finds a task.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &TaskId) -> Result<Option<Task>> {
    let sql = format!("SELECT {COLUMNS} FROM task WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3");
    tx.one(&sql, &[mailbox.into(), id.into()]).await
}

/// How many open tasks a mailbox has.
pub async fn count_open(tx: &mut Tx, mailbox: &MailboxId) -> Result<i64> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM task WHERE workspace_id = $1 AND mailbox_id = $2 AND status = 'open'",
            &[mailbox.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a task.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, task: &Task) -> Result<()> {
    Insert::into("task").column("mailbox_id", mailbox).record(task).run(tx).await?;
    Ok(())
}

/// Stores a task's changeable fields.
pub async fn update(tx: &mut Tx, mailbox: &MailboxId, task: &Task) -> Result<()> {
    update_row(tx, "task", &[("mailbox_id", mailbox.into()), ("id", (&task.id).into())], task).await?;
    Ok(())
}
