//! The threads that arriving messages may join, looked up for several messages at once.
//!
//! Messages that arrive together may join each other's threads. So what was looked up is kept up to date while their
//! threads are found, one after the other, before anything is written.

use std::collections::HashMap;

use model::{MailboxId, ThreadId, Timestamp};

use super::hints::{ThreadHints, subject_range};
use crate::{Param, Tx, error::Result, sql::row};

/// A message whose thread is looked up.
#[derive(Clone, Copy, Debug)]
pub struct ThreadQuery<'a> {
    /// Its mailbox.
    pub mailbox: &'a MailboxId,
    /// What determines its thread.
    pub hints: &'a ThreadHints,
    /// Its date.
    pub date: Timestamp,
}

type Hash = [u8; 16];

/// The threads that messages may join, and those that they have joined.
#[derive(Debug, Default)]
pub struct ThreadCandidates {
    /// The threads that Message-IDs lead to.
    references: HashMap<(MailboxId, Hash), ThreadId>,
    /// The newest thread in range with the subject of a message, by the number of the message.
    subjects: HashMap<usize, ThreadId>,
    threads: HashMap<(MailboxId, ThreadId), Candidate>,
}

#[derive(Debug)]
struct Candidate {
    subject_key: Option<Hash>,
    newest_at: Timestamp,
    /// Whether a message has joined it since it was looked up.
    joined: bool,
}

/// The threads that Message-IDs lead to.
pub(crate) const BY_REFERENCE: &str =
    "SELECT asked.mailbox_id, asked.message_id, thread.id, thread.subject_key, thread.newest_at
     FROM UNNEST(CAST($2 AS TEXT[]), CAST($3 AS BYTEA[])) AS asked (mailbox_id, message_id)
     JOIN LATERAL (SELECT thread_id FROM thread_reference WHERE workspace_id = $1
       AND mailbox_id = asked.mailbox_id AND message_id = asked.message_id LIMIT 1) AS known ON true
     JOIN LATERAL (SELECT id, subject_key, newest_at FROM thread WHERE workspace_id = $1
       AND mailbox_id = asked.mailbox_id AND id = known.thread_id LIMIT 1) AS thread ON true";

/// The newest threads in range with the subjects of messages.
pub(crate) const BY_SUBJECT: &str = "SELECT asked.number, thread.id, thread.newest_at
     FROM UNNEST(CAST($2 AS BIGINT[]), CAST($3 AS TEXT[]), CAST($4 AS BYTEA[]), CAST($5 AS BIGINT[]),
       CAST($6 AS BIGINT[])) AS asked (number, mailbox_id, subject_key, oldest, newest)
     JOIN LATERAL (SELECT id, newest_at FROM thread WHERE workspace_id = $1
       AND mailbox_id = asked.mailbox_id AND subject_key = asked.subject_key
       AND newest_at >= asked.oldest AND newest_at <= asked.newest
       ORDER BY newest_at DESC LIMIT 1) AS thread ON true";

/// A row of [`BY_REFERENCE`].
#[derive(Debug)]
pub(crate) struct ThreadByReference {
    mailbox_id: MailboxId,
    message_id: Vec<u8>,
    thread_id: ThreadId,
    subject_key: Option<Vec<u8>>,
    newest_at: Timestamp,
}

row!(ThreadByReference { mailbox_id, message_id, thread_id, subject_key, newest_at });

/// A row of [`BY_SUBJECT`].
#[derive(Debug)]
pub(crate) struct ThreadBySubject {
    number: i64,
    thread_id: ThreadId,
    newest_at: Timestamp,
}

row!(ThreadBySubject { number, thread_id, newest_at });

/// The parameters of a query that asks for several messages, as columns.
#[derive(Default)]
pub(crate) struct AskedColumns<'a>(Vec<Vec<Param<'a>>>);

