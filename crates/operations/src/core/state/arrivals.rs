//! What arrives in a mailbox, read once for all who wait there.
//!
//! A mail wakes every call that waits in its mailbox. Were each to ask the store, a thousand of them would keep it busy
//! for a tenth of a second, and the one whose mail it is would wait for half of the others.

use std::sync::{Arc, Mutex};

use model::{MailboxId, WorkspaceId};
use store::{
    Db,
    emails::{self, EmailRecord},
};
use tokio::sync::watch;

use crate::core::{error::Result, lock::lock};

/// Mails that are looked at in one go.
const BATCH: i64 = 200;

/// What arrives in one mailbox.
pub(crate) struct Arrivals {
    /// Counts the times that something happened.
    news: watch::Sender<u64>,
    /// The last look at the store.
    seen: Mutex<Option<Arc<Snapshot>>>,
    /// Held while somebody looks, so that the others find what was seen.
    looking: tokio::sync::Mutex<()>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { news: watch::Sender::new(0), seen: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }
}

/// A look at the store.
struct Snapshot {
    /// The news that it came after.
    news: u64,
    /// Mails behind this arrival were looked for.
    after: i64,
    mails: Vec<EmailRecord>,
}

/// The mails behind an arrival.
pub(crate) struct Arrived {
    look: Arc<Snapshot>,
    after: i64,
}

impl Arrived {
    /// The mails, oldest first.
    pub(crate) fn mails(&self) -> impl Iterator<Item = &EmailRecord> {
        self.look.mails.iter().filter(|mail| mail.arrival > self.after)
    }

    /// Whether there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.look.is_full()
    }
}

impl Snapshot {
    fn is_full(&self) -> bool {
        i64::try_from(self.mails.len()).is_ok_and(|count| count >= BATCH)
    }

    /// Whether it shows what another one would, that came after the given news.
    fn serves(&self, news: u64, after: i64) -> bool {
        self.news >= news && self.after <= after && !self.is_full()
    }
}

impl Arrivals {
    pub(crate) fn notify(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Changes whenever something happened in the mailbox.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// The mails behind an arrival, as they are after the given news; as they are now where none are given.
    pub(crate) async fn look(
        &self,
        db: &Db,
        workspace: &WorkspaceId,
        mailbox: &MailboxId,
        news: Option<u64>,
        after: i64,
    ) -> Result<Arrived> {
        let seen = || news.and_then(|news| self.seen_since(news, after));
        if let Some(look) = seen() {
            return Ok(Arrived { look, after });
        }
        // Whoever needs the present state gains nothing by waiting for others.
        let _turn = if news.is_some() { Some(self.looking.lock().await) } else { None };
        if let Some(look) = seen() {
            return Ok(Arrived { look, after });
        }
        // What happens from here on is news again.
        let news = *self.news.borrow();
        let id = mailbox.clone();
        let mails =
            db.read(workspace, async move |tx| emails::list_arrived(tx, &id, after, BATCH).await).await?;
        let look = Arc::new(Snapshot { news, after, mails });
        *lock(&self.seen) = Some(look.clone());
        Ok(Arrived { look, after })
    }

    fn seen_since(&self, news: u64, after: i64) -> Option<Arc<Snapshot>> {
        lock(&self.seen).clone().filter(|look| look.serves(news, after))
    }
}
