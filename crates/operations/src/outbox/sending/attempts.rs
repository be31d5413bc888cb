//! What came of an attempt: the records of the queue, the status of the mail, the events that tell of it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use model::{
    Timestamp, WorkspaceId,
    emails::{InboundProvider, SenderAuthentication},
    events::EventType,
    outbound::{OutboundKind, ReportState},
    sending::{DeliveryStatus, OutboundMode, RecipientState},
};
use store::{
    SystemTx, Tx, emails, events, mailboxes,
    outbound::{self, DeliveryRecord, OutboundRecord},
    queue::{self, Attempt},
    vault::DataKey,
};

use super::submit::sent_data;
use crate::{
    core::{
        app::App,
        error::{ErrorKind, Result},
        events::NewEvent,
        jitter::jitter_seconds,
        ports::{Handed, HandoverOutcome},
        state::outbox::{Group, RELAY},
        supervisor::isolate,
    },
    inbox::{
        inbound::{self, Content, Delivery, Refusal},
        mail_log::{self, AttemptEntry},
    },
};

/// The pauses between attempts, in seconds; the last one stays.
const PAUSES: [i64; 9] = [60, 120, 300, 600, 1200, 2400, 4800, 9600, 14_400];
/// The rest of a destination that could not be reached, and the longest one.
const REST_SECONDS: i64 = 30;
const MAX_REST_SECONDS: i64 = 1800;
/// The pauses before what came of an attempt is noted again: the first, and the longest, each twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(16);
/// The longest answer of another server that is kept.
const MAX_REPLY_BYTES: usize = 500;
/// Reports that are written in one round.
const REPORTS: i64 = 20;

/// What was tried, and how long it took.
pub(super) struct Tried {
    pub(super) handed: Handed,
    pub(super) took: Duration,
}

impl Tried {
    /// What was decided here, without asking another server.
    pub(super) fn here(outcomes: Vec<HandoverOutcome>) -> Self {
        Self { handed: Handed { outcomes, peer: None }, took: Duration::ZERO }
    }

    pub(super) fn is_unreachable(&self) -> bool {
        self.handed.outcomes.iter().all(|one| matches!(one, HandoverOutcome::Unreachable(_)))
    }
}

