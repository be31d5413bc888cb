//! Wake-ups: notifications to all nodes after a commit.
//!
//! They only say where to look. Listeners read the state from the store, so a lost wake-up costs time, never
//! correctness. Each topic has its own channel, so that an incoming message does not wake the schedule workers.
//!
//! A call that waits for something is told of it on every node. Workers are told of what happened on their own node, and of
//! what happened on nodes that have no such workers: otherwise every message would cost every node a statement.

use model::{MailboxId, WorkspaceId};
use tokio::sync::broadcast::{self, error::RecvError};

/// Wake-ups that a topic's channel buffers.
const WAKE_CAPACITY: usize = 1024;

/// What a wake-up is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// New events in the log.
    Event,
    /// A schedule that is new or changed.
    Schedule,
    /// Queued messages.
    Queue,
    /// Messages to triage.
    Triage,
    /// A webhook that is new or due.
    Webhook,
    /// A document to be indexed.
    Document,
    /// Leases to be released.
    Recall,
}

impl Topic {
    const ALL: [Self; 7] =
        [Self::Event, Self::Schedule, Self::Queue, Self::Triage, Self::Webhook, Self::Document, Self::Recall];

    /// Its name in notifications.
    const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Schedule => "schedule",
            Self::Queue => "queue",
            Self::Triage => "triage",
            Self::Webhook => "webhook",
            Self::Document => "document",
            Self::Recall => "recall",
        }
    }
}

/// A notification that something changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wake {
    /// What happened.
    pub topic: Topic,
    /// Where.
    pub workspace: WorkspaceId,
    /// In which mailbox, if it concerns one.
    pub mailbox: Option<MailboxId>,
    /// Whether workers of the node where it happened have been told.
    pub handled: bool,
}

/// The word for it in notifications.
const HANDLED: &str = "handled";
/// Stands for no mailbox where another word follows.
const NO_MAILBOX: &str = "-";

impl Wake {
    /// The NOTIFY channel of PostgreSQL.
    pub(super) const CHANNEL: &str = "agent_mailbox";

    pub(super) fn encode(&self) -> String {
        let (topic, workspace) = (self.topic.name(), &self.workspace);
        match (&self.mailbox, self.handled) {
            (Some(mailbox), false) => format!("{topic} {workspace} {mailbox}"),
            (None, false) => format!("{topic} {workspace}"),
            (Some(mailbox), true) => format!("{topic} {workspace} {mailbox} {HANDLED}"),
            (None, true) => format!("{topic} {workspace} {NO_MAILBOX} {HANDLED}"),
        }
    }

    /// Parses a notification; `None` when its topic is only known to a newer version.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (name, workspace) = (words.next()?, words.next()?);
        Some(Self {
            topic: Topic::ALL.into_iter().find(|topic| topic.name() == name)?,
            workspace: WorkspaceId::from(workspace),
            mailbox: words.next().filter(|word| *word != NO_MAILBOX).map(MailboxId::from),
            handled: words.next() == Some(HANDLED),
        })
    }
}

/// A channel for each topic.
type Channels = [broadcast::Sender<Wake>; Topic::ALL.len()];

/// Sends wake-ups to the listeners of this process.
#[derive(Clone)]
pub(super) struct Wakes {
    /// For those who hear of what happens on any node.
    all: Channels,
    /// For workers.
    work: Channels,
}

impl Wakes {
    pub(super) fn new() -> Self {
        let channels = || Topic::ALL.map(|_| broadcast::channel(WAKE_CAPACITY).0);
        Self { all: channels(), work: channels() }
    }

    pub(super) fn listen(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.all[topic as usize].subscribe()
    }

    pub(super) fn listen_for_work(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.work[topic as usize].subscribe()
    }

    /// Whether workers of this process listen to a topic.
    pub(super) fn has_workers(&self, topic: Topic) -> bool {
        self.work[topic as usize].receiver_count() > 0
    }

    pub(super) fn send(&self, wake: Wake) {
        // No listeners is fine.
        if !wake.handled {
            let _ = self.work[wake.topic as usize].send(wake.clone());
        }
        let _ = self.all[wake.topic as usize].send(wake);
    }
}

/// Waits for a wake-up; a lost one counts too. Pending forever when the store is closed.
pub async fn wait_for_wake(wakes: &mut broadcast::Receiver<Wake>) {
    if let Err(RecvError::Closed) = wakes.recv().await {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(topic: Topic, mailbox: Option<MailboxId>) -> Wake {
        Wake { topic, workspace: WorkspaceId::from("ws_1"), mailbox, handled: false }
    }

    #[test]
    fn a_wake_up_survives_the_channel() {
        for topic in Topic::ALL {
            for mailbox in [None, Some(MailboxId::from("mbx_1"))] {
                for handled in [false, true] {
                    let wake = Wake { handled, ..wake(topic, mailbox.clone()) };
                    assert_eq!(Wake::decode(&wake.encode()), Some(wake));
                }
            }
        }
        assert_eq!(Wake::decode("event"), None);
        assert_eq!(Wake::decode("unheard-of ws_1"), None);
    }

    #[test]
    fn only_those_who_listen_to_a_topic_are_woken() {
        let wakes = Wakes::new();
        let mut listeners = Topic::ALL.map(|topic| wakes.listen(topic));
        for (index, topic) in Topic::ALL.into_iter().enumerate() {
            wakes.send(wake(topic, None));
            let heard: Vec<bool> = listeners.iter_mut().map(|listener| listener.try_recv().is_ok()).collect();
            assert_eq!(heard.iter().filter(|heard| **heard).count(), 1);
            assert!(heard[index], "{topic:?}");
        }
    }

    #[test]
    fn workers_are_not_told_of_what_others_do() {
        let wakes = Wakes::new();
        let (mut all, mut work) = (wakes.listen(Topic::Event), wakes.listen_for_work(Topic::Event));
        assert!(wakes.has_workers(Topic::Event) && !wakes.has_workers(Topic::Queue));
        wakes.send(Wake { handled: true, ..wake(Topic::Event, None) });
        assert!(all.try_recv().is_ok() && work.try_recv().is_err());
        wakes.send(wake(Topic::Event, None));
        assert!(all.try_recv().is_ok() && work.try_recv().is_ok());
        drop(work);
        assert!(!wakes.has_workers(Topic::Event));
    }
}
