//! Telegram chats linked to mailboxes, the codes that link them, and the notices sent to them.

use model::{EmailId, MailboxId, Timestamp, WorkspaceId};

use crate::{
    SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// A link as it is stored.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// The chat.
    pub chat_id: i64,
    /// Its name.
    pub chat_title: String,
    /// When it was linked.
    pub linked_at: Timestamp,
    /// The last event that was sent or skipped.
    pub sequence: i64,
    /// Since when the chat rejects messages.
    pub blocked_at: Option<Timestamp>,
    /// Failed attempts in a row.
    pub failures: i64,
    /// The account or key that made the code it was linked by; `None` for older links.
    pub created_by: Option<String>,
}

columns!(LinkRecord {
    mailbox_id,
    chat_id,
    chat_title,
    linked_at,
    sequence,
    blocked_at,
    failures,
    created_by
});

/// The link of a mailbox.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId) -> Result<Option<LinkRecord>> {
    tx.one(
        &format!(
            "SELECT {} FROM telegram_link
         WHERE workspace_id = $1 AND mailbox_id = $2",
            LinkRecord::COLUMNS
        ),
        &[mailbox.into()],
    )
    .await
}

/// Links a chat to a mailbox, replacing any other link.
pub async fn upsert(tx: &mut Tx, link: &LinkRecord) -> Result<()> {
    tx.run(
        "INSERT INTO telegram_link (workspace_id, mailbox_id, chat_id, chat_title, linked_at, sequence, failures,
           claimed_until, rests_until, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, $7)
         ON CONFLICT (workspace_id, mailbox_id) DO UPDATE SET chat_id = excluded.chat_id, chat_title = excluded.chat_title,
           linked_at = excluded.linked_at, sequence = excluded.sequence, blocked_at = NULL, failures = 0,
           claimed_until = 0, rests_until = 0, created_by = excluded.created_by",
        &[
            (&link.mailbox_id).into(),
            link.chat_id.into(),
            (&link.chat_title).into(),
            link.linked_at.into(),
            link.sequence.into(),
            link.created_by.as_ref().into(),
        ],
    )
    .await?;
    Ok(())
}

/// Deletes the link of a mailbox with everything that belongs to it.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
    for sql in [
        "DELETE FROM telegram_link WHERE workspace_id = $1 AND mailbox_id = $2",
        "DELETE FROM telegram_code WHERE workspace_id = $1 AND mailbox_id = $2",
        "DELETE FROM telegram_notice WHERE workspace_id = $1 AND mailbox_id = $2",
    ] {
        tx.run(sql, &[mailbox.into()]).await?;
    }
    Ok(())
}

/// Stores the code that an account or key made for a mailbox, replacing an earlier one.
pub async fn upsert_code(
    tx: &mut Tx,
    mailbox: &MailboxId,
    hash: &[u8],
    expires_at: Timestamp,
    creator: &str,
) -> Result<()> {
    tx.run(
        "INSERT INTO telegram_code (workspace_id, mailbox_id, code_hash, expires_at, created_by)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (workspace_id, mailbox_id) DO UPDATE SET code_hash = excluded.code_hash,
           expires_at = excluded.expires_at, created_by = excluded.created_by",
        &[mailbox.into(), hash.into(), expires_at.into(), creator.into()],
    )
    .await?;
    Ok(())
}

/// Redeems a code: what it is for, and who made it. `None` when it is not valid.
pub async fn redeem_code(
    tx: &mut SystemTx,
    hash: &[u8],
    now: Timestamp,
) -> Result<Option<(WorkspaceId, MailboxId, Option<String>)>> {
    tx.one(
        "DELETE FROM telegram_code WHERE code_hash = $1 AND expires_at > $2
         RETURNING workspace_id, mailbox_id, created_by",
        &[hash.into(), now.into()],
    )
    .await
}

/// The mailboxes that a chat is linked to.
pub async fn list_of_chat(tx: &mut SystemTx, chat: i64) -> Result<Vec<(WorkspaceId, MailboxId)>> {
    tx.all(
        "SELECT workspace_id, mailbox_id FROM telegram_link WHERE chat_id = $1 ORDER BY workspace_id, mailbox_id LIMIT 100",
        &[chat.into()],
    )
    .await
}

/// Resumes a blocked chat, from the current event on.
pub async fn resume(tx: &mut Tx, mailbox: &MailboxId, sequence: i64) -> Result<()> {
    tx.run(
        "UPDATE telegram_link SET blocked_at = NULL, failures = 0, rests_until = 0, sequence = $3
         WHERE workspace_id = $1 AND mailbox_id = $2 AND blocked_at IS NOT NULL",
        &[mailbox.into(), sequence.into()],
    )
    .await?;
    Ok(())
}