impl<'a> AskedColumns<'a> {
    /// The parameters of [`BY_REFERENCE`].
    pub(crate) fn references(queries: &[ThreadQuery<'a>]) -> Self {
        let (mut mailboxes, mut references) = (Vec::new(), Vec::new());
        for query in queries {
            for reference in &query.hints.references {
                mailboxes.push(query.mailbox.into());
                references.push(reference.as_slice().into());
            }
        }
        Self(vec![mailboxes, references])
    }

    /// The parameters of [`BY_SUBJECT`].
    pub(crate) fn subjects(queries: &[ThreadQuery<'a>]) -> Self {
        let mut columns = vec![Vec::new(); 5];
        for (number, query) in (0_i64..).zip(queries) {
            let Some(key) = &query.hints.subject_key else { continue };
            let range = subject_range(query.date);
            let values = [
                number.into(),
                query.mailbox.into(),
                key.as_slice().into(),
                (*range.start()).into(),
                (*range.end()).into(),
            ];
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
        Self(columns)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        self.0.iter().map(|column| Param::List(column)).collect()
    }
}

fn hash(bytes: &[u8]) -> Option<Hash> {
    bytes.try_into().ok()
}

impl ThreadCandidates {
    /// The threads that were found for messages.
    pub(crate) fn new(
        queries: &[ThreadQuery<'_>],
        by_reference: Vec<ThreadByReference>,
        by_subject: Vec<ThreadBySubject>,
    ) -> Self {
        let mut all = Self::default();
        for found in by_reference {
            let subject_key = found.subject_key.as_deref().and_then(hash);
            let candidate = Candidate { subject_key, newest_at: found.newest_at, joined: false };
            if let Some(reference) = hash(&found.message_id) {
                all.references.insert((found.mailbox_id.clone(), reference), found.thread_id.clone());
            }
            all.threads.insert((found.mailbox_id, found.thread_id), candidate);
        }
        for found in by_subject {
            let number = usize::try_from(found.number).unwrap_or(usize::MAX);
            let Some(query) = queries.get(number) else { continue };
            let subject_key = query.hints.subject_key;
            let candidate = Candidate { subject_key, newest_at: found.newest_at, joined: false };
            all.subjects.insert(number, found.thread_id.clone());
            all.threads.insert((query.mailbox.clone(), found.thread_id), candidate);
        }
        all
    }

    /// Finds the thread of the message with this number, as [`find`](crate::threads::find) would after those before it were written.
    pub(crate) async fn find(
        &self,
        tx: &mut Tx,
        number: usize,
        mailbox: &MailboxId,
        hints: &ThreadHints,
        date: Timestamp,
    ) -> Result<Option<ThreadId>> {
        match self.known(number, mailbox, hints, date) {
            Known::Thread(thread) => Ok(Some(thread)),
            Known::None => Ok(None),
            Known::AskFor(key) => {
                let stored = self.find_not_joined(tx, mailbox, &key, date).await?;
                let joined = self.newest_joined(mailbox, &key, date);
                Ok(stored.into_iter().chain(joined).max().map(|(_, thread)| thread))
            }
        }
    }

    fn known(&self, number: usize, mailbox: &MailboxId, hints: &ThreadHints, date: Timestamp) -> Known {
        for reference in &hints.references {
            if let Some(thread) = self.references.get(&(mailbox.clone(), *reference)) {
                return Known::Thread(thread.clone());
            }
        }
        let Some(key) = hints.subject_key else { return Known::None };
        let mut newest = self.newest_joined(mailbox, &key, date);
        if let Some(thread) = self.subjects.get(&number)
            && let Some(stored) = self.threads.get(&(mailbox.clone(), thread.clone()))
        {
            if !stored.joined {
                newest = newest.max(Some((stored.newest_at, thread.clone())));
            } else if !subject_range(date).contains(&stored.newest_at) {
                // It is too new by now; the next one was not looked up.
                return Known::AskFor(key);
            }
        }
        newest.map_or(Known::None, |(_, thread)| Known::Thread(thread))
    }

    /// The newest thread in range with a subject, of those that were joined.
    fn newest_joined(
        &self,
        mailbox: &MailboxId,
        key: &Hash,
        date: Timestamp,
    ) -> Option<(Timestamp, ThreadId)> {
        let range = subject_range(date);
        let fits = |place: &(MailboxId, ThreadId), thread: &Candidate| {
            thread.joined
                && place.0 == *mailbox
                && thread.subject_key.as_ref() == Some(key)
                && range.contains(&thread.newest_at)
        };
        let joined = self.threads.iter().filter(|(place, thread)| fits(place, thread));
        joined.map(|((_, id), thread)| (thread.newest_at, id.clone())).max()
    }

    /// The same of those that were not joined, which are stored as they were.
    async fn find_not_joined(
        &self,
        tx: &mut Tx,
        mailbox: &MailboxId,
        key: &Hash,
        date: Timestamp,
    ) -> Result<Option<(Timestamp, ThreadId)>> {
        let joined = self.threads.iter().filter(|((of, _), thread)| thread.joined && of == mailbox);
        let joined: Vec<Param<'_>> = joined.map(|((_, id), _)| id.into()).collect();
        let range = subject_range(date);
        tx.one(
            "SELECT newest_at, id FROM thread WHERE workspace_id = $1 AND mailbox_id = $2 AND subject_key = $3
             AND newest_at >= $4 AND newest_at <= $5 AND id <> ALL (CAST($6 AS TEXT[]))
             ORDER BY newest_at DESC LIMIT 1",
            &[
                mailbox.into(),
                key.as_slice().into(),
                (*range.start()).into(),
                (*range.end()).into(),
                Param::List(&joined),
            ],
        )
        .await
    }

    /// Records that a message joins a thread, or begins it.
    pub(crate) fn join(
        &mut self,
        mailbox: &MailboxId,
        thread: &ThreadId,
        hints: &ThreadHints,
        date: Timestamp,
    ) {
        for reference in &hints.references {
            self.references.entry((mailbox.clone(), *reference)).or_insert_with(|| thread.clone());
        }
        let begun = || Candidate { subject_key: hints.subject_key, newest_at: date, joined: true };
        let joined = self.threads.entry((mailbox.clone(), thread.clone())).or_insert_with(begun);
        joined.newest_at = joined.newest_at.max(date);
        joined.joined = true;
    }
}

/// What is known of a message's thread without asking.
#[derive(Debug, PartialEq)]
enum Known {
    Thread(ThreadId),
    /// It begins one.
    None,
    /// The stored threads with this subject have to be asked for.
    AskFor(Hash),
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_micros(0).plus_seconds(day * DAY)
    }

    fn hints(references: &[u8], subject: Option<u8>) -> ThreadHints {
        ThreadHints {
            references: references.iter().map(|byte| [*byte; 16]).collect(),
            subject_key: subject.map(|byte| [byte; 16]),
        }
    }

    /// Finds the thread of each message as if nothing were stored but the given candidates, and joins it.
    fn threads(
        mut candidates: ThreadCandidates,
        messages: &[(ThreadHints, Timestamp)],
    ) -> Vec<Option<String>> {
        let mailbox = MailboxId::from("m");
        let mut found = Vec::new();
        for (number, (hints, date)) in messages.iter().enumerate() {
            let own = ThreadId::from(format!("new {number}").as_str());
            let thread = match candidates.known(number, &mailbox, hints, *date) {
                Known::Thread(thread) => Some(thread),
                Known::None => Some(own),
                Known::AskFor(_) => None,
            };
            if let Some(thread) = &thread {
                candidates.join(&mailbox, thread, hints, *date);
            }
            found.push(thread.map(|thread| thread.as_str().to_owned()));
        }
        found
    }

    fn stored(subjects: &[(usize, &str, Timestamp)], subject: u8) -> ThreadCandidates {
        let mut candidates = ThreadCandidates::default();
        for (number, thread, newest_at) in subjects {
            let thread = ThreadId::from(*thread);
            candidates.subjects.insert(*number, thread.clone());
            let candidate =
                Candidate { subject_key: Some([subject; 16]), newest_at: *newest_at, joined: false };
            candidates.threads.insert((MailboxId::from("m"), thread), candidate);
        }
        candidates
    }

    fn all(names: &[&str]) -> Vec<Option<String>> {
        names.iter().map(|name| Some((*name).to_owned())).collect()
    }

    #[test]
    fn messages_that_arrive_together_join_each_other() {
        let messages = [
            (hints(&[1], Some(9)), day(0)),
            (hints(&[1, 2], Some(8)), day(1)),
            (hints(&[3], Some(9)), day(2)),
            (hints(&[4], Some(9)), day(40)),
            (hints(&[5], None), day(2)),
        ];
        // The second one refers to the first; the third has its subject; the fourth is too late for it.
        assert_eq!(
            threads(ThreadCandidates::default(), &messages),
            all(&["new 0", "new 0", "new 0", "new 3", "new 4"])
        );
    }

    #[test]
    fn the_newest_thread_with_a_subject_is_joined_stored_or_not() {
        let stored = || stored(&[(1, "old", day(5)), (2, "old", day(5))], 9);
        let begins = (hints(&[1], Some(8)), day(6));
        let joins = |id: u8, at: i64| (hints(&[id], Some(9)), day(at));
        assert_eq!(
            threads(stored(), &[begins.clone(), joins(2, 7), joins(3, 8)]),
            all(&["new 0", "old", "old"])
        );
        // One that another message has made newer than a message may join hides those that were not looked up.
        assert_eq!(threads(stored(), &[begins, joins(2, 35), joins(3, 4)])[2], None);
    }

    #[test]
    fn a_stored_reference_wins_over_a_newer_subject() {
        let mut candidates = stored(&[(0, "by subject", day(5))], 9);
        let place = (MailboxId::from("m"), [7; 16]);
        candidates.references.insert(place, ThreadId::from("by reference"));
        let messages = [(hints(&[6, 7], Some(9)), day(5)), (hints(&[6], None), day(5))];
        assert_eq!(threads(candidates, &messages), all(&["by reference", "by reference"]));
    }
}
