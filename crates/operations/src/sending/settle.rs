//! What came of an attempt: the records of the queue, the status of the mail, the events that tell of it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use model::{
    Timestamp, WorkspaceId,
    emails::{InboundProvider, SenderAuthentication},
    events::EventType,
    sending::{DeliveryStatus, OutboundMode, RecipientState},
};
use store::{
    SystemTx, Tx, emails, events, mailboxes,
    outbound::{self, DeliveryRecord, OutboundRecord},
    queue::{self, Attempt},
    vault::DataKey,
};

use super::{
    outbox::Group,
    submit::{RELAY, sent_data},
};
use crate::{
    App, ErrorKind, Result,
    events::NewEvent,
    inbound::{self, Content, Delivery, Refusal},
    mail_log::{self, Attempted},
    outside::{Handed, HandoverOutcome},
    supervisor::isolate,
};

/// The pauses between attempts, in seconds; the last one stays.
const PAUSES: [i64; 9] = [60, 120, 300, 600, 1200, 2400, 4800, 9600, 14_400];
/// The rest of a destination that could not be reached, and the longest one.
const REST_SECONDS: i64 = 30;
const LONGEST_REST: i64 = 1800;
/// The pauses before what came of an attempt is noted again: the first, and the longest, each twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// The longest answer of another server that is kept.
const LONGEST_REPLY: usize = 500;
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
        let told = Attempted { peer: peer.as_ref(), took, ..Attempted::new(record, attempt, now) };
        metrics::counter!("outbound_attempts_total", "result" => told.result()).increment(1);
        mail_log::attempted(mail, &told);
    }
    let mut pause = FIRST_PAUSE;
    loop {
        match note(app, group, &mail.id, attempts.clone(), now).await {
            Err(error) if pause <= LONGEST_PAUSE => {
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
        let pause = REST_SECONDS.saturating_mul(1 << doublings).min(LONGEST_REST);
        let until = now.plus_seconds(irregular(app, pause));
        app.db().system_write(async move |tx| queue::rest(tx, &name, now, until).await).await?;
    } else if app.outbox().is_probed(destination) {
        app.db().system_write(async move |tx| queue::reached(tx, &name).await).await?;
    }
    Ok(())
}

/// Seconds a fifth more or less than these, so that retries do not all come at once.
fn irregular(app: &App, about: i64) -> i64 {
    let mut random = [0];
    app.entropy().fill(&mut random);
    about * (800 + i64::from(random[0]) * 400 / 255) / 1000
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
    let pause = irregular(app, PAUSES[index]).max(1);
    let next = now.plus_seconds(pause).min(mail.expires_at.max(now.plus_seconds(1)));
    let next_attempt_at = (state == RecipientState::Queued).then_some(next);
    let reply = mail::printable(&reply, LONGEST_REPLY);
    Attempt { state, reply, next_attempt_at }
}

/// After records changed: the status of the mail, its events, and whether it is done. The caller holds the mail.
async fn conclude(
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
    let tells = mail.kind == "mail" && bounced && mail.mailbox_id.is_some();
    if status != DeliveryStatus::Queued {
        if tells && mail.report == "none" {
            outbound::set_report(tx, &mail.id, "due").await?;
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
    if mail::message::count_received(&message) > inbound::MOST_RECEIVED_LINES {
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
    prepared: Arc<inbound::Prepared>,
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
        let told = Attempted { stored_as: Some(id.as_str()), ..Attempted::new(record, &attempt, now) };
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
        prepared: &inbound::Prepared,
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

/// The mail of a mailbox that a report is about, held until the transaction ends.
pub(crate) async fn hold_reported(
    tx: &mut Tx,
    mailbox: &model::MailboxId,
    report: &mail::reports::Report,
) -> Result<Option<OutboundRecord>> {
    use mail::reports::Report;
    let message_id = match report {
        Report::Delivery(report) => report.message_id.as_deref(),
        Report::Complaint(report) => report.message_id.as_deref(),
    };
    let Some(message_id) = message_id else { return Ok(None) };
    let Some(found) = outbound::find_by_message_id(tx, mailbox, message_id).await? else { return Ok(None) };
    Ok(outbound::lock(tx, &found.id).await?)
}

/// What a report that came in says about one of our mails, noted for each recipient that the mail really has.
pub(crate) async fn note_report(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    mailbox: &model::MailboxId,
    report: &mail::reports::Report,
    now: Timestamp,
) -> Result<()> {
    use mail::reports::{Action, Report};
    let Some(mail) = hold_reported(tx, mailbox, report).await? else { return Ok(()) };
    let before = outbound::recipients(tx, &mail.id).await?;
    let mut changes: Vec<(i64, RecipientState, Option<String>)> = Vec::new();
    let matching = |address: &str| before.iter().find(|one| same_address(&one.recipient, address));
    match report {
        Report::Delivery(report) => {
            for one in &report.recipients {
                let state = match one.action {
                    Action::Failed => RecipientState::Bounced,
                    Action::Delivered => RecipientState::Delivered,
                    Action::Delayed | Action::Relayed | Action::Expanded => continue,
                };
                let original = one.original_recipient.as_deref().and_then(matching);
                if let Some(known) = original.or_else(|| matching(&one.final_recipient))
                    && may_follow(known.state, state)
                {
                    let reply = one.diagnostic.clone().or_else(|| one.status.clone());
                    changes.push((known.position, state, reply));
                }
            }
        }
        Report::Complaint(report) if report.is_complaint() => {
            let named: Vec<&DeliveryRecord> =
                report.original_recipients.iter().filter_map(|address| matching(address)).collect();
            // Many providers leave the recipient out; with one recipient there is no doubt.
            let about = if named.is_empty() && before.len() == 1 { before.iter().collect() } else { named };
            for known in about {
                if may_follow(known.state, RecipientState::Complained) {
                    changes.push((known.position, RecipientState::Complained, None));
                }
            }
        }
        Report::Complaint(_) => {}
    }
    if changes.is_empty() {
        return Ok(());
    }
    for (position, state, reply) in &changes {
        outbound::set_state(tx, &mail.id, *position, *state, reply.as_deref(), now).await?;
    }
    // When it is the last word about the mail, the report lies in the mailbox already: no other has to be written.
    let mut mail = mail;
    let waits = before.iter().any(|one| one.state == RecipientState::Queued);
    if mail.report == "none" && !waits {
        outbound::set_report(tx, &mail.id, "done").await?;
        "done".clone_into(&mut mail.report);
    }
    conclude(tx, app, key, &mail, &before, now).await
}

/// Whether a report may change a state: only what has left can arrive, fail or be complained about.
const fn may_follow(present: RecipientState, next: RecipientState) -> bool {
    use RecipientState as State;
    matches!(
        (present, next),
        (State::Sent, State::Delivered | State::Bounced | State::Complained)
            | (State::Delivered, State::Complained | State::Bounced)
    )
}

fn same_address(one: &str, other: &str) -> bool {
    let parse = |text: &str| mail::address::Address::parse(text).ok();
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}
