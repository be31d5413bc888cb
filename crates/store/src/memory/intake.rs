//! Intake of mail into memory: how far each mailbox was processed, the claims of workers, and which emails come next.

use model::{EmailId, MailboxId, Timestamp, WorkspaceId};

use crate::{
    SystemTx, Tx,
    emails::{COLUMNS, EmailRecord},
    error::Result,
};

/// How many arrivals before the cursor are checked again for sent mail: it has the number of the event before it, and
/// may become visible after mail that arrived later.
const LOOKBACK_ARRIVALS: i64 = 16;

/// Emails that may be added to memory: after the mailbox's cursor, or sent shortly before it. No drafts.
const IS_NEXT: &str =
    "email.folder_id NOT IN ('draft', 'scheduled') AND (email.arrival > $3 OR (email.outgoing = 1
    AND NOT EXISTS (SELECT 1 FROM passage p WHERE p.workspace_id = $1 AND p.mailbox_id = email.mailbox_id
      AND p.email_id = email.id)))";

/// Claims an unclaimed mailbox, and returns its cursor.
pub async fn claim_mailbox(
    tx: &mut Tx,
    mailbox: &MailboxId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<i64>> {
    let found = tx
        .one(
            "INSERT INTO memory_cursor (workspace_id, mailbox_id, arrival, claimed_until)
             SELECT workspace_id, id, 0, CAST($4 AS BIGINT) FROM mailbox WHERE workspace_id = $1 AND id = $2
             ON CONFLICT (workspace_id, mailbox_id) DO UPDATE SET claimed_until = $4
             WHERE memory_cursor.claimed_until <= $3 RETURNING arrival",
            &[mailbox.into(), now.into(), until.into()],
        )
        .await?;
    Ok(found.map(|(arrival,)| arrival))
}

/// Moves a mailbox's cursor and extends the claim; a time in the past releases it.
pub async fn move_cursor(tx: &mut Tx, mailbox: &MailboxId, arrival: i64, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE memory_cursor SET arrival = CASE WHEN arrival < $3 THEN $3 ELSE arrival END, claimed_until = $4
         WHERE workspace_id = $1 AND mailbox_id = $2",
        &[mailbox.into(), arrival.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// The cursor of a mailbox: the last arrival added to memory.
pub async fn cursor(tx: &mut Tx, mailbox: &MailboxId) -> Result<i64> {
    let sql = "SELECT arrival FROM memory_cursor WHERE workspace_id = $1 AND mailbox_id = $2";
    Ok(tx.one(sql, &[mailbox.into()]).await?.map_or(0, |(arrival,)| arrival))
}

/// The next emails of a mailbox to process, in the order of arrival.
pub async fn emails_after(
    tx: &mut Tx,
    mailbox: &MailboxId,
    arrival: i64,
    most: i64,
) -> Result<Vec<EmailRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM email WHERE email.workspace_id = $1 AND email.mailbox_id = $2 AND email.arrival > $4 AND {IS_NEXT}
         ORDER BY email.arrival, email.id LIMIT $5"
    );
    tx.all(&sql, &[mailbox.into(), arrival.into(), (arrival - LOOKBACK_ARRIVALS).into(), most.into()]).await
}

/// Whether an email exists and may be added to memory; locked against deletion until the transaction ends.
pub async fn lock_email(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId) -> Result<bool> {
    let sql = format!(
        "SELECT id FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3
         AND (outgoing = 1 OR scan_status = 'clean') AND NOT EXISTS
         (SELECT 1 FROM passage p WHERE p.workspace_id = $1 AND p.mailbox_id = email.mailbox_id AND p.email_id = email.id){}",
        tx.for_key_share()
    );
    Ok(tx.one::<(EmailId,)>(&sql, &[mailbox.into(), email.into()]).await?.is_some())
}

/// Mailboxes of all workspaces with unprocessed mail, after the given one.
pub async fn mailboxes_behind(
    tx: &mut SystemTx,
    after: (&WorkspaceId, &MailboxId),
    most: i64,
) -> Result<Vec<(WorkspaceId, MailboxId, bool)>> {
    tx.all(
        "SELECT m.workspace_id, m.id, CASE WHEN EXISTS (SELECT 1 FROM email e WHERE e.workspace_id = m.workspace_id
           AND e.mailbox_id = m.id AND e.folder_id NOT IN ('draft', 'scheduled') AND e.arrival > coalesce((SELECT c.arrival FROM memory_cursor c
             WHERE c.workspace_id = m.workspace_id AND c.mailbox_id = m.id), 0)) THEN 1 ELSE 0 END
         FROM mailbox m WHERE (m.workspace_id, m.id) > ($1, $2) AND m.deleted_at IS NULL
         ORDER BY m.workspace_id, m.id LIMIT $3",
        &[after.0.into(), after.1.into(), most.into()],
    )
    .await
}

/// Releases the claims of earlier processes: for a store with a single node, at its start.
pub async fn release_claims(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE memory_cursor SET claimed_until = 0 WHERE claimed_until > 0", &[]).await?;
    tx.run("UPDATE document SET claimed_until = 0 WHERE status = 'indexing'", &[]).await?;
    Ok(())
}
