//! Delivery attempts: what they decide, and those that deliver to mailboxes of this server.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use model::{
    Timestamp, WorkspaceId,
    emails::{InboundProvider, SenderAuthentication},
    sending::{OutboundMode, RecipientState},
};
use store::{
    SystemTx, events, mailboxes,
    outbound::{self, DeliveryRecord, OutboundRecord},
    queue::{self, Attempt},
    vault::DataKey,
};

use super::{
    bounces,
    outcomes::{self, Change, Outcome, conclude},
    routing::SUPPRESSED_REPLY,
};
use crate::{
    core::{
        app::App,
        error::{ErrorKind, Result},
        jitter::jitter_seconds,
        ports::{HandoverOutcome, HandoverResult},
        state::outbox::{Group, RELAY},
        supervisor::isolate,
    },
    inbox::{
        inbound::{self, Content, Delivery, Refusal},
        mail_log::{self, AttemptEntry},
    },
};

/// The delays between attempts, in seconds; the last one repeats.
const RETRY_DELAYS_SECONDS: [i64; 9] = [60, 120, 300, 600, 1200, 2400, 4800, 9600, 14_400];
/// The first and the longest pause of an unreachable destination.
const MIN_PAUSE_SECONDS: i64 = 30;
const MAX_PAUSE_SECONDS: i64 = 1800;
/// The first and the longest delay before recording an attempt is retried; each doubles the one before.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(16);
/// Maximum length of a stored reply.
const MAX_REPLY_BYTES: usize = 500;
/// What stands before the last answer where retrying has ended.
const GIVEN_UP: &str = "Given up; the last answer was: ";
/// Reports that are written in one round.
const MAX_REPORTS_PER_ROUND: i64 = 20;

/// The result of an attempt, and how long it took.
pub(super) struct AttemptResult {
    pub(super) handover: HandoverResult,
    pub(super) took: Duration,
}

impl AttemptResult {
    /// A result decided here, without another server.
    pub(super) fn here(outcomes: Vec<HandoverOutcome>) -> Self {
        Self { handover: HandoverResult { outcomes, peer: None }, took: Duration::ZERO }
    }

    pub(super) fn is_unreachable(&self) -> bool {
        self.handover.outcomes.iter().all(|one| matches!(one, HandoverOutcome::Unreachable(_)))
    }
}

