//! Wake-ups: what one node tells all others the moment a transaction is durable.
//!
//! They only say where to look. Whoever listens reads the truth from the store, so a lost wake-up costs time, never
//! correctness.

use model::{MailboxId, WorkspaceId};

/// A reason to look at the store again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// What happened, such as `recall`.
    pub topic: String,
    /// Where.
    pub workspace: WorkspaceId,
    /// In which mailbox, if it is about one.
    pub mailbox: Option<MailboxId>,
}

impl Wake {
    /// The notification channel in PostgreSQL.
    pub(super) const CHANNEL: &str = "agent_mailbox";

    pub(super) fn encode(&self) -> String {
        match &self.mailbox {
            Some(mailbox) => format!("{} {} {mailbox}", self.topic, self.workspace),
            None => format!("{} {}", self.topic, self.workspace),
        }
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (topic, workspace) = (words.next()?, words.next()?);
        Some(Self {
            topic: topic.to_owned(),
            workspace: WorkspaceId::from(workspace),
            mailbox: words.next().map(MailboxId::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_survives_the_channel() {
        for mailbox in [None, Some(MailboxId::from("mbx_1"))] {
            let wake = Wake { topic: "event".to_owned(), workspace: WorkspaceId::from("ws_1"), mailbox };
            assert_eq!(Wake::decode(&wake.encode()), Some(wake));
        }
        assert_eq!(Wake::decode("event"), None);
    }
}
