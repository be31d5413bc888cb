//! What the submission of messages has to know, for several messages of a workspace at once: on PostgreSQL in one round
//! trip.

use std::collections::BTreeSet;

use model::MailboxId;

use crate::{
    AnySelect, Param, Select, Tx,
    error::Result,
    events, mailboxes,
    threads::{AskedColumns, BY_REFERENCE, BY_SUBJECT, ThreadCandidates, ThreadQuery},
};

/// What the submission of messages has to know.
#[derive(Debug, Default)]
pub struct SubmissionContext {
    /// Their mailboxes, without those that were deleted.
    pub mailboxes: BTreeSet<MailboxId>,
    /// The number of the workspace's last event; 0 when there is none.
    pub last_event: i64,
    /// The threads that they may join.
    pub threads: ThreadCandidates,
}

/// Locks the mailboxes that messages are sent from, and looks up what their submission has to know.
pub async fn load(tx: &mut Tx, submitted: &[ThreadQuery<'_>]) -> Result<SubmissionContext> {
    let ids: BTreeSet<&MailboxId> = submitted.iter().map(|one| one.mailbox).collect();
    if !tx.is_postgres() {
        // With a single writer there is nothing to lock, and threads are found when they are needed.
        let mut context = SubmissionContext {
            last_event: events::last_sequence(tx).await?,
            ..SubmissionContext::default()
        };
        for id in ids {
            if mailboxes::lock_present(tx, id).await? {
                context.mailboxes.insert(id.clone());
            }
        }
        return Ok(context);
    }
    let ids: Vec<Param<'_>> = ids.into_iter().map(Param::from).collect();
    let (references, subjects) = (AskedColumns::references(submitted), AskedColumns::subjects(submitted));
    let mut present = mailboxes::lock_all(&ids);
    let mut last: Select<'_, (i64,)> = Select::new(events::LAST.to_owned(), Vec::new());
    let mut by_reference = Select::new(BY_REFERENCE.to_owned(), references.params());
    let mut by_subject = Select::new(BY_SUBJECT.to_owned(), subjects.params());
    let mut selects: Vec<&mut dyn AnySelect<'_>> = vec![&mut present, &mut last];
    if !references.is_empty() {
        selects.push(&mut by_reference);
    }
    if !subjects.is_empty() {
        selects.push(&mut by_subject);
    }
    tx.select(&mut selects).await?;
    Ok(SubmissionContext {
        mailboxes: present.rows().into_iter().map(|(id,)| id).collect(),
        last_event: last.row().map_or(0, |(last,)| last),
        threads: ThreadCandidates::new(submitted, by_reference.rows(), by_subject.rows()),
    })
}