/// Records a delivery attempt. What another server accepted must not be lost, so a store that is unavailable for a
/// moment is retried.
pub(super) async fn record_attempt(
    app: &App,
    group: &Group,
    mail: &OutboundRecord,
    result: AttemptResult,
) -> Result<()> {
    let now = app.now();
    let unreachable = result.is_unreachable();
    if unreachable {
        // The first task that gets through ends the pause.
        app.outbox().probe(&group.destination);
    }
    let AttemptResult { handover: HandoverResult { outcomes, peer }, took } = result;
    let attempts: Vec<_> = group
        .records
        .iter()
        .zip(outcomes)
        .map(|(record, outcome)| (record.clone(), attempt_of(app, mail, record.attempts, outcome, now)))
        .collect();
    // Logged first: the other server's answer stands, whatever the store does.
    for (record, attempt) in &attempts {
        let logged = AttemptEntry { peer: peer.as_ref(), took, ..AttemptEntry::new(record, attempt, now) };
        metrics::counter!("outbound_attempts_total", "result" => logged.result()).increment(1);
        mail_log::attempted(mail, &logged);
    }
    let outcome = Arc::new(Outcome {
        app: app.clone(),
        key: app.data_key(&group.workspace).await?,
        id: mail.id.clone(),
        email: mail.mailbox_id.clone().zip(mail.email_id.clone()),
        attempts,
        now,
    });
    let mut pause = FIRST_RETRY_DELAY;
    let recipients = loop {
        match outcomes::store(&group.workspace, outcome.clone()).await {
            Err(error) if pause <= MAX_RETRY_DELAY => {
                tracing::warn!(%error, "delivery attempt not recorded; retrying");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            stored => break stored?,
        }
    };
    if let Some(recipients) = recipients {
        app.outbox().publish(&group.workspace, &mail.id, recipients);
    }
    if let Err(error) = record_reachability(app, &group.destination, unreachable).await {
        tracing::warn!(%error, "destination pause not stored; continuing without it");
    }
    Ok(())
}

/// Pauses an unreachable destination, and clears the pause of one that was reached.
async fn record_reachability(app: &App, destination: &str, unreachable: bool) -> Result<()> {
    let (name, now) = (destination.to_owned(), app.now());
    if unreachable {
        let asked = name.clone();
        let failures = app.db().system_read(async move |tx| queue::failures(tx, &asked).await).await?;
        let doublings = u32::try_from(failures.clamp(0, 10)).unwrap_or_default();
        let pause = MIN_PAUSE_SECONDS.saturating_mul(1 << doublings).min(MAX_PAUSE_SECONDS);
        let until = now.plus_seconds(jitter_seconds(app, pause));
        app.db().system_write(async move |tx| queue::back_off(tx, &name, now, until).await).await?;
    } else if app.outbox().is_probed(destination) {
        app.db().system_write(async move |tx| queue::mark_reachable(tx, &name).await).await?;
        // What was due during the pause is due now.
        app.outbox().request_poll();
    }
    Ok(())
}

/// Records that recipients were left out because their addresses were suppressed after the message was queued.
pub(super) async fn record_suppressed(
    app: &App,
    group: &Group,
    mail: &OutboundRecord,
    records: Vec<queue::ClaimedDelivery>,
) -> Result<()> {
    let attempt = Attempt {
        state: RecipientState::Bounced,
        reply: SUPPRESSED_REPLY.to_owned(),
        next_attempt_at: None,
        class: None,
        suppressed: true,
    };
    let outcome = Arc::new(Outcome {
        app: app.clone(),
        key: app.data_key(&group.workspace).await?,
        id: mail.id.clone(),
        email: mail.mailbox_id.clone().zip(mail.email_id.clone()),
        attempts: records.into_iter().map(|record| (record, attempt.clone())).collect(),
        now: app.now(),
    });
    if let Some(recipients) = outcomes::store(&group.workspace, outcome).await? {
        app.outbox().publish(&group.workspace, &mail.id, recipients);
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
        HandoverOutcome::Deferred(reply) | HandoverOutcome::Unreachable(reply) if now >= mail.expires_at => {
            (RecipientState::Bounced, format!("{GIVEN_UP}{reply}"))
        }
        HandoverOutcome::Deferred(reply) | HandoverOutcome::Unreachable(reply) => {
            (RecipientState::Queued, reply)
        }
    };
    let said = reply.strip_prefix(GIVEN_UP).unwrap_or(&reply);
    let index = usize::try_from(before).unwrap_or_default().min(RETRY_DELAYS_SECONDS.len() - 1);
    let pause = jitter_seconds(app, RETRY_DELAYS_SECONDS[index]).max(1);
    let next = now.plus_seconds(pause).min(mail.expires_at.max(now.plus_seconds(1)));
    let next_attempt_at = (state == RecipientState::Queued).then_some(next);
    let class = (state != RecipientState::Sent).then(|| bounces::class_of(said));
    let reply = mail::printable(&reply, MAX_REPLY_BYTES);
    Attempt { state, reply, next_attempt_at, class, suppressed: false }
}

/// Delivers to mailboxes of this server, each in a transaction with its record, so that it happens once.
pub(super) async fn deliver_locally(
    app: &App,
    group: &Group,
    mail: &OutboundRecord,
    message: Bytes,
) -> Result<()> {
    if mail::message::count_received(&message) > inbound::MAX_RECEIVED_LINES {
        let outcome = HandoverOutcome::Refused(Refusal::LOOP.to_string());
        return record_attempt(app, group, mail, AttemptResult::here(vec![outcome; group.records.len()]))
            .await;
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
                        HandoverOutcome::Deferred(reply)
                    } else {
                        HandoverOutcome::Refused(reply)
                    };
                record_attempt(app, &one, mail, AttemptResult::here(vec![outcome])).await?;
                continue;
            }
        };
        let content = Content::seal(app, &recipient.workspace, &prepared, &message).await?;
        deliver_to(app, mail, record, recipient, prepared.clone(), content).await?;
    }
    Ok(())
}

