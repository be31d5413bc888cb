//! Conversations with the mailbox agent, and their messages.

use model::{
    AgentMessageId, ConversationId, MailboxId, Timestamp, TriagerId,
    conversations::{Conversation, Speaker},
};

use crate::{
    Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

columns!(Conversation { id, title, message_count, thread_id, triager_id, created_at, updated_at });

const COLUMNS: &str = Conversation::COLUMNS;

/// Conversations of a mailbox after the given one, the last used first.
pub async fn list(
    tx: &mut Tx,
    mailbox: &MailboxId,
    after: Option<(Timestamp, &ConversationId)>,
    most: i64,
) -> Result<Vec<Conversation>> {
    let (at, id) = after.unzip();
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2
             AND (CAST($3 AS BIGINT) IS NULL OR updated_at < $3 OR (updated_at = $3 AND id < CAST($4 AS TEXT)))
             ORDER BY updated_at DESC, id DESC LIMIT $5"
        ),
        &[mailbox.into(), at.into(), id.into(), most.into()],
    )
    .await
}

/// Finds a conversation.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &ConversationId) -> Result<Option<Conversation>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3"
        ),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Finds the conversation of a triager.
pub async fn find_of_triager(
    tx: &mut Tx,
    mailbox: &MailboxId,
    triager: &TriagerId,
) -> Result<Option<Conversation>> {
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2 AND triager_id = $3"
        ),
        &[mailbox.into(), triager.into()],
    )
    .await
}

/// The conversation of a triager: the one that is there already, or else the given one, which is added.
pub async fn find_or_insert_of_triager(
    tx: &mut Tx,
    mailbox: &MailboxId,
    triager: &TriagerId,
    fresh: Conversation,
) -> Result<Conversation> {
    if let Some(found) = find_of_triager(tx, mailbox, triager).await? {
        return Ok(found);
    }
    let fresh = Conversation { triager_id: Some(triager.clone()), ..fresh };
    let added = tx
        .run(
            "INSERT INTO conversation (workspace_id, mailbox_id, id, title, thread_id, triager_id, message_count,
               busy_until, created_at, updated_at)
             VALUES ($1, $2, $3, $4, NULL, $5, 0, 0, $6, $6) ON CONFLICT DO NOTHING",
            &[
                mailbox.into(),
                (&fresh.id).into(),
                (&fresh.title).into(),
                triager.into(),
                fresh.created_at.into(),
            ],
        )
        .await?;
    if added == 1 {
        return Ok(fresh);
    }
    // Another transaction inserted it first.
    Ok(find_of_triager(tx, mailbox, triager).await?.unwrap_or(fresh))
}

/// Deletes the conversation of a triager, if it has one.
pub async fn delete_of_triager(tx: &mut Tx, mailbox: &MailboxId, triager: &TriagerId) -> Result<()> {
    tx.run(
        "DELETE FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2 AND triager_id = $3",
        &[mailbox.into(), triager.into()],
    )
    .await?;
    Ok(())
}

/// Adds a conversation.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, conversation: &Conversation) -> Result<()> {
    tx.run(
        "INSERT INTO conversation (workspace_id, mailbox_id, id, title, thread_id, triager_id, message_count,
           busy_until, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $7)",
        &[
            mailbox.into(),
            (&conversation.id).into(),
            (&conversation.title).into(),
            conversation.thread_id.as_ref().into(),
            conversation.triager_id.as_ref().into(),
            conversation.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// How many conversations a mailbox has, triagers' own not counted.
pub async fn count(tx: &mut Tx, mailbox: &MailboxId) -> Result<i64> {
    let found = tx
        .one(
            "SELECT count(*) FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2 AND triager_id IS NULL",
            &[mailbox.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Renames a conversation.
pub async fn rename(
    tx: &mut Tx,
    mailbox: &MailboxId,
    id: &ConversationId,
    title: &str,
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE conversation SET title = $4, updated_at = $5 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into(), title.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a conversation with everything in it.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId, id: &ConversationId) -> Result<()> {
    tx.run(
        "DELETE FROM conversation WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into()],
    )
    .await?;
    Ok(())
}

/// Claims a conversation for one message. False when another message is being answered.
pub async fn claim(
    tx: &mut Tx,
    mailbox: &MailboxId,
    id: &ConversationId,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    let taken = tx
        .run(
            "UPDATE conversation SET busy_until = $5
             WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND busy_until <= $4",
            &[mailbox.into(), id.into(), now.into(), until.into()],
        )
        .await?;
    Ok(taken == 1)
}

/// Releases a conversation that was claimed until the given time, unless it was claimed again since.
pub async fn release(tx: &mut Tx, mailbox: &MailboxId, id: &ConversationId, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE conversation SET busy_until = 0
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND busy_until = $4",
        &[mailbox.into(), id.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct MessageRecord {
    /// Its position in the conversation, from 1.
    pub position: i64,
    /// Its id.
    pub id: AgentMessageId,
    /// Who says it.
    pub role: Speaker,
    /// What is said, sealed.
    pub content: Vec<u8>,
    /// When.
    pub created_at: Timestamp,
}

columns!(MessageRecord { position, id, role, content, created_at });

/// Messages of a conversation after a position, oldest first, or before it, newest first.
pub async fn messages(
    tx: &mut Tx,
    mailbox: &MailboxId,
    conversation: &ConversationId,
    newest_first: bool,
    from: Option<i64>,
    most: i64,
) -> Result<Vec<MessageRecord>> {
    let (beyond, order) = if newest_first { ("<", "DESC") } else { (">", "ASC") };
    tx.all(
        &format!(
            "SELECT {} FROM conversation_message
             WHERE workspace_id = $1 AND mailbox_id = $2 AND conversation_id = $3
             AND (CAST($4 AS BIGINT) IS NULL OR position {beyond} $4) ORDER BY position {order} LIMIT $5",
            MessageRecord::COLUMNS
        ),
        &[mailbox.into(), conversation.into(), from.into(), most.into()],
    )
    .await
}

/// Whether a conversation has a message with this id.
pub async fn has_message(
    tx: &mut Tx,
    mailbox: &MailboxId,
    conversation: &ConversationId,
    id: &AgentMessageId,
) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT position FROM conversation_message
             WHERE workspace_id = $1 AND mailbox_id = $2 AND conversation_id = $3 AND id = $4",
            &[mailbox.into(), conversation.into(), id.into()],
        )
        .await?;
    Ok(found.is_some())
}

/// Appends messages to a conversation and releases the claim. False when the claim was lost: the conversation was
/// deleted, or the claim expired and was taken by another caller.
pub async fn append(
    tx: &mut Tx,
    mailbox: &MailboxId,
    conversation: &ConversationId,
    until: Timestamp,
    now: Timestamp,
    messages: &mut [MessageRecord],
) -> Result<bool> {
    let added = i64::try_from(messages.len()).unwrap_or_default();
    let found: Option<(i64,)> = tx
        .one(
            "UPDATE conversation SET message_count = message_count + $5, busy_until = 0, updated_at = $6
             WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND busy_until = $4 RETURNING message_count",
            &[mailbox.into(), conversation.into(), until.into(), added.into(), now.into()],
        )
        .await?;
    let Some((count,)) = found else { return Ok(false) };
    for (position, message) in (count - added + 1..).zip(messages) {
        message.position = position;
        Insert::into("conversation_message")
            .column("mailbox_id", mailbox)
            .column("conversation_id", conversation)
            .record(message)
            .run(tx)
            .await?;
    }
    Ok(true)
}
