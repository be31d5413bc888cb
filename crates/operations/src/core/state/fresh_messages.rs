//! Messages that were submitted a moment ago: their first delivery need not read and open them again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Mutex,
    time::Duration,
};

use bytes::Bytes;
use model::WorkspaceId;
use store::outbound::OutboundRecord;
use tokio::time::Instant;

use crate::core::lock::lock;

/// Maximum bytes of all of them; beyond it the oldest are forgotten.
const MAX_BYTES: usize = 4 << 20;
/// How long they are kept. Claims on them are younger, and hold for twice as long.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The workspace of a message, and its id in the queue.
type Key = (WorkspaceId, String);

/// Messages that wait for their first delivery.
#[derive(Default)]
pub(crate) struct FreshMessages(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The oldest first.
    messages: BTreeMap<u64, FreshMessage>,
    numbers: HashMap<Key, u64>,
    next: u64,
    bytes: usize,
}

struct FreshMessage {
    key: Key,
    since: Instant,
    mail: OutboundRecord,
    message: Bytes,
}

impl FreshMessages {
    /// Keeps a message that is about to be queued.
    pub(crate) fn keep(&self, workspace: &WorkspaceId, mail: OutboundRecord, message: Bytes) {
        let key = (workspace.clone(), mail.id.clone());
        let mut kept = lock(&self.0);
        // A transaction may run more than once.
        kept.remove(&key);
        kept.bytes += message.len();
        let number = kept.next;
        kept.next += 1;
        kept.numbers.insert(key.clone(), number);
        kept.messages.insert(number, FreshMessage { key, since: Instant::now(), mail, message });
        while let Some((_, oldest)) = kept.messages.first_key_value()
            && (kept.bytes > MAX_BYTES || oldest.since.elapsed() >= MAX_AGE)
        {
            let key = oldest.key.clone();
            kept.remove(&key);
        }
    }

    /// Takes a message, if it is still kept.
    pub(crate) fn take(&self, workspace: &WorkspaceId, id: &str) -> Option<(OutboundRecord, Bytes)> {
        let found = lock(&self.0).remove(&(workspace.clone(), id.to_owned()))?;
        (found.since.elapsed() < MAX_AGE).then_some((found.mail, found.message))
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) -> Option<FreshMessage> {
        let number = self.numbers.remove(key)?;
        let found = self.messages.remove(&number)?;
        self.bytes -= found.message.len();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Timestamp,
        outbound::{OutboundKind, ReportState},
    };

    use super::*;

    fn mail(id: usize) -> OutboundRecord {
        OutboundRecord {
            id: id.to_string(),
            mailbox_id: None,
            email_id: None,
            kind: OutboundKind::Email,
            content_id: String::new(),
            prefix: String::new(),
            sender: None,
            message_id: None,
            created_at: Timestamp::from_micros(0),
            expires_at: Timestamp::from_micros(0),
            report: ReportState::None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_taken_once_and_forgotten_when_they_are_many_or_old() {
        let fresh = FreshMessages::default();
        let workspace = WorkspaceId::from("ws");
        let keep = |id: usize, bytes: usize| fresh.keep(&workspace, mail(id), Bytes::from(vec![0; bytes]));
        let take = |id: usize| fresh.take(&workspace, &id.to_string()).map(|(_, message)| message.len());
        keep(1, 10);
        keep(1, 20);
        assert_eq!((take(1), take(1)), (Some(20), None));
        (0..10).for_each(|id| keep(id, MAX_BYTES / 4));
        assert_eq!((0..10).filter_map(take).count(), 4, "the last ones");
        keep(1, 2 * MAX_BYTES);
        assert_eq!(take(1), None);
        keep(2, 10);
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(take(2), None);
        keep(3, 10);
        tokio::time::advance(MAX_AGE).await;
        keep(4, 10);
        let sizes = || {
            let kept = lock(&fresh.0);
            (kept.messages.len(), kept.numbers.len(), kept.bytes)
        };
        assert_eq!(sizes(), (1, 1, 10));
        assert_eq!(take(4), Some(10));
        assert_eq!(sizes(), (0, 0, 0));
    }
}
