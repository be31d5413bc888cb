//! Stores the outcomes of delivery attempts: the queue records, the status of the message, and its events.
//!
//! Outcomes of one workspace wait for its event log, each until its commit is on disk. So those that come while others
//! are written are written together.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    events::EventType,
    outbound::{OutboundKind, ReportState},
    sending::{DeliveryStatus, RecipientState},
};
use store::{
    SystemTx, Topic, Tx,
    emails::{self, SentEmail},
    outbound::{self, DeliveryRecord, OutboundRecord},
    queue::{self, Attempt, ClaimedDelivery},
    vault::DataKey,
};

use super::{bounces, copies::sent_data};
use crate::core::{app::App, error::Result, events::NewEvent};

/// What a queued outcome takes in memory, about: the answer of another server for each recipient.
const BYTES_PER_RECIPIENT: usize = 1024;

/// The outcome of an attempt for some recipients of a message.
pub(super) struct Outcome {
    pub(super) app: App,
    pub(super) key: Arc<DataKey>,
    /// The message.
    pub(super) id: String,
    /// Its email, if it has one.
    pub(super) email: Option<(MailboxId, EmailId)>,
    pub(super) attempts: Vec<(ClaimedDelivery, Attempt)>,
    pub(super) now: Timestamp,
}

/// The recipients of a message after an attempt; `None` when it is gone.
type Recipients = Option<Vec<DeliveryRecord>>;

/// Stores an outcome, in one commit with others of its workspace that come meanwhile.
pub(super) async fn store(workspace: &WorkspaceId, outcome: Arc<Outcome>) -> Result<Recipients> {
    let (key, bytes) = (format!("outcome {workspace}"), BYTES_PER_RECIPIENT * outcome.attempts.len());
    let write = |outcomes: Vec<Arc<Outcome>>| {
        let workspace = workspace.clone();
        async move |tx: &mut SystemTx| store_all(tx.enter(&workspace), &outcomes).await
    };
    let db = outcome.app.db().clone();
    db.batch_write(&key, outcome, bytes, write).await
}

async fn store_all(tx: &mut Tx, outcomes: &[Arc<Outcome>]) -> Result<Vec<Recipients>> {
    let Some(first) = outcomes.first() else { return Ok(Vec::new()) };
    // One message may have several: for recipients at different destinations.
    let ids: BTreeSet<&str> = outcomes.iter().map(|one| one.id.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let emails: BTreeSet<_> = outcomes.iter().filter_map(|one| one.email.as_ref()).collect();
    let emails: Vec<_> = emails.into_iter().map(|(mailbox, email)| (mailbox, email)).collect();
    let locked = outbound::lock_all_with_recipients(tx, &ids, &emails).await?;
    let before: BTreeMap<&str, (&OutboundRecord, &[DeliveryRecord])> =
        locked.iter().map(|(mail, recipients)| (mail.id.as_str(), (mail, &recipients[..]))).collect();
    let present = outcomes.iter().filter(|one| before.contains_key(&*one.id));
    let attempts: Vec<(&ClaimedDelivery, &Attempt, Timestamp)> = present
        .flat_map(|one| one.attempts.iter().map(|(record, attempt)| (record, attempt, one.now)))
        .collect();
    let recorded = queue::record_attempts(tx, first.app.outbox().node(), &attempts).await?;
    let mut after: BTreeMap<&str, (Vec<DeliveryRecord>, Option<Timestamp>)> =
        before.iter().map(|(id, (_, recipients))| (*id, (recipients.to_vec(), None))).collect();
    for ((record, attempt, now), _) in attempts.iter().zip(recorded).filter(|(_, recorded)| *recorded) {
        let Some((recipients, changed_at)) = after.get_mut(&*record.outbound) else { continue };
        recipients
            .iter_mut()
            .filter(|one| one.position == record.position)
            .for_each(|one| attempt.apply(one, *now));
        *changed_at = (*changed_at).max(Some(*now));
    }
    let changed = before.iter().zip(&after).filter_map(|((_, (mail, before)), (_, (after, changed_at)))| {
        changed_at.map(|now| Change { key: &first.key, mail, before, after, now })
    });
    conclude(tx, &first.app, &changed.collect::<Vec<_>>()).await?;
    Ok(outcomes.iter().map(|one| after.get(&*one.id).map(|(recipients, _)| recipients.clone())).collect())
}

/// A message whose records changed. It is locked, and has changed only in its records.
pub(super) struct Change<'a> {
    pub(super) key: &'a DataKey,
    pub(super) mail: &'a OutboundRecord,
    pub(super) before: &'a [DeliveryRecord],
    pub(super) after: &'a [DeliveryRecord],
    pub(super) now: Timestamp,
}