/// Unclaimed links with unprocessed events.
pub async fn lagging(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<Vec<(WorkspaceId, MailboxId)>> {
    tx.all(
        "SELECT l.workspace_id, l.mailbox_id FROM telegram_link l JOIN event_counter c ON c.workspace_id = l.workspace_id
         WHERE l.sequence < c.last AND l.blocked_at IS NULL AND l.claimed_until <= $1 AND l.rests_until <= $1 LIMIT $2",
        &[now.into(), most.into()],
    )
    .await
}

/// Claims a link for one worker. False when another was faster.
pub async fn claim(tx: &mut Tx, mailbox: &MailboxId, now: Timestamp, until: Timestamp) -> Result<bool> {
    let taken = tx
        .run(
            "UPDATE telegram_link SET claimed_until = $4 WHERE workspace_id = $1 AND mailbox_id = $2
             AND blocked_at IS NULL AND claimed_until <= $3 AND rests_until <= $3",
            &[mailbox.into(), now.into(), until.into()],
        )
        .await?;
    Ok(taken == 1)
}

/// Releases a link that was claimed until a time, unless it was claimed again since.
pub async fn release(tx: &mut Tx, mailbox: &MailboxId, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE telegram_link SET claimed_until = 0 WHERE workspace_id = $1 AND mailbox_id = $2 AND claimed_until = $3",
        &[mailbox.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// Moves a link's position in the event log. False when the link was deleted or replaced.
pub async fn set_sequence(tx: &mut Tx, link: &LinkRecord, sequence: i64) -> Result<bool> {
    let moved = tx
        .run(
            "UPDATE telegram_link SET sequence = $4, failures = 0
             WHERE workspace_id = $1 AND mailbox_id = $2 AND chat_id = $3",
            &[(&link.mailbox_id).into(), link.chat_id.into(), sequence.into()],
        )
        .await?;
    Ok(moved == 1)
}

/// Releases a link and defers it until the given time.
pub async fn defer(
    tx: &mut Tx,
    link: &LinkRecord,
    failures: i64,
    rests_until: Timestamp,
    blocked_at: Option<Timestamp>,
) -> Result<()> {
    tx.run(
        "UPDATE telegram_link SET claimed_until = 0, failures = $4, rests_until = $5, blocked_at = $6
         WHERE workspace_id = $1 AND mailbox_id = $2 AND chat_id = $3",
        &[
            (&link.mailbox_id).into(),
            link.chat_id.into(),
            failures.into(),
            rests_until.into(),
            blocked_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// A notice that was sent.
#[derive(Clone, Debug)]
pub struct NoticeRecord {
    /// Its id in the callback data of its buttons.
    pub id: String,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// The email it is about.
    pub email_id: EmailId,
    /// The chat that got it.
    pub chat_id: i64,
    /// Its message id in the chat.
    pub message_id: i64,
    /// When it was sent.
    pub created_at: Timestamp,
}

columns!(NoticeRecord { id, workspace_id, mailbox_id, email_id, chat_id, message_id, created_at });

/// Stores a notice.
pub async fn insert_notice(tx: &mut Tx, notice: &NoticeRecord) -> Result<()> {
    Insert::into("telegram_notice").record(notice).run(tx).await?;
    Ok(())
}

/// A notice of a chat by its id, as long as the chat is linked to the notice's mailbox.
pub async fn find_notice(tx: &mut SystemTx, chat: i64, id: &str) -> Result<Option<NoticeRecord>> {
    tx.one(
        "SELECT n.id, n.workspace_id, n.mailbox_id, n.email_id, n.chat_id, n.message_id, n.created_at
         FROM telegram_notice n JOIN telegram_link l ON l.workspace_id = n.workspace_id AND l.mailbox_id = n.mailbox_id
         WHERE n.id = $2 AND n.chat_id = $1 AND l.chat_id = $1",
        &[chat.into(), id.into()],
    )
    .await
}

/// The same by its message id in the chat.
pub async fn find_notice_by_message(
    tx: &mut SystemTx,
    chat: i64,
    message: i64,
) -> Result<Option<NoticeRecord>> {
    tx.one(
        "SELECT n.id, n.workspace_id, n.mailbox_id, n.email_id, n.chat_id, n.message_id, n.created_at
         FROM telegram_notice n JOIN telegram_link l ON l.workspace_id = n.workspace_id AND l.mailbox_id = n.mailbox_id
         WHERE n.chat_id = $1 AND n.message_id = $2 AND l.chat_id = $1 ORDER BY n.created_at DESC LIMIT 1",
        &[chat.into(), message.into()],
    )
    .await
}

/// Claims polling for one node, and returns the next update id. `None` while another node has it.
pub async fn claim_poll(
    tx: &mut SystemTx,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<i64>> {
    let found: Option<(i64,)> = tx
        .one(
            "INSERT INTO telegram_poll (name, holder, held_until, next_update) VALUES ('bot', $1, $3, 0)
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
             WHERE telegram_poll.holder = $1 OR telegram_poll.held_until <= $2 RETURNING next_update",
            &[holder.into(), now.into(), until.into()],
        )
        .await?;
    Ok(found.map(|(next,)| next))
}

/// Records that all updates before this one were processed.
pub async fn set_next_update(tx: &mut SystemTx, next: i64) -> Result<()> {
    tx.run(
        "UPDATE telegram_poll SET next_update = $1 WHERE name = 'bot' AND next_update < $1",
        &[next.into()],
    )
    .await?;
    Ok(())
}
