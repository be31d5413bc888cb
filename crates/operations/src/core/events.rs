//! The event log of a workspace, in one order without gaps.

use std::{pin::pin, time::Duration};

use model::{
    MailboxId, Timestamp, WorkspaceId,
    events::{Event, EventPage, EventQuery, EventType},
};
use store::{
    Tx,
    events::{self, EventRecord},
    vault::DataKey,
};

use crate::core::{
    app::App,
    call::Call,
    cursor,
    error::{Error, Result},
    operation::Operation,
};

/// Reads the event log.
pub const LIST: Operation = Operation::read(
    "listEvents",
    "Returns the events of a workspace after a sequence number; with `wait` it waits for the first one.",
)
.visible();
/// Streams the event log.
pub const STREAM: Operation = Operation::read(
    "streamEvents",
    "Streams the event log of a workspace as server-sent events; resumes from Last-Event-ID.",
)
.visible();

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &STREAM];

/// The purpose that the data of events is sealed for.
const DATA: &str = "event";

/// An event to be written to the log.
pub(crate) struct NewEvent {
    pub(crate) kind: EventType,
    pub(crate) mailbox: Option<MailboxId>,
    pub(crate) data: serde_json::Value,
}

impl NewEvent {
    /// Its record, under a sequence number that was allocated in the transaction of the change it reports.
    pub(crate) fn record(
        self,
        app: &App,
        key: &DataKey,
        sequence: i64,
        now: Timestamp,
    ) -> Result<EventRecord> {
        let plain = serde_json::to_vec(&self.data).map_err(Error::internal)?;
        Ok(EventRecord {
            sequence,
            id: app.new_id(),
            kind: self.kind,
            occurred_at: now,
            mailbox_id: self.mailbox,
            data: key.seal(DATA, &plain).map_err(store::Error::from)?,
        })
    }

    /// Writes it in the transaction of the change it reports, under the next sequence number.
    pub(crate) async fn append(self, tx: &mut Tx, app: &App, key: &DataKey, now: Timestamp) -> Result<()> {
        Self::append_all(tx, app, vec![(self, key, now)]).await
    }

    /// The same for several events, in this order.
    pub(crate) async fn append_all(
        tx: &mut Tx,
        app: &App,
        log: Vec<(Self, &DataKey, Timestamp)>,
    ) -> Result<()> {
        if log.is_empty() {
            return Ok(());
        }
        let first = events::next_sequences(tx, i64::try_from(log.len()).unwrap_or(i64::MAX)).await?;
        let numbered = log.into_iter().zip(first..);
        let records = numbered.map(|((event, key, now), sequence)| event.record(app, key, sequence, now));
        Ok(events::insert_all(tx, &records.collect::<Result<Vec<_>>>()?).await?)
    }
}

/// Reads a part of the event log.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: EventQuery) -> Result<EventPage> {
    let mut changes = app.subscribe(&call.workspace);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(u64::from(query.wait));
    let mut revoked = pin!(app.revoked(call));
    let mut after = query.after;
    loop {
        let page = page(app, call, after, query.limit).await?;
        after = page.next_after;
        if !page.events.is_empty() || query.wait == 0 {
            return Ok(page);
        }
        tokio::select! {
            woken = tokio::time::timeout_at(deadline, changes.changed()) => if woken.is_err() {
                return Ok(page);
            },
            () = app.ending() => return Ok(page),
            refused = revoked.as_mut() => return Err(refused),
        }
    }
}

/// A part of the event log, without waiting: of the mailboxes that the caller sees. The next part begins after what was
/// left out too, so that nothing is read twice for a caller whose mailboxes are quiet.
#[crate::boxed]
pub async fn page(app: &App, call: &Call, after: i64, limit: i64) -> Result<EventPage> {
    let (workspace, mailboxes) = (&call.workspace, call.mailbox_ids().cloned());
    let key = app.data_key(workspace).await?;
    let read: store::Result<_> = app
        .db()
        .read(workspace, async move |tx| {
            let found = events::list_after(tx, after, limit + 1, mailboxes.as_deref()).await?;
            let seen = if mailboxes.is_some() { events::last_sequence(tx).await? } else { 0 };
            Ok((found, seen))
        })
        .await;
    let (mut found, seen) = read?;
    let has_more = cursor::truncate(&mut found, limit);
    let events =
        found.into_iter().map(|record| show(workspace, &key, record)).collect::<Result<Vec<Event>>>()?;
    let shown = events.last().map_or(after, |event| event.sequence);
    let next_after = if has_more { shown } else { shown.max(seen) };
    Ok(EventPage { events, has_more, next_after })
}

/// The sequence number of the last event.
#[crate::boxed]
pub async fn last_sequence(app: &App, workspace: &WorkspaceId) -> Result<i64> {
    Ok(app.db().read(workspace, async |tx| events::last_sequence(tx).await).await?)
}

pub(crate) fn show(workspace: &WorkspaceId, key: &DataKey, record: EventRecord) -> Result<Event> {
    let plain = key.open(DATA, &record.data).map_err(store::Error::from)?;
    Ok(Event {
        id: record.id,
        kind: record.kind,
        occurred_at: record.occurred_at,
        sequence: record.sequence,
        workspace_id: workspace.clone(),
        mailbox_id: record.mailbox_id,
        data: serde_json::from_slice(&plain).map_err(Error::internal)?,
    })
}
