//! The background workers of memory: indexing documents, indexing mail, re-embedding.

use std::{collections::HashSet, time::Duration};

use store::{Topic, Wake, wait_for_wake};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};

use crate::{
    core::{app::App, jitter::jitter, supervisor::isolate},
    recall::{
        knowledge::worker,
        memory::{
            mail::{self, Progress},
            renew,
        },
    },
};

/// How often documents are polled without a notification.
const IDLE_POLL: Duration = Duration::from_secs(5);
/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often all mailboxes are checked, in case a notification was missed.
const FULL_CHECK_INTERVAL: Duration = Duration::from_mins(10);
/// How long a mailbox claimed by another node is left alone.
const CLAIMED_PAUSE: Duration = Duration::from_secs(mail::CLAIM_SECONDS.unsigned_abs());
/// How often vectors of another model are looked for.
const RE_EMBED_INTERVAL: Duration = Duration::from_mins(10);
/// Mailboxes in the pending set; beyond it all are checked.
const MAX_PENDING: usize = 10_000;

/// Indexes documents.
pub(super) async fn index_documents(app: App) {
    if app.db().is_sole_node()
        && let Err(error) = worker::release_lost(&app).await
    {
        tracing::warn!(%error, "document claims of the last run not released; they will expire");
    }
    let work = (0..worker::MAX_CONCURRENT).map(|_| index_in_turn(&app, app.db().listen(Topic::Document)));
    futures_util::future::join_all(work).await;
}

async fn index_in_turn(app: &App, mut wakes: Receiver<Wake>) {
    loop {
        match worker::index_next(app).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "document indexing failed; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
        let _ = tokio::time::timeout(IDLE_POLL, wait_for_wake(&mut wakes)).await;
    }
}

/// Whether mail is indexed at all.
pub(super) fn is_on(app: &App) -> bool {
    mail::is_on(app)
}

/// Indexes mail for memory.
pub(super) async fn index_mail(app: App) {
    let mut wakes = app.db().listen_for_work(Topic::Event);
    let mut pending = PendingMailboxes { all: true, ..PendingMailboxes::default() };
    let mut checked = Instant::now();
    loop {
        if pending.all || checked.elapsed() > FULL_CHECK_INTERVAL {
            checked = Instant::now();
            match mail::list_pending(&app).await {
                Ok(behind) => {
                    pending = PendingMailboxes {
                        behind: behind.into_iter().collect(),
                        ..PendingMailboxes::default()
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "mail indexing failed; retrying");
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            }
        }
        while !pending.behind.is_empty() {
            // In rounds: a mailbox with much mail takes turns with the others.
            for mailbox in Vec::from_iter(pending.behind.clone()) {
                index_mailbox(&app, &mut pending, mailbox).await;
                while let Ok(wake) = wakes.try_recv() {
                    pending.add(wake);
                }
            }
        }
        pending.wait(&mut wakes).await;
    }
}

/// Indexes the next messages of a mailbox.
async fn index_mailbox(app: &App, pending: &mut PendingMailboxes, mailbox: mail::PendingMailbox) {
    match isolate("mail-memory", mail::index_some(app, &mailbox)).await {
        Ok(Progress::More) => {}
        Ok(Progress::Done) => _ = pending.behind.remove(&mailbox),
        Ok(Progress::Claimed) => {
            pending.behind.remove(&mailbox);
            pending.claimed.insert(mailbox);
        }
        Err(error) => {
            tracing::warn!(%error, workspace = %mailbox.0, "mail indexing failed; retrying");
            pending.behind.remove(&mailbox);
            pending.all = true;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Mailboxes with new events.
#[derive(Default)]
struct PendingMailboxes {
    behind: HashSet<mail::PendingMailbox>,
    /// Those claimed by another node.
    claimed: HashSet<mail::PendingMailbox>,
    /// Whether any other may have events too.
    all: bool,
}

impl PendingMailboxes {
    fn add(&mut self, wake: Wake) {
        match wake.mailbox {
            Some(mailbox) if self.behind.len() < MAX_PENDING => {
                self.behind.insert((wake.workspace, mailbox));
            }
            Some(_) => self.all = true,
            None => {}
        }
    }

    /// Waits for the next event.
    async fn wait(&mut self, wakes: &mut Receiver<Wake>) {
        let timeout = if self.claimed.is_empty() { FULL_CHECK_INTERVAL } else { CLAIMED_PAUSE };
        let deadline = Instant::now() + timeout;
        while self.behind.is_empty() && !self.all {
            match tokio::time::timeout_at(deadline, wakes.recv()).await {
                Ok(Ok(wake)) => self.add(wake),
                Ok(Err(RecvError::Closed)) => tokio::time::sleep(RETRY_DELAY).await,
                // That node may be gone.
                Err(_) if !self.claimed.is_empty() => self.behind = std::mem::take(&mut self.claimed),
                Ok(Err(RecvError::Lagged(_))) | Err(_) => self.all = true,
            }
        }
    }
}

/// Re-embeds passages of another model.
pub(super) async fn re_embed(app: App) {
    loop {
        match isolate("vectors", renew::re_embed_some(&app)).await {
            Ok(0) => tokio::time::sleep(jitter(&app, RE_EMBED_INTERVAL)).await,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "re-embedding failed; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}
