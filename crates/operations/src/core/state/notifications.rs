//! Notifies callers that wait on this node about events in their workspace or mailbox, on any node.
//!
//! Wake-ups of other nodes are not durable: a node may end between its commit and its wake-up. So where there may be
//! other nodes, the event counters of the watched workspaces are polled too.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use model::{MailboxId, WorkspaceId};
use store::{Db, Wake, events};
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        watch,
    },
    time::MissedTickBehavior,
};

use super::arrivals::Arrivals;
use crate::core::{lock::lock, supervisor::Exit};

/// How often the event counters are polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Notifies callers that wait on this node.
#[derive(Default)]
pub(crate) struct Notifications {
    waiting: Mutex<HashMap<WorkspaceId, watch::Sender<u64>>>,
    arrivals: Mutex<HashMap<MailboxId, WatchedMailbox>>,
}

struct WatchedMailbox {
    workspace: WorkspaceId,
    arrivals: Arc<Arrivals>,
}

/// Watched workspaces or mailboxes; beyond it those without subscribers are dropped.
const MAX_WATCHED: usize = 1024;

impl Notifications {
    /// Changes after every event in the workspace.
    pub(crate) fn subscribe(&self, workspace: &WorkspaceId) -> watch::Receiver<u64> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WATCHED {
            waiting.retain(|_, sender| sender.receiver_count() > 0);
        }
        waiting.entry(workspace.clone()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// New messages in a mailbox, shared by all callers that wait there.
    pub(crate) fn arrivals(&self, workspace: &WorkspaceId, mailbox: &MailboxId) -> Arc<Arrivals> {
        let mut arrivals = lock(&self.arrivals);
        if arrivals.len() >= MAX_WATCHED {
            arrivals.retain(|_, watched| Arc::strong_count(&watched.arrivals) > 1);
        }
        let new = || WatchedMailbox { workspace: workspace.clone(), arrivals: Arc::default() };
        arrivals.entry(mailbox.clone()).or_insert_with(new).arrivals.clone()
    }

    fn publish(&self, wake: &Wake) {
        if let Some(sender) = lock(&self.waiting).get(&wake.workspace) {
            sender.send_modify(|count| *count += 1);
        }
        if let Some(mailbox) = &wake.mailbox
            && let Some(watched) = lock(&self.arrivals).get(mailbox)
        {
            watched.arrivals.notify();
        }
    }

    /// Notifies all who wait in some workspaces.
    fn publish_to(&self, is_meant: impl Fn(&WorkspaceId) -> bool) {
        for (_, sender) in lock(&self.waiting).iter().filter(|(workspace, _)| is_meant(workspace)) {
            sender.send_modify(|count| *count += 1);
        }
        for watched in lock(&self.arrivals).values().filter(|watched| is_meant(&watched.workspace)) {
            watched.arrivals.notify();
        }
    }

    fn publish_to_all(&self) {
        self.publish_to(|_| true);
    }

    /// The workspaces in which somebody waits.
    fn watched(&self) -> HashSet<WorkspaceId> {
        let is_used = |watched: &&WatchedMailbox| Arc::strong_count(&watched.arrivals) > 1;
        let mut all: HashSet<WorkspaceId> =
            lock(&self.arrivals).values().filter(is_used).map(|watched| watched.workspace.clone()).collect();
        let waiting = lock(&self.waiting);
        let waiting = waiting.iter().filter(|(_, sender)| sender.receiver_count() > 0);
        all.extend(waiting.map(|(workspace, _)| workspace.clone()));
        all
    }

    /// Polls the event counters of the watched workspaces while the service lives, and notifies those who wait where one
    /// has changed. A workspace that was not watched at the last poll counts as changed. Between two polls it holds
    /// nothing of the service.
    pub(crate) async fn poll(service: impl Fn() -> Option<(Arc<Self>, Db)>) -> Exit {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last: HashMap<WorkspaceId, i64> = HashMap::new();
        loop {
            ticks.tick().await;
            let Some((notifications, db)) = service() else { return Exit::Finished };
            let watched = notifications.watched();
            if watched.is_empty() {
                last.clear();
                continue;
            }
            let watched: Vec<WorkspaceId> = watched.into_iter().collect();
            let read = db.system_read(async move |tx| events::last_sequences(tx, &watched).await).await;
            let now: HashMap<WorkspaceId, i64> = match read {
                Ok(found) => found.into_iter().collect(),
                Err(error) => {
                    tracing::debug!(%error, "event counters unreadable; polling again");
                    continue;
                }
            };
            notifications.publish_to(|workspace| now.get(workspace) != last.get(workspace));
            last = now;
        }
    }

    /// Forwards the wake-ups of all nodes while the service lives.
    pub(crate) async fn forward(notifications: Weak<Self>, mut wakes: Receiver<Wake>) -> Exit {
        // Wake-ups from before a restart are lost.
        if let Some(notifications) = notifications.upgrade() {
            notifications.publish_to_all();
        }
        loop {
            let wake = wakes.recv().await;
            let Some(notifications) = notifications.upgrade() else { return Exit::Finished };
            match wake {
                Ok(wake) => notifications.publish(&wake),
                // Some were lost: notify everyone.
                Err(RecvError::Lagged(_)) => notifications.publish_to_all(),
                Err(RecvError::Closed) => return Exit::Finished,
            }
        }
    }
}
