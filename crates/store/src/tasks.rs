//! Tasks that triagers found.

use model::{
    MailboxId, TaskId,
    tasks::{Task, TaskStatus},
};

use crate::{FromRow, Row, Tx, error::Result};

impl FromRow for Task {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            title: row.next()?,
            due_at: row.next()?,
            priority: row.next_named()?,
            status: row.next_named()?,
            email_id: row.next()?,
            triager_id: row.next()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        })
    }
}

const COLUMNS: &str = "id, title, due_at, priority, status, email_id, triager_id, created_at, updated_at";

/// The tasks of a mailbox, newest first, before the given one.
pub async fn list(
    tx: &mut Tx,
    mailbox: &MailboxId,
    status: Option<TaskStatus>,
    before: Option<&TaskId>,
    most: i64,
) -> Result<Vec<Task>> {
    // Ids rise with time; nothing has a greater one than this.
    let before = before.map_or("~", TaskId::as_str);
    let of_status = if status.is_some() { "status = $5" } else { "coalesce($5, status) = status" };
    let sql = format!(
        "SELECT {COLUMNS} FROM task WHERE workspace_id = $1 AND mailbox_id = $2 AND id < $3 AND {of_status}
         ORDER BY id DESC LIMIT $4"
    );
    tx.all(&sql, &[mailbox.into(), before.into(), most.into(), status.map(TaskStatus::as_str).into()]).await
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
    tx.run(
        "INSERT INTO task (workspace_id, mailbox_id, id, title, due_at, priority, status, email_id, triager_id,
           created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
        &[
            mailbox.into(),
            (&task.id).into(),
            (&task.title).into(),
            task.due_at.into(),
            task.priority.as_str().into(),
            task.status.as_str().into(),
            (&task.email_id).into(),
            (&task.triager_id).into(),
            task.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Stores a task's changeable fields.
pub async fn update(tx: &mut Tx, mailbox: &MailboxId, task: &Task) -> Result<()> {
    tx.run(
        "UPDATE task SET title = $4, due_at = $5, priority = $6, status = $7, updated_at = $8
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[
            mailbox.into(),
            (&task.id).into(),
            (&task.title).into(),
            task.due_at.into(),
            task.priority.as_str().into(),
            task.status.as_str().into(),
            task.updated_at.into(),
        ],
    )
    .await?;
    Ok(())
}
