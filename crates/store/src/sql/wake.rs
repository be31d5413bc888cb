//! Wake-ups: what one node tells all others the moment a transaction is durable.
//!
//! They only say where to look. Whoever listens reads the truth from the store, so a lost wake-up costs time, never
//! correctness. Each topic has a channel of its own, so that a mail that comes in wakes nobody who sends schedules.

use model::{MailboxId, WorkspaceId};
use tokio::sync::broadcast::{self, error::RecvError};

/// Wake-ups of a topic that a listener may be behind.
const BEHIND: usize = 1024;

/// What a wake-up is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// New events in the log.
    Event,
    /// A schedule that is new or changed.
    Schedule,
    /// Mail in the queue.
    Queue,
    /// Mail for triagers.
    Triage,
    /// A webhook that is new or due.
    Webhook,
    /// A document to be indexed.
    Document,
    /// Leases that are to be given back.
    Recall,
}

impl Topic {
    const ALL: [Self; 7] =
        [Self::Event, Self::Schedule, Self::Queue, Self::Triage, Self::Webhook, Self::Document, Self::Recall];

    /// Its name on the way between nodes.
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

/// A reason to look at the store again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// What happened.
    pub topic: Topic,
    /// Where.
    pub workspace: WorkspaceId,
    /// In which mailbox, if it is about one.
    pub mailbox: Option<MailboxId>,
}

impl Wake {
    /// The notification channel in PostgreSQL.
    pub(super) const CHANNEL: &str = "agent_mailbox";

    pub(super) fn encode(&self) -> String {
        let topic = self.topic.name();
        match &self.mailbox {
            Some(mailbox) => format!("{topic} {} {mailbox}", self.workspace),
            None => format!("{topic} {}", self.workspace),
        }
    }

    /// Reads what a node sent; nothing when it is of a topic that only a newer one knows.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (name, workspace) = (words.next()?, words.next()?);
        Some(Self {
            topic: Topic::ALL.into_iter().find(|topic| topic.name() == name)?,
            workspace: WorkspaceId::from(workspace),
            mailbox: words.next().map(MailboxId::from),
        })
    }
}

/// Hands wake-ups to those who listen in this process.
#[derive(Clone)]
pub(super) struct Wakes([broadcast::Sender<Wake>; Topic::ALL.len()]);

impl Wakes {
    pub(super) fn new() -> Self {
        Self(Topic::ALL.map(|_| broadcast::channel(BEHIND).0))
    }

    pub(super) fn listen(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.0[topic as usize].subscribe()
    }

    pub(super) fn send(&self, wake: Wake) {
        // Nobody listening is fine.
        let _ = self.0[wake.topic as usize].send(wake);
    }
}

/// Waits for a wake-up; one that was lost is as good. Without end when the store is closed.
pub async fn woken(wakes: &mut broadcast::Receiver<Wake>) {
    if let Err(RecvError::Closed) = wakes.recv().await {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(topic: Topic, mailbox: Option<MailboxId>) -> Wake {
        Wake { topic, workspace: WorkspaceId::from("ws_1"), mailbox }
    }

    #[test]
    fn a_wake_up_survives_the_channel() {
        for topic in Topic::ALL {
            for mailbox in [None, Some(MailboxId::from("mbx_1"))] {
                let wake = wake(topic, mailbox);
                assert_eq!(Wake::decode(&wake.encode()), Some(wake));
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
}