/// Notes what came of a handover. What another server has taken must not be forgotten, so a store that is away for a
/// moment is asked again.
pub(super) async fn settle(app: &App, group: &Group, mail: &OutboundRecord, tried: Tried) -> Result<()> {
    let now = app.now();
    let unreachable = tried.is_unreachable();
    let Tried { handed: Handed { outcomes, peer }, took } = tried;
    let attempts: Vec<_> = group
        .records
        .iter()
        .zip(outcomes)
        .map(|(record, outcome)| (record.clone(), attempt_of(app, mail, record.attempts, outcome, now)))
        .collect();
    // Before it is noted: what another server has said stays said, whatever the store does.
    for (record, attempt) in &attempts {
        let told = AttemptEntry { peer: peer.as_ref(), took, ..AttemptEntry::new(record, attempt, now) };
        metrics::counter!("outbound_attempts_total", "result" => told.result()).increment(1);
        mail_log::attempted(mail, &told);
    }
    let mut pause = FIRST_PAUSE;
    loop {
        match note(app, group, &mail.id, attempts.clone(), now).await {
            Err(error) if pause <= MAX_PAUSE => {
                tracing::warn!(%error, "what came of a mail will be noted in a moment");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            noted => {
                noted?;
                break;
            }
        }
    }
    if let Err(error) = rest(app, &group.destination, unreachable).await {
        tracing::warn!(%error, "a destination that cannot be reached gets no rest");
    }
    Ok(())
}

async fn note(
    app: &App,
    group: &Group,
    id: &str,
    attempts: Vec<(queue::Claimed, Attempt)>,
    now: Timestamp,
) -> Result<()> {
    let (app_, id, node) = (app.clone(), id.to_owned(), app.outbox().node().to_owned());
    let key = app.data_key(&group.workspace).await?;
    app.db()
        .write(&group.workspace, async move |tx| {
            let Some(mail) = outbound::lock(tx, &id).await? else { return Ok(()) };
            let before = outbound::recipients(tx, &id).await?;
            let mut changed = false;
            for (record, attempt) in &attempts {
                changed |= queue::finish(tx, record, &node, attempt, now).await?;
            }
            if changed { conclude(tx, &app_, &key, &mail, &before, now).await } else { Ok(()) }
        })
        .await
}

/// Lets a destination that could not be reached rest, and forgets the rest of one that could.
async fn rest(app: &App, destination: &str, unreachable: bool) -> Result<()> {
    let (name, now) = (destination.to_owned(), app.now());
    if unreachable {
        // Whoever gets through after all ends the rest.
        app.outbox().probe(destination);
        let asked = name.clone();
        let failures = app.db().system_read(async move |tx| queue::failures(tx, &asked).await).await?;
        let doublings = u32::try_from(failures.clamp(0, 10)).unwrap_or_default();
        let pause = REST_SECONDS.saturating_mul(1 << doublings).min(MAX_REST_SECONDS);
        let until = now.plus_seconds(jitter_seconds(app, pause));
        app.db().system_write(async move |tx| queue::rest(tx, &name, now, until).await).await?;
    } else if app.outbox().is_probed(destination) {
        app.db().system_write(async move |tx| queue::reached(tx, &name).await).await?;
    }
    Ok(())
}

fn attempt_of(
    app: &App,
    mail: &OutboundRecord,
    before: i64,
    outcome: HandoverOutcome,
    now: Timestamp,
) -> Attempt {
    let (state, reply) = match outcome {
        HandoverOutcome::Accepted(reply) => (RecipientState::Sent, reply),
        HandoverOutcome::Refused(reply) => (RecipientState::Bounced, reply),
        HandoverOutcome::Later(reply) | HandoverOutcome::Unreachable(reply) if now >= mail.expires_at => {
            (RecipientState::Bounced, format!("Given up; the last answer was: {reply}"))
        }
        HandoverOutcome::Later(reply) | HandoverOutcome::Unreachable(reply) => {
            (RecipientState::Queued, reply)
        }
    };
    let index = usize::try_from(before).unwrap_or_default().min(PAUSES.len() - 1);
    let pause = jitter_seconds(app, PAUSES[index]).max(1);
    let next = now.plus_seconds(pause).min(mail.expires_at.max(now.plus_seconds(1)));
    let next_attempt_at = (state == RecipientState::Queued).then_some(next);
    let reply = mail::printable(&reply, MAX_REPLY_BYTES);
    Attempt { state, reply, next_attempt_at }
}

/// After records changed: the status of the mail, its events, and whether it is done. The caller holds the mail.
pub(super) async fn conclude(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    mail: &OutboundRecord,
    before: &[DeliveryRecord],
    now: Timestamp,
) -> Result<()> {
    let after = outbound::recipients(tx, &mail.id).await?;
    let states: Vec<RecipientState> = after.iter().map(|one| one.state).collect();
    let status = DeliveryStatus::of(&states);
    let bounced = states.contains(&RecipientState::Bounced);
    let tells = mail.kind == OutboundKind::Email && bounced && mail.mailbox_id.is_some();
    if status != DeliveryStatus::Queued {
        if tells && mail.report == ReportState::None {
            outbound::set_report(tx, &mail.id, ReportState::Due).await?;
        } else if mail.email_id.is_none() {
            return Ok(outbound::delete(tx, mail).await?);
        }
    }
    let (Some(mailbox), Some(email)) = (&mail.mailbox_id, &mail.email_id) else { return Ok(()) };
    emails::set_delivery_status(tx, mailbox, email, status).await?;
    let Some(shown) = emails::find(tx, mailbox, email).await? else { return Ok(()) };
    for kind in told(before, &after, status) {
        let event = NewEvent { kind, mailbox: Some(mailbox.clone()), data: sent_data(&shown, &after) };
        event.append(tx, app, key, now).await?;
    }
    Ok(())
}

/// What the event log tells of a change.
fn told(before: &[DeliveryRecord], after: &[DeliveryRecord], status: DeliveryStatus) -> Vec<EventType> {
    let newly = |state: RecipientState| {
        before.iter().zip(after).any(|(old, new)| new.state == state && old.state != state)
    };
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
        (newly(RecipientState::Bounced), EventType::MessageBounced),
        (newly(RecipientState::Complained), EventType::MessageComplained),
    ];
    kinds.into_iter().filter(|(tells, _)| *tells).map(|(_, kind)| kind).collect()
}

/// Delivers to mailboxes of this server, each in a transaction with its record, so that it happens once.
pub(super) async fn deliver_here(
    app: &App,
    group: &Group,
    mail: &OutboundRecord,
    message: Bytes,
) -> Result<()> {
    if mail::message::count_received(&message) > inbound::MAX_RECEIVED_LINES {
        let outcome = HandoverOutcome::Refused(Refusal::LOOP.to_string());
        return settle(app, group, mail, Tried::here(vec![outcome; group.records.len()])).await;
    }
    let prepared = Arc::new(inbound::read(app, message.clone()).await?);
    for record in &group.records {
        let one = Group {
            workspace: group.workspace.clone(),
            outbound: group.outbound.clone(),
            destination: String::new(),
            records: vec![record.clone()],
        };
        let recipient = match inbound::route(app, mail.sender.as_deref(), &record.recipient).await {
            Ok(recipient) => recipient,
            Err(refusal) if refusal == Refusal::RELAY && app.next_hop().is_some() => {
                redirect(app, record).await?;
                continue;
            }
            Err(refusal) => {
                let reply = refusal.to_string();
                let outcome =
                    if refusal == Refusal::RELAY && app.settings().outbound.mode == OutboundMode::Sandbox {
                        HandoverOutcome::Accepted("250 2.1.5 Kept in the sandbox".to_owned())
                    } else if refusal.code < 500 {
                        HandoverOutcome::Later(reply)
                    } else {
                        HandoverOutcome::Refused(reply)
                    };
                settle(app, &one, mail, Tried::here(vec![outcome])).await?;
                continue;
            }
        };
        let content = Content::seal(app, &recipient.workspace, &prepared, &message).await?;
        deliver_to(app, mail, record, recipient, prepared.clone(), content).await?;
    }
    Ok(())
}

