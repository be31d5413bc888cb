//! Custom labels of a mailbox.

use model::{LabelId, MailboxId, labels::Label};

use crate::{
    Tx,
    error::Result,
    mailboxes::{self, MailboxName},
    sql::{Columns, Insert, columns, update_row},
};

columns!(Label in label { id, mailbox_id, name, slug, rules, color, sort_order, created_at, updated_at });

const COLUMNS: &str = Label::COLUMNS;
const ORDER: &str = "label.sort_order, label.id";

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

/// Lists the labels of several mailboxes. Only on PostgreSQL.
pub(crate) fn list_all_query() -> String {
    format!(
        "SELECT {COLUMNS} FROM label WHERE workspace_id = $1 AND mailbox_id = ANY (CAST($2 AS TEXT[]))
         ORDER BY sort_order, id"
    )
}

/// The labels of a mailbox by its name; `None` if there is no such mailbox.
pub async fn list_named(tx: &mut Tx, mailbox: &MailboxName) -> Result<Option<Vec<Label>>> {
    mailboxes::list_rows(tx, mailbox, "label", ORDER).await
}

/// The statement of [`list_named`], for a benchmark that runs it without a store.
pub fn list_named_statement(mailbox: &MailboxName) -> String {
    mailboxes::rows_statement::<Label>(mailbox, "label", ORDER)
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
    Insert::into("label").record(label).unless_same("workspace_id, mailbox_id, slug").run(tx).await
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
    update_row(tx, "label", &[("mailbox_id", (&label.mailbox_id).into()), ("id", (&label.id).into())], label)
        .await?;
    Ok(())
}

/// Deletes a label and removes it from all emails. False when there is none.
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
