//! What is sent: messages in the queue and schedules, each of which must arrive once.

use std::collections::HashMap;

use model::Timestamp;
use testkit::Hop;

/// Whether a message should arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was accepted.
    Arrives,
    /// It was cancelled in time.
    Cancelled,
    /// Nobody was told.
    Unknown,
}

#[derive(Debug)]
struct Message {
    fate: Fate,
    /// How often the other server puts it off.
    deferrals: usize,
    /// How often a process died after the other server had taken it.
    repeats: usize,
}

/// A schedule that can still be cancelled.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) tenant: usize,
    pub(super) id: String,
    pub(super) recipient: String,
    pub(super) at: Timestamp,
}

/// Everything that was ever sent, by recipient.
#[derive(Default)]
pub(super) struct Mail {
    messages: HashMap<String, Message>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) hop: Hop,
}

impl Mail {
    /// A recipient that nobody has written to.
    pub(super) fn recipient(&self) -> String {
        format!("r{}@remote.test", self.messages.len())
    }

    pub(super) fn add(&mut self, recipient: &str, fate: Fate, deferrals: usize) {
        self.messages.insert(recipient.to_owned(), Message { fate, deferrals, repeats: 0 });
    }

    pub(super) fn set_fate(&mut self, recipient: &str, fate: Fate) {
        self.messages.get_mut(recipient).unwrap().fate = fate;
    }

    /// How many handovers there were.
    pub(super) fn handed(&self) -> usize {
        self.hop.handovers().len()
    }

    /// A process died at work: what it had handed over since may be handed over again.
    pub(super) fn died_after(&mut self, handed: usize) {
        for handover in &self.hop.handovers()[handed..] {
            for recipient in &handover.recipients {
                self.messages.get_mut(recipient).unwrap().repeats += 1;
            }
        }
    }

    fn count(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for recipient in self.hop.handovers().iter().flat_map(|handover| &handover.recipients) {
            *counts.entry(recipient.clone()).or_default() += 1;
        }
        counts
    }

    /// Whether everything that must arrive has arrived.
    pub(super) fn is_done(&self) -> bool {
        let counts = self.count();
        self.messages.iter().all(|(recipient, message)| {
            let count = counts.get(recipient).copied().unwrap_or_default();
            message.fate != Fate::Arrives || count > message.deferrals
        })
    }

    /// Nothing arrives more often than it may; at the end everything has arrived.
    pub(super) fn check(&self, end: bool) {
        let counts = self.count();
        for (recipient, message) in &self.messages {
            let count = counts.get(recipient).copied().unwrap_or_default();
            let once = message.deferrals + 1;
            assert!(count <= once + message.repeats, "{recipient} was sent {count} times: {message:?}");
            match message.fate {
                Fate::Arrives if end => assert!(count >= once, "{recipient} never arrived: {message:?}"),
                Fate::Cancelled => assert_eq!(count, 0, "{recipient} was cancelled"),
                Fate::Arrives | Fate::Unknown => {}
            }
        }
    }
}