/// Delivers to one mailbox, and tells of it.
async fn deliver_to(
    app: &App,
    mail: &OutboundRecord,
    record: &queue::Claimed,
    recipient: inbound::Recipient,
    prepared: Arc<inbound::PreparedMessage>,
    content: Content,
) -> Result<()> {
    let (key, now, id) = (app.data_key(&record.workspace).await?, app.now(), app.new_id());
    let reply = "250 2.1.5 Delivered to a mailbox of this server".to_owned();
    let attempt = Attempt { state: RecipientState::Sent, reply, next_attempt_at: None };
    let (app_, record_, attempt_, id_) = (app.clone(), record.clone(), attempt.clone(), id.clone());
    let delivered = app
        .db()
        .system_write(async move |tx| {
            let step = Step { app: &app_, key: &key, now: app_.now() };
            step.deliver(tx, (&record_, &attempt_), &recipient, &prepared, &content, &id_).await
        })
        .await?;
    if delivered {
        let told = AttemptEntry { stored_as: Some(id.as_str()), ..AttemptEntry::new(record, &attempt, now) };
        metrics::counter!("outbound_attempts_total", "result" => told.result()).increment(1);
        mail_log::attempted(mail, &told);
    }
    Ok(())
}

/// Sends a record on its way to another server; whoever put it into the queue could not know where it goes.
pub(super) async fn redirect(app: &App, record: &queue::Claimed) -> Result<()> {
    let destination = match (app.settings().outbound.mode, record.recipient.rsplit_once('@')) {
        (OutboundMode::Direct, Some((_, domain))) => domain.to_ascii_lowercase(),
        _ => RELAY.to_owned(),
    };
    let (node, record) = (app.outbox().node().to_owned(), record.clone());
    Ok(app
        .db()
        .write(&record.workspace.clone(), async move |tx| {
            queue::redirect(tx, &record, &node, &destination).await
        })
        .await?)
}

/// The delivery of one record to one mailbox.
struct Step<'a> {
    app: &'a App,
    key: &'a DataKey,
    now: Timestamp,
}

impl Step<'_> {
    /// False when the mail is gone, or others have it.
    async fn deliver(
        &self,
        tx: &mut SystemTx,
        (record, attempt): (&queue::Claimed, &Attempt),
        recipient: &inbound::Recipient,
        prepared: &inbound::PreparedMessage,
        content: &Content,
        id: &model::EmailId,
    ) -> Result<bool> {
        mailboxes::lock(tx.enter(&recipient.workspace), &recipient.mailbox).await?;
        let both: BTreeSet<&WorkspaceId> = [&record.workspace, &recipient.workspace].into();
        let own = tx.enter(&record.workspace);
        let Some(mail) = outbound::lock(own, &record.outbound).await? else { return Ok(false) };
        let before = outbound::recipients(own, &mail.id).await?;
        if !queue::finish(own, record, self.app.outbox().node(), attempt, self.now).await? {
            return Ok(false);
        }
        for workspace in both {
            events::lock(tx.enter(workspace)).await?;
        }
        let authentication = SenderAuthentication::unknown(Some(InboundProvider::MailApi));
        let sender = mail.sender.as_deref();
        let delivery =
            Delivery { app: self.app, prepared, authentication: &authentication, sender, now: self.now };
        delivery.to_mailbox(tx.enter(&recipient.workspace), recipient, id, content).await?;
        conclude(tx.enter(&record.workspace), self.app, self.key, &mail, &before, self.now).await?;
        Ok(true)
    }
}

/// Writes the reports about mails that failed into the mailboxes of their senders.
pub(super) async fn report_due(app: &App) -> Result<()> {
    let due = app.db().system_read(async |tx| queue::due_reports(tx, REPORTS).await).await?;
    for (workspace, id) in due {
        match isolate("queue", super::report::write(app, &workspace, &id)).await {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::Overloaded) => {
                tracing::warn!(%workspace, %error, "a delivery report will be written later");
            }
            // A report that can never be written must not stand before those that can; the mail itself says that it bounced.
            Err(error) => {
                tracing::error!(%workspace, %error, "a delivery report is left out");
                super::report::leave_out(app, &workspace, &id).await?;
            }
        }
    }
    Ok(())
}
