//! Notifies callers that wait on this node about events in their workspace or mailbox, on any node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use model::{MailboxId, WorkspaceId};
use store::Wake;
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    watch,
};

use super::arrivals::Arrivals;
use crate::core::{lock::lock, supervisor::Exit};

/// Notifies callers that wait on this node.
#[derive(Default)]
pub(crate) struct Notifications {
    waiting: Mutex<HashMap<WorkspaceId, watch::Sender<u64>>>,
    arrivals: Mutex<HashMap<MailboxId, Arc<Arrivals>>>,
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
    pub(crate) fn arrivals(&self, mailbox: &MailboxId) -> Arc<Arrivals> {
        let mut arrivals = lock(&self.arrivals);
        if arrivals.len() >= MAX_WATCHED {
            arrivals.retain(|_, arrivals| Arc::strong_count(arrivals) > 1);
        }
        arrivals.entry(mailbox.clone()).or_default().clone()
    }

    fn publish(&self, wake: &Wake) {
        if let Some(sender) = lock(&self.waiting).get(&wake.workspace) {
            sender.send_modify(|count| *count += 1);
        }
        if let Some(mailbox) = &wake.mailbox
            && let Some(arrivals) = lock(&self.arrivals).get(mailbox)
        {
            arrivals.notify();
        }
    }

    fn publish_to_all(&self) {
        for sender in lock(&self.waiting).values() {
            sender.send_modify(|count| *count += 1);
        }
        for arrivals in lock(&self.arrivals).values() {
            arrivals.notify();
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