/// Delivers to one mailbox, and logs it.
async fn deliver_to(
    app: &App,
    mail: &OutboundRecord,
    record: &queue::ClaimedDelivery,
    recipient: inbound::Recipient,
    prepared: Arc<inbound::PreparedMessage>,
    content: Content,
) -> Result<()> {
    let (key, now, id) = (app.data_key(&record.workspace).await?, app.now(), app.new_id());
    let reply = "250 2.1.5 Delivered to a mailbox of this server".to_owned();
    let attempt =
        Attempt { state: RecipientState::Sent, reply, next_attempt_at: None, class: None, suppressed: false };
    let (app_, record_, attempt_, id_) = (app.clone(), record.clone(), attempt.clone(), id.clone());
    let delivered = app
        .db()
        .system_write(async move |tx| {
            let delivery = LocalDelivery { app: &app_, key: &key, now: app_.now() };
            delivery.deliver(tx, (&record_, &attempt_), &recipient, &prepared, &content, &id_).await
        })
        .await?;
    if let Some(recipients) = delivered {
        app.outbox().publish(&record.workspace, &record.outbound, recipients);
        let logged =
            AttemptEntry { stored_as: Some(id.as_str()), ..AttemptEntry::new(record, &attempt, now) };
        metrics::counter!("outbound_attempts_total", "result" => logged.result()).increment(1);
        mail_log::attempted(mail, &logged);
    }
    Ok(())
}

/// Routes a record to another server; its route was not known when it was queued.
pub(super) async fn redirect(app: &App, record: &queue::ClaimedDelivery) -> Result<()> {
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

/// The delivery of one record to a mailbox of this server.
struct LocalDelivery<'a> {
    app: &'a App,
    key: &'a DataKey,
    now: Timestamp,
}

impl LocalDelivery<'_> {
    /// Returns the message's recipients, or `None` when it is gone or another node has it.
    async fn deliver(
        &self,
        tx: &mut SystemTx,
        (record, attempt): (&queue::ClaimedDelivery, &Attempt),
        recipient: &inbound::Recipient,
        prepared: &inbound::PreparedMessage,
        content: &Content,
        id: &model::EmailId,
    ) -> Result<Option<Vec<DeliveryRecord>>> {
        mailboxes::lock(tx.enter(&recipient.workspace), &recipient.mailbox).await?;
        let both: BTreeSet<&WorkspaceId> = [&record.workspace, &recipient.workspace].into();
        let own = tx.enter(&record.workspace);
        let Some(mail) = outbound::lock(own, &record.outbound).await? else { return Ok(None) };
        let before = outbound::recipients(own, &mail.id).await?;
        let node = self.app.outbox().node();
        if queue::record_attempts(own, node, &[(record, attempt, self.now)]).await? != [true] {
            return Ok(None);
        }
        for workspace in both {
            events::lock(tx.enter(workspace)).await?;
        }
        let authentication = SenderAuthentication::unknown(Some(InboundProvider::MailApi));
        let sender = mail.sender.as_deref();
        let delivery = Delivery {
            app: self.app,
            prepared,
            authentication: &authentication,
            sender,
            now: self.now,
            imported: false,
        };
        delivery.to_mailbox(tx.enter(&recipient.workspace), recipient, id, content).await?;
        let own = tx.enter(&record.workspace);
        let after = outbound::recipients(own, &mail.id).await?;
        let change = Change { key: self.key, mail: &mail, before: &before, after: &after, now: self.now };
        conclude(own, self.app, &[change]).await?;
        Ok(Some(after))
    }
}

/// Writes the reports about failed messages into the mailboxes of their senders.
pub(super) async fn report_due(app: &App) -> Result<()> {
    let due = app.db().system_read(async |tx| queue::due_reports(tx, MAX_REPORTS_PER_ROUND).await).await?;
    for (workspace, id) in due {
        match isolate("queue", super::report::write(app, &workspace, &id)).await {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::Overloaded) => {
                tracing::warn!(%workspace, %error, "delivery report failed; retrying");
            }
            // A report that can never be written must not block others; the message itself has the status bounced.
            Err(error) => {
                tracing::error!(%workspace, %error, "delivery report failed; giving up");
                super::report::skip(app, &workspace, &id).await?;
            }
        }
    }
    Ok(())
}
