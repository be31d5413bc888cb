//! What the delivery of messages has to know, for several messages of a workspace at once: on PostgreSQL in one round
//! trip.

use std::collections::BTreeMap;

use model::{MailboxId, labels::Label};

use crate::{
    AnySelect, Param, Select, Tx,
    error::Result,
    events, labels,
    mailboxes::{self, MailboxName, MailboxRecord},
    threads::{AskedColumns, BY_REFERENCE, BY_SUBJECT, ThreadCandidates, ThreadQuery},
};

/// What the delivery of messages has to know.
#[derive(Debug, Default)]
pub struct ArrivalContext {
    /// Their mailboxes, without those that were deleted.
    pub mailboxes: BTreeMap<MailboxId, MailboxRecord>,
    /// The labels of each mailbox, in their order.
    pub labels: BTreeMap<MailboxId, Vec<Label>>,
    /// The threads that they may join.
    pub threads: ThreadCandidates,
    /// The first of their event numbers.
    pub first_sequence: i64,
}

/// Locks the mailboxes of arriving messages and then the event log, and looks up what their delivery has to know.
pub async fn load(tx: &mut Tx, arriving: &[ThreadQuery<'_>]) -> Result<ArrivalContext> {
    let mut ids: Vec<&MailboxId> = arriving.iter().map(|one| one.mailbox).collect();
    ids.sort_unstable();
    ids.dedup();
    let count = i64::try_from(arriving.len()).unwrap_or(i64::MAX);
    if tx.is_postgres() {
        return load_together(tx, &ids, arriving, count).await;
    }
    let mut context = ArrivalContext::default();
    for id in ids {
        let named = MailboxName::Id(id.clone());
        let Some(mailbox) = mailboxes::find(tx, &named).await? else { continue };
        context.mailboxes.insert(id.clone(), mailbox);
        context.labels.insert(id.clone(), labels::list(tx, id).await?);
    }
    context.first_sequence = events::next_sequences(tx, count).await?;
    Ok(context)
}

async fn load_together(
    tx: &mut Tx,
    ids: &[&MailboxId],
    arriving: &[ThreadQuery<'_>],
    count: i64,
) -> Result<ArrivalContext> {
    let ids: Vec<Param<'_>> = ids.iter().map(|id| Param::from(*id)).collect();
    let (references, subjects) = (AskedColumns::references(arriving), AskedColumns::subjects(arriving));
    let mut mailboxes: Select<'_, MailboxRecord> =
        Select::new(mailboxes::lock_all_query(), vec![Param::List(&ids)]);
    let mut labels: Select<'_, Label> = Select::new(labels::list_all_query(), vec![Param::List(&ids)]);
    let mut by_reference = Select::new(BY_REFERENCE.to_owned(), references.params());
    let mut by_subject = Select::new(BY_SUBJECT.to_owned(), subjects.params());
    let mut last: Select<'_, (i64,)> =
        Select::new(format!("{} RETURNING last", events::TAKE), vec![count.into()]);
    let mut selects: Vec<&mut dyn AnySelect<'_>> = vec![&mut mailboxes, &mut labels];
    if !references.is_empty() {
        selects.push(&mut by_reference);
    }
    if !subjects.is_empty() {
        selects.push(&mut by_subject);
    }
    selects.push(&mut last);
    tx.select(&mut selects).await?;
    let mut context = ArrivalContext {
        threads: ThreadCandidates::new(arriving, by_reference.rows(), by_subject.rows()),
        first_sequence: last.row().map_or(1, |(last,)| last - count + 1),
        ..ArrivalContext::default()
    };
    for mailbox in mailboxes.rows() {
        context.labels.insert(mailbox.id.clone(), Vec::new());
        context.mailboxes.insert(mailbox.id.clone(), mailbox);
    }
    for label in labels.rows() {
        context.labels.entry(label.mailbox_id.clone()).or_default().push(label);
    }
    Ok(context)
}
