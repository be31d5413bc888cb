//! The event log: what happened in a workspace, in one order without gaps.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use model::{
    MailboxId, Timestamp, WorkspaceId,
    events::{Event, EventPage, EventQuery, EventType},
};
use store::{
    Tx, Wake,
    events::{self, EventRecord},
    vault::DataKey,
};
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    watch,
};

use crate::{App, Call, Error, ErrorKind, Operation, Result, emails::Arrivals, lock, supervisor::Exit};

/// Reads the event log.
pub const LIST: Operation = Operation::read(
    "listEvents",
    "Reads the event log of a workspace after a sequence; waits for the first event if asked to.",
);
/// Streams the event log.
pub const STREAM: Operation = Operation::read(
    "streamEvents",
    "Streams the event log of a workspace as server-sent events; resumes from Last-Event-ID.",
);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &STREAM];

/// The purpose that the data of events is sealed for.
const DATA: &str = "event";

/// An event on its way into the log.
pub(crate) struct NewEvent {
    pub(crate) kind: EventType,
    pub(crate) mailbox: Option<MailboxId>,
    pub(crate) data: serde_json::Value,
}

impl NewEvent {
    /// Writes it in the transaction of what it tells, under a number taken there.
    pub(crate) async fn insert(
        self,
        tx: &mut Tx,
        app: &App,
        key: &DataKey,
        sequence: i64,
        now: Timestamp,
    ) -> Result<()> {
        let plain = serde_json::to_vec(&self.data).map_err(Error::internal)?;
        let record = EventRecord {
            sequence,
            id: app.new_id(),
            kind: self.kind,
            occurred_at: now,
            mailbox_id: self.mailbox,
            data: key.seal(DATA, &plain).map_err(store::Error::from)?,
        };
        Ok(events::insert(tx, &record).await?)
    }

    /// The same, under the next number.
    pub(crate) async fn append(self, tx: &mut Tx, app: &App, key: &DataKey, now: Timestamp) -> Result<()> {
        let sequence = events::next_sequence(tx).await?;
        self.insert(tx, app, key, sequence, now).await
    }
}

/// Reads a part of the event log.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: EventQuery) -> Result<EventPage> {
    let mut news = app.news(&call.workspace);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(u64::from(query.wait));
    let mut revoked = pin!(app.revoked(call));
    loop {
        let page = page(app, &call.workspace, query.after, query.limit).await?;
        if !page.events.is_empty() || query.wait == 0 {
            return Ok(page);
        }
        tokio::select! {
            woken = tokio::time::timeout_at(deadline, news.changed()) => if woken.is_err() {
                return Ok(page);
            },
            () = app.ending() => return Ok(page),
            () = revoked.as_mut() => return Err(Error::new(ErrorKind::Unauthorized)),
        }
    }
}

/// A part of the event log, without waiting.
#[crate::boxed]
pub async fn page(app: &App, workspace: &WorkspaceId, after: i64, limit: i64) -> Result<EventPage> {
    let key = app.data_key(workspace).await?;
    let found = app
        .db()
        .read(workspace, async move |tx| events::list_after(tx, after, limit + 1).await)
        .await
        .map_err(Error::from)?;
    let has_more = i64::try_from(found.len()).is_ok_and(|count| count > limit);
    let wanted = usize::try_from(limit).unwrap_or_default();
    let events = found
        .into_iter()
        .take(wanted)
        .map(|record| show(workspace, &key, record))
        .collect::<Result<Vec<Event>>>()?;
    let next_after = events.last().map_or(after, |event| event.sequence);
    Ok(EventPage { events, has_more, next_after })
}

/// The number of the last event.
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

/// Tells those who wait on this node that something happened in their workspace or mailbox.
#[derive(Default)]
pub(crate) struct News {
    waiting: Mutex<HashMap<WorkspaceId, watch::Sender<u64>>>,
    arrivals: Mutex<HashMap<MailboxId, Arc<Arrivals>>>,
}

/// Workspaces or mailboxes somebody waits in; beyond that those nobody waits in any more are forgotten.
const MOST_WATCHED: usize = 1024;

impl News {
    /// Changes whenever something happened in the workspace.
    pub(crate) fn watch(&self, workspace: &WorkspaceId) -> watch::Receiver<u64> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MOST_WATCHED {
            waiting.retain(|_, sender| sender.receiver_count() > 0);
        }
        waiting.entry(workspace.clone()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// What arrives in a mailbox, shared by all who wait there.
    pub(crate) fn arrivals(&self, mailbox: &MailboxId) -> Arc<Arrivals> {
        let mut arrivals = lock(&self.arrivals);
        if arrivals.len() >= MOST_WATCHED {
            arrivals.retain(|_, arrivals| Arc::strong_count(arrivals) > 1);
        }
        arrivals.entry(mailbox.clone()).or_default().clone()
    }

    fn tell(&self, wake: &Wake) {
        if let Some(sender) = lock(&self.waiting).get(&wake.workspace) {
            sender.send_modify(|count| *count += 1);
        }
        if let Some(mailbox) = &wake.mailbox
            && let Some(arrivals) = lock(&self.arrivals).get(mailbox)
        {
            arrivals.tell();
        }
    }

    fn tell_all(&self) {
        for sender in lock(&self.waiting).values() {
            sender.send_modify(|count| *count += 1);
        }
        for arrivals in lock(&self.arrivals).values() {
            arrivals.tell();
        }
    }

    /// Passes on the wake-ups of all nodes for as long as anybody can be waiting here.
    pub(crate) async fn pass_on(news: Weak<Self>, mut wakes: Receiver<Wake>) -> Exit {
        // Wake-ups from before a restart are lost.
        if let Some(news) = news.upgrade() {
            news.tell_all();
        }
        loop {
            let wake = wakes.recv().await;
            let Some(news) = news.upgrade() else { return Exit::Finished };
            match wake {
                Ok(wake) => news.tell(&wake),
                // Some were lost: everybody looks again.
                Err(RecvError::Lagged(_)) => news.tell_all(),
                Err(RecvError::Closed) => return Exit::Finished,
            }
        }
    }
}
