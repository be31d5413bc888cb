//! Custom labels of a mailbox.

use model::{LabelId, MailboxId, labels::Label};

use crate::{FromRow, Row, Tx, error::Result};

impl FromRow for Label {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            mailbox_id: row.next()?,
            name: row.next()?,
            slug: row.next()?,
            rules: row.next()?,
            color: row.next()?,
            sort_order: row.next()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        })
    }
}

const COLUMNS: &str = "id, mailbox_id, name, slug, rules, color, sort_order, created_at, updated_at";

/// The labels of a mailbox in their order.
pub async fn list(tx: &mut Tx, mailbox: &MailboxId) -> Result<Vec<Label>> {
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM label WHERE workspace_id = $1 AND mailbox_id = $2 ORDER BY sort_order, id"
        ),
        &[mailbox.into()],
    )
    .await
}

/// Finds a label.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &LabelId) -> Result<Option<Label>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM label WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Adds a label. False when its slug is taken.
pub async fn insert(tx: &mut Tx, label: &Label) -> Result<bool> {
    let added = tx
        .run(
            "INSERT INTO label (workspace_id, mailbox_id, id, name, slug, rules, color, sort_order, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) ON CONFLICT (workspace_id, mailbox_id, slug) DO NOTHING",
            &[
                (&label.mailbox_id).into(),
                (&label.id).into(),
                (&label.name).into(),
                (&label.slug).into(),
                (&label.rules).into(),
                (&label.color).into(),
                label.sort_order.into(),
                label.created_at.into(),
            ],
        )
        .await?;
    Ok(added == 1)
}

/// Whether another label of the mailbox has a slug.
pub async fn slug_taken(tx: &mut Tx, label: &Label) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM label WHERE workspace_id = $1 AND mailbox_id = $2 AND slug = $3 AND id <> $4",
            &[(&label.mailbox_id).into(), (&label.slug).into(), (&label.id).into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Stores a label's changeable fields.
pub async fn update(tx: &mut Tx, label: &Label) -> Result<()> {
    tx.run(
        "UPDATE label SET name = $4, slug = $5, rules = $6, color = $7, sort_order = $8, updated_at = $9
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[
            (&label.mailbox_id).into(),
            (&label.id).into(),
            (&label.name).into(),
            (&label.slug).into(),
            (&label.rules).into(),
            (&label.color).into(),
            label.sort_order.into(),
            label.updated_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Deletes a label and takes it off all mail. False when there is none.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, id: &LabelId) -> Result<bool> {
    tx.run(
        "UPDATE email SET label_count = label_count - 1 WHERE workspace_id = $1 AND mailbox_id = $2 AND id IN
         (SELECT email_id FROM email_label WHERE workspace_id = $1 AND mailbox_id = $2 AND label_id = $3)",
        &[mailbox.into(), id.into()],
    )
    .await?;
    let gone = tx
        .run(
            "DELETE FROM label WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[mailbox.into(), id.into()],
        )
        .await?;
    Ok(gone == 1)
}
