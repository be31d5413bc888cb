//! Work for the memory that goes on beside the doors: reading documents, taking mail in, making vectors anew.

use std::{collections::HashSet, time::Duration};

use store::{Topic, Wake, woken};
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

/// How long a document waits at most for somebody to look.
const IDLE_POLL: Duration = Duration::from_secs(5);
/// How long is waited after something did not work.
const PAUSE: Duration = Duration::from_secs(5);
/// How often all mailboxes are looked at, in case that news were missed.
const ALL: Duration = Duration::from_mins(10);
/// How long another node is left alone with a mailbox.
const HELD: Duration = Duration::from_secs(mail::CLAIM_SECONDS.unsigned_abs());
/// How often vectors of another model are looked for.
const RENEW: Duration = Duration::from_mins(10);
/// Mailboxes that are remembered as having news; beyond that all are looked at.
const MAX_PENDING: usize = 10_000;

/// Indexes documents.
pub(super) async fn index_documents(app: App) {
    if app.db().is_sole_node()
        && let Err(error) = worker::release_lost(&app).await
    {
        tracing::warn!(%error, "documents of the last run wait a little longer");
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
                tracing::warn!(%error, "documents wait to be indexed");
                tokio::time::sleep(PAUSE).await;
            }
        }
        let _ = tokio::time::timeout(IDLE_POLL, woken(&mut wakes)).await;
    }
}

/// Whether mail is taken into memory at all.
pub(super) fn takes_mail(app: &App) -> bool {
    mail::is_on(app)
}

/// Takes mail into memory.
pub(super) async fn take_mail(app: App) {
    let mut wakes = app.db().listen(Topic::Event);
    let mut news = PendingMailboxes { all: true, ..PendingMailboxes::default() };
    let mut looked = Instant::now();
    loop {
        if news.all || looked.elapsed() > ALL {
            looked = Instant::now();
            match mail::all_behind(&app).await {
                Ok(behind) => {
                    news = PendingMailboxes {
                        behind: behind.into_iter().collect(),
                        ..PendingMailboxes::default()
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "mail waits to be taken into memory");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
        }
        while let Some(mailbox) = news.behind.iter().next().cloned() {
            match isolate("mail-memory", mail::take_some(&app, &mailbox)).await {
                // A mailbox with much mail takes turns with the others.
                Ok(Progress::More) => {}
                Ok(Progress::Done) => _ = news.behind.remove(&mailbox),
                Ok(Progress::Held) => {
                    news.behind.remove(&mailbox);
                    news.held.insert(mailbox);
                }
                Err(error) => {
                    tracing::warn!(%error, workspace = %mailbox.0, "mail waits to be taken into memory");
                    news.behind.remove(&mailbox);
                    news.all = true;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            while let Ok(wake) = wakes.try_recv() {
                news.hear(wake);
            }
        }
        news.wait(&mut wakes).await;
    }
}

/// Mailboxes in which something happened.
#[derive(Default)]
struct PendingMailboxes {
    behind: HashSet<mail::Behind>,
    /// Those that another node has.
    held: HashSet<mail::Behind>,
    /// Whether any other may have news too.
    all: bool,
}

impl PendingMailboxes {
    fn hear(&mut self, wake: Wake) {
        match wake.mailbox {
            Some(mailbox) if self.behind.len() < MAX_PENDING => {
                self.behind.insert((wake.workspace, mailbox));
            }
            Some(_) => self.all = true,
            None => {}
        }
    }

    /// Waits until something happened somewhere.
    async fn wait(&mut self, wakes: &mut Receiver<Wake>) {
        let patience = if self.held.is_empty() { ALL } else { HELD };
        let deadline = Instant::now() + patience;
        while self.behind.is_empty() && !self.all {
            match tokio::time::timeout_at(deadline, wakes.recv()).await {
                Ok(Ok(wake)) => self.hear(wake),
                Ok(Err(RecvError::Closed)) => tokio::time::sleep(PAUSE).await,
                // That node may be gone.
                Err(_) if !self.held.is_empty() => self.behind = std::mem::take(&mut self.held),
                Ok(Err(RecvError::Lagged(_))) | Err(_) => self.all = true,
            }
        }
    }
}

/// Makes vectors anew that another model made.
pub(super) async fn renew_vectors(app: App) {
    loop {
        match isolate("vectors", renew::renew_some(&app)).await {
            Ok(0) => tokio::time::sleep(jitter(&app, RENEW)).await,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "vectors of another model wait to be made anew");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
