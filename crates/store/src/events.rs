//! The event log: numbers without gaps in each workspace, written in the transaction of what they tell.

use model::{EventId, MailboxId, Timestamp, events::EventType};

use crate::{
    Topic, Tx,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// An event as it is stored; its data is sealed.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Its number.
    pub sequence: i64,
    /// Its id.
    pub id: EventId,
    /// What it tells.
    pub kind: EventType,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// The mailbox it is about.
    pub mailbox_id: Option<MailboxId>,
    /// Its sealed data.
    pub data: Vec<u8>,
}

columns!(EventRecord { sequence, id, kind = type, occurred_at, mailbox_id, data });

const LAST: &str = "SELECT last FROM event_counter WHERE workspace_id = $1";

/// Takes the next number. The row stays locked until the end of the transaction, so that there is no gap: call it late.
pub async fn next_sequence(tx: &mut Tx) -> Result<i64> {
    let found = tx
        .change(
            "INSERT INTO event_counter (workspace_id, last) VALUES ($1, 1)
             ON CONFLICT (workspace_id) DO UPDATE SET last = event_counter.last + 1",
            &[],
            ("last", LAST, 0),
        )
        .await?;
    Ok(found.map_or(1, |(last,)| last))
}

/// Holds the next number until the end of the transaction without taking it. Who writes events of several workspaces holds
/// their numbers in the order of the workspaces.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    let sql = format!("{LAST}{}", tx.for_update());
    tx.one::<(i64,)>(&sql, &[]).await?;
    Ok(())
}

/// Writes an event under a number that was taken in this transaction, and wakes those who wait for it.
pub async fn insert(tx: &mut Tx, event: &EventRecord) -> Result<()> {
    Insert::into("event").record(event).run(tx).await?;
    tx.wake(Topic::Event, event.mailbox_id.as_ref()).await
}

/// The number of the last event; 0 when there is none.
pub async fn last_sequence(tx: &mut Tx) -> Result<i64> {
    let found = tx.one(LAST, &[]).await?;
    Ok(found.map_or(0, |(last,)| last))
}

/// Events after a number, oldest first.
pub async fn list_after(tx: &mut Tx, after: i64, most: i64) -> Result<Vec<EventRecord>> {
    tx.all(
        &format!(
            "SELECT {} FROM event
         WHERE workspace_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
            EventRecord::COLUMNS
        ),
        &[after.into(), most.into()],
    )
    .await
}

/// What is needed of an event to know who wants it.
#[derive(Clone, Debug)]
pub struct EventHead {
    /// Its number.
    pub sequence: i64,
    /// Its id.
    pub id: EventId,
    /// What it tells.
    pub kind: EventType,
    /// The mailbox it is about.
    pub mailbox_id: Option<MailboxId>,
}

columns!(EventHead { sequence, id, kind = type, mailbox_id });

/// Events after a number, oldest first, without their data.
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

/// Finds an event by its number.
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