impl Change<'_> {
    fn status(&self) -> DeliveryStatus {
        let states: Vec<RecipientState> = self.after.iter().map(|one| one.state).collect();
        DeliveryStatus::of(&states)
    }

    /// Whether its sender is to be notified of a failure from now on.
    fn needs_report(&self) -> bool {
        let mail = self.mail;
        let bounced = self.after.iter().any(DeliveryRecord::is_failed);
        let tells = mail.kind == OutboundKind::Email && bounced && mail.mailbox_id.is_some();
        tells && mail.report == ReportState::None && self.status() != DeliveryStatus::Queued
    }

    /// Whether nothing needs it any more.
    fn is_over(&self) -> bool {
        self.mail.email_id.is_none() && !self.needs_report() && self.status() != DeliveryStatus::Queued
    }

    /// The email that shows its status, with its mailbox.
    fn email(&self) -> Option<(&MailboxId, &EmailId)> {
        self.mail.mailbox_id.as_ref().zip(self.mail.email_id.as_ref())
    }
}

/// After records changed: updates the statuses of their messages, appends events, and deletes what is over.
pub(super) async fn conclude(tx: &mut Tx, app: &App, changes: &[Change<'_>]) -> Result<()> {
    for change in changes.iter().filter(|change| change.needs_report()) {
        outbound::set_report(tx, &change.mail.id, ReportState::Due).await?;
        tx.wake(Topic::Queue, None);
    }
    for change in changes {
        bounces::suppress(tx, app, change.mail, (change.before, change.after), change.now).await?;
    }
    let shown = changes.iter().filter_map(|change| Some((change, change.email()?)));
    let statuses: Vec<_> =
        shown.clone().map(|(change, (mailbox, email))| (mailbox, email, change.status())).collect();
    let updated = emails::set_delivery_statuses(tx, &statuses).await?;
    let updated: HashMap<&EmailId, &SentEmail> = updated.iter().map(|email| (&email.id, email)).collect();
    let mut log = Vec::new();
    for (change, (mailbox, email)) in shown {
        let Some(email) = updated.get(email) else { continue };
        for kind in event_types(change) {
            let data = sent_data(email, change.after);
            let event = NewEvent { kind, mailbox: Some(mailbox.clone()), data };
            log.push((event, change.key, change.now));
        }
    }
    NewEvent::append_all(tx, app, log).await?;
    for change in changes.iter().filter(|change| change.is_over()) {
        outbound::delete(tx, change.mail).await?;
    }
    Ok(())
}

/// The events of a change.
fn event_types(change: &Change<'_>) -> Vec<EventType> {
    let (before, after, status) = (change.before, change.after, change.status());
    let newly = |state: RecipientState| {
        before.iter().zip(after).any(|(old, new)| new.state == state && old.state != state)
    };
    let newly_failed =
        before.iter().zip(after).any(|(old, new)| new.is_failed() && old.state != RecipientState::Bounced);
    let first_delay = before
        .iter()
        .zip(after)
        .any(|(old, new)| new.state == RecipientState::Queued && old.attempts == 0 && new.attempts == 1);
    let done = status != DeliveryStatus::Queued
        && before.iter().any(|old| old.state == RecipientState::Queued)
        && after.iter().any(|new| new.state == RecipientState::Sent);
    let kinds = [
        (first_delay, EventType::MessageDeferred),
        (done, EventType::MessageSent),
        (newly(RecipientState::Delivered), EventType::MessageDelivered),
        (newly_failed, EventType::MessageBounced),
        (newly(RecipientState::Complained), EventType::MessageComplained),
    ];
    kinds.into_iter().filter(|(tells, _)| *tells).map(|(_, kind)| kind).collect()
}
