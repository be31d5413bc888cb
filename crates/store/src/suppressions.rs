//! Suppressions: addresses that a workspace or a mailbox does not write to any more.

use std::fmt::Write as _;

use model::{EmailId, MailboxId, SuppressionId, Timestamp, suppressions::SuppressionReason};

use crate::{
    Param, Tx,
    error::Result,
    sql::{Columns, Insert, columns, long_list_params, long_list_placeholders},
};

/// A suppression as it is stored.
#[derive(Clone, Debug)]
pub struct SuppressionRecord {
    /// Its id.
    pub id: SuppressionId,
    /// The address, in lower case.
    pub address: String,
    /// The mailbox that does not write to it; empty for the whole workspace.
    pub mailbox_id: MailboxId,
    /// Why.
    pub reason: SuppressionReason,
    /// The message that led to it.
    pub email_id: Option<EmailId>,
    /// A remark.
    pub note: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
}

columns!(SuppressionRecord { id, address, mailbox_id, reason, email_id, note, created_at });

/// Adds a suppression, unless there is one of the same address and mailbox. Returns whether it was added.
pub async fn insert(tx: &mut Tx, record: &SuppressionRecord) -> Result<bool> {
    let row = Insert::into("suppression").record(record);
    row.unless_same("workspace_id, address, mailbox_id").run(tx).await
}

/// Adds suppressions with the next statement, where there is none of the same address and mailbox.
pub async fn insert_all(tx: &mut Tx, records: &[SuppressionRecord]) -> Result<()> {
    // In one order, since each is locked.
    let mut sorted: Vec<&SuppressionRecord> = records.iter().collect();
    sorted.sort_by_key(|one| (&one.address, &one.mailbox_id));
    let rows = sorted.into_iter().map(|record| {
        Insert::into("suppression").record(record).unless_same("workspace_id, address, mailbox_id")
    });
    Insert::pipeline_all(tx, rows.collect()).await
}

/// Finds a suppression by its id.
pub async fn find(tx: &mut Tx, id: &SuppressionId) -> Result<Option<SuppressionRecord>> {
    let columns = SuppressionRecord::COLUMNS;
    let sql = format!("SELECT {columns} FROM suppression WHERE workspace_id = $1 AND id = $2");
    tx.one(&sql, &[id.into()]).await
}

/// Finds the suppression of an address by exactly a mailbox, or by the workspace if the mailbox is empty.
pub async fn find_of_address(
    tx: &mut Tx,
    address: &str,
    mailbox: &MailboxId,
) -> Result<Option<SuppressionRecord>> {
    let sql = format!(
        "SELECT {} FROM suppression WHERE workspace_id = $1 AND address = $2 AND mailbox_id = $3",
        SuppressionRecord::COLUMNS
    );
    tx.one(&sql, &[address.into(), mailbox.into()]).await
}

/// Deletes a suppression. False when there is none.
pub async fn delete(tx: &mut Tx, id: &SuppressionId) -> Result<bool> {
    let sql = "DELETE FROM suppression WHERE workspace_id = $1 AND id = $2";
    Ok(tx.run(sql, &[id.into()]).await? == 1)
}

/// Deletes those of one mailbox.
pub async fn delete_of_mailbox(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
    let sql = "DELETE FROM suppression WHERE workspace_id = $1 AND mailbox_id = $2";
    tx.run(sql, &[mailbox.into()]).await?;
    Ok(())
}

/// Which of these addresses, in lower case, a mailbox must not write to, and why; some have several reasons.
pub async fn among(
    tx: &mut Tx,
    mailbox: &MailboxId,
    addresses: &[String],
) -> Result<Vec<(String, SuppressionReason)>> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT address, reason FROM suppression WHERE workspace_id = $1 AND mailbox_id IN ('', $2) AND address IN ({})",
        long_list_placeholders(3, addresses.len())
    );
    let nothing = String::new();
    let listed = long_list_params(addresses, &nothing);
    let params: Vec<Param<'_>> = std::iter::once(Param::from(mailbox)).chain(listed).collect();
    tx.all(&sql, &params).await
}

/// Which suppressions a list shows.
#[derive(Clone, Debug, Default)]
pub struct SuppressionFilter {
    /// Whose address contains this text, in lower case.
    pub text: Option<String>,
    /// Of this reason.
    pub reason: Option<SuppressionReason>,
    /// Of these mailboxes; an empty id is the workspace. `None` for all.
    pub mailboxes: Option<Vec<MailboxId>>,
}

/// Lists suppressions, newest first, before one.
pub async fn list(
    tx: &mut Tx,
    filter: &SuppressionFilter,
    before: Option<&SuppressionId>,
    limit: i64,
) -> Result<Vec<SuppressionRecord>> {
    let pattern = filter.text.as_deref().map(contains);
    let mut params: Vec<Param<'_>> = vec![
        before.into(),
        pattern.as_deref().into(),
        filter.reason.map(SuppressionReason::as_str).into(),
        limit.into(),
    ];
    let mut sql = format!(
        "SELECT {} FROM suppression WHERE workspace_id = $1 AND (CAST($2 AS TEXT) IS NULL OR id < $2)
         AND (CAST($3 AS TEXT) IS NULL OR address LIKE $3 ESCAPE '!') AND (CAST($4 AS TEXT) IS NULL OR reason = $4)",
        SuppressionRecord::COLUMNS
    );
    let nothing = MailboxId::from("-");
    if let Some(mailboxes) = &filter.mailboxes {
        let _ = write!(sql, " AND mailbox_id IN ({})", long_list_placeholders(6, mailboxes.len()));
        params.extend(long_list_params(mailboxes, &nothing));
    }
    sql.push_str(" ORDER BY id DESC LIMIT $5");
    tx.all(&sql, &params).await
}

/// The pattern of texts that contain this one.
fn contains(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for character in text.chars() {
        if matches!(character, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}
