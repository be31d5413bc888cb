//! What determines the thread of an email.

use std::ops::RangeInclusive;

use model::Timestamp;

/// How many days a thread accepts emails that only share its subject.
const SUBJECT_DAYS: i64 = 30;

/// What determines the thread of an email.
#[derive(Clone, Debug, Default)]
pub struct ThreadHints {
    /// Hashes of the Message-IDs that the message refers to, the nearest first, its own last.
    pub references: Vec<[u8; 16]>,
    /// The hash of its base subject and participants.
    pub subject_key: Option<[u8; 16]>,
}

impl ThreadHints {
    /// The same without the message's own id, which cannot lead to a thread while the message is new.
    #[must_use]
    pub fn without_own(&self) -> Self {
        let references = self.references.split_last().map_or(&[][..], |(_, earlier)| earlier);
        Self { references: references.to_vec(), subject_key: self.subject_key }
    }
}

/// The newest dates of the threads that a message may join for their subject.
pub(super) fn subject_range(date: Timestamp) -> RangeInclusive<Timestamp> {
    let seconds = SUBJECT_DAYS * 86_400;
    date.plus_seconds(-seconds)..=date.plus_seconds(seconds)
}
