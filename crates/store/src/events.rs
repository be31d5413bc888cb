//! The event log: gapless sequence numbers per workspace, written in the transaction of the change they describe.

use model::{EventId, MailboxId, Timestamp, WorkspaceId, events::EventType};

use crate::{
    Param, SystemTx, Topic, Tx,
    error::Result,
    sql::{
        Columns, Insert, LIST_LENGTH, columns, list_params, list_placeholders, long_list_params,
        long_list_placeholders,
    },
};

/// An event as it is stored; its data is sealed.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Its sequence number.
    pub sequence: i64,
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub kind: EventType,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// The mailbox it concerns.
    pub mailbox_id: Option<MailboxId>,
    /// Its sealed data.
    pub data: Vec<u8>,
}

columns!(EventRecord { sequence, id, kind = type, occurred_at, mailbox_id, data });

pub(crate) const LAST: &str = "SELECT last FROM event_counter WHERE workspace_id = $1";

/// Takes sequence numbers, and returns the first. The row stays locked until the end of the transaction, so that there is
/// no gap: call it late.
pub async fn next_sequences(tx: &mut Tx, count: i64) -> Result<i64> {
    let found: Option<(i64,)> = tx.change(TAKE, &[count.into()], ("last", LAST, 0)).await?;
    Ok(found.map_or(1, |(last,)| last - count + 1))
}

/// Takes `$2` sequence numbers.
pub(crate) const TAKE: &str = "INSERT INTO event_counter (workspace_id, last) VALUES ($1, $2)
    ON CONFLICT (workspace_id) DO UPDATE SET last = event_counter.last + excluded.last";

/// Locks the event counter until the end of the transaction without taking a number. A transaction that writes events
/// of several workspaces locks their counters in the order of the workspace ids.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    let sql = format!("{LAST}{}", tx.for_update());
    tx.one::<(i64,)>(&sql, &[]).await?;
    Ok(())
}

/// Writes events with numbers that were taken in this transaction, and wakes their listeners.
pub async fn insert_all(tx: &mut Tx, events: &[EventRecord]) -> Result<()> {
    let rows = events.iter().map(|event| Insert::into("event").record(event)).collect();
    Insert::pipeline_all(tx, rows).await?;
    for event in events {
        tx.wake(Topic::Event, event.mailbox_id.as_ref());
    }
    Ok(())
}

/// The sequence number of the last event; 0 when there is none.
pub async fn last_sequence(tx: &mut Tx) -> Result<i64> {
    let found = tx.one(LAST, &[]).await?;
    Ok(found.map_or(0, |(last,)| last))
}

/// The sequence numbers of the last events of some workspaces, in no order; of those that have any.
pub async fn last_sequences(
    tx: &mut SystemTx,
    workspaces: &[WorkspaceId],
) -> Result<Vec<(WorkspaceId, i64)>> {
    let sql = format!(
        "SELECT workspace_id, last FROM event_counter WHERE workspace_id IN ({})",
        list_placeholders(1)
    );
    let (mut found, nothing) = (Vec::with_capacity(workspaces.len()), WorkspaceId::from(""));
    for some in workspaces.chunks(LIST_LENGTH) {
        let params: Vec<Param<'_>> = list_params(some.iter(), &nothing).collect();
        found.extend(tx.all::<(WorkspaceId, i64)>(&sql, &params).await?);
    }
    Ok(found)
}

/// Events after a sequence number, oldest first: of the whole workspace, or of some mailboxes only.
pub async fn list_after(
    tx: &mut Tx,
    after: i64,
    most: i64,
    mailboxes: Option<&[MailboxId]>,
) -> Result<Vec<EventRecord>> {
    let (mut params, mut condition) = (vec![after.into(), most.into()], String::new());
    let nothing = MailboxId::from("");
    if let Some(ids) = mailboxes {
        condition = format!(" AND mailbox_id IN ({})", long_list_placeholders(4, ids.len()));
        params.extend(long_list_params(ids, &nothing));
    }
    let sql = format!(
        "SELECT {} FROM event
         WHERE workspace_id = $1 AND sequence > $2{condition} ORDER BY sequence LIMIT $3",
        EventRecord::COLUMNS
    );
    tx.all(&sql, &params).await
}

/// An event without its data: enough to find its subscribers.
#[derive(Clone, Debug)]
pub struct EventHead {
    /// Its sequence number.
    pub sequence: i64,
    /// Its id.
    pub id: EventId,
    /// Its type.
    pub kind: EventType,
    /// The mailbox it concerns.
    pub mailbox_id: Option<MailboxId>,
}

columns!(EventHead { sequence, id, kind = type, mailbox_id });

/// Events after a sequence number, oldest first, without their data.
pub async fn list_heads_after(tx: &mut Tx, after: i64, most: i64) -> Result<Vec<EventHead>> {
    tx.all(
        &format!(
            "SELECT {} FROM event
         WHERE workspace_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
            EventHead::COLUMNS
        ),
        &[after.into(), most.into()],
    )
    .await
}

/// Finds an event by its sequence number.
pub async fn find(tx: &mut Tx, sequence: i64) -> Result<Option<EventRecord>> {
    tx.one(
        &format!(
            "SELECT {} FROM event
         WHERE workspace_id = $1 AND sequence = $2",
            EventRecord::COLUMNS
        ),
        &[sequence.into()],
    )
    .await
}
