//! New messages in a mailbox, read from the store once for all callers that wait there.
//!
//! A message wakes every call that waits in its mailbox. If each of a thousand read the store, it would be busy for a
//! tenth of a second, and the caller whose message it is would wait behind half of them.

use std::sync::{Arc, Mutex};

use model::{MailboxId, WorkspaceId};
use store::{
    Db,
    emails::{self, EmailRecord},
};
use tokio::sync::watch;

use crate::core::{error::Result, lock::lock};

/// Messages per read.
const BATCH: i64 = 200;

/// New messages in one mailbox.
pub(crate) struct Arrivals {
    /// Counts notifications.
    version: watch::Sender<u64>,
    /// The last snapshot of the store.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
    /// Locked during a read, so that the other callers use its snapshot.
    reading: tokio::sync::Mutex<()>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            version: watch::Sender::new(0),
            snapshot: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }
}

/// The result of a read.
struct Snapshot {
    /// The notification count that it includes.
    version: u64,
    /// It has the messages after this arrival number.
    after: i64,
    emails: Vec<EmailRecord>,
}

/// The messages after an arrival number.
pub(crate) struct NewEmails {
    snapshot: Arc<Snapshot>,
    after: i64,
}

impl NewEmails {
    /// The messages, oldest first.
    pub(crate) fn emails(&self) -> impl Iterator<Item = &EmailRecord> {
        self.snapshot.emails.iter().filter(|email| email.arrival > self.after)
    }

    /// Whether there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.snapshot.is_full()
    }
}

impl Snapshot {
    fn is_full(&self) -> bool {
        i64::try_from(self.emails.len()).is_ok_and(|count| count >= BATCH)
    }

    /// Whether a read after this notification would return the same.
    fn serves(&self, version: u64, after: i64) -> bool {
        self.version >= version && self.after <= after && !self.is_full()
    }
}

impl Arrivals {
    pub(crate) fn notify(&self) {
        self.version.send_modify(|count| *count += 1);
    }

    /// Changes after every event in the mailbox.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// The messages after an arrival number, at least as new as the given notification; without one, as they are now.
    pub(crate) async fn load(
        &self,
        db: &Db,
        workspace: &WorkspaceId,
        mailbox: &MailboxId,
        version: Option<u64>,
        after: i64,
    ) -> Result<NewEmails> {
        let snapshot = || version.and_then(|version| self.snapshot_since(version, after));
        if let Some(snapshot) = snapshot() {
            return Ok(NewEmails { snapshot, after });
        }
        // A caller that needs the current state gains nothing by waiting for another read.
        let _turn = if version.is_some() { Some(self.reading.lock().await) } else { None };
        if let Some(snapshot) = snapshot() {
            return Ok(NewEmails { snapshot, after });
        }
        // Events from here on are newer than this snapshot.
        let version = *self.version.borrow();
        let id = mailbox.clone();
        let emails =
            db.read(workspace, async move |tx| emails::list_arrived(tx, &id, after, BATCH).await).await?;
        let snapshot = Arc::new(Snapshot { version, after, emails });
        *lock(&self.snapshot) = Some(snapshot.clone());
        Ok(NewEmails { snapshot, after })
    }

    fn snapshot_since(&self, version: u64, after: i64) -> Option<Arc<Snapshot>> {
        lock(&self.snapshot).clone().filter(|snapshot| snapshot.serves(version, after))
    }
}
