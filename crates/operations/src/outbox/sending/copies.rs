//! The sender's copies of submitted messages, with their queue records and events.
//!
//! Several messages take as many statements as one: each step is done for all of them before the next.

use std::collections::BTreeSet;

use bytes::Bytes;
use mail::address::Mailbox;
use model::{
    EmailId, MailboxId, Timestamp,
    emails::ScanStatus,
    events::EventType,
    folders::SystemFolder,
    outbound::{OutboundKind, ReportState},
    send_policies::gate::Clearance,
    sending::{DeliveryStatus, RecipientState, SendStatus, SentMail},
};
use store::{
    Tx, contents,
    correspondents::{self, Direction},
    drafts::{self as stored_drafts, DraftRecord},
    emails::{self, NewEmail, SentEmail},
    outbound::{self, DeliveryRecord, NewOutbound, OutboundRecord},
    submissions,
    threads::{ThreadHints, ThreadQuery},
};

use super::{
    bounces,
    origin::Origin,
    outgoing_message::OutgoingMessage,
    routing::{Addressee, Route},
    submission_log::SubmissionLog,
};
use crate::{
    core::{
        app::App,
        error::{Error, Result},
        events::NewEvent,
    },
    inbox::inbound::{Content, Delivery, PreparedMessage, Recipient},
};

/// A submitted message, as its sender keeps it.
pub(super) struct SenderCopy<'a> {
    pub(super) origin: &'a Origin,
    pub(super) outgoing: &'a OutgoingMessage,
    pub(super) prepared: &'a PreparedMessage,
    pub(super) content: &'a Content,
    /// The message as it goes over the wire.
    pub(super) message: &'a Bytes,
    pub(super) id: &'a EmailId,
    /// The draft that it was.
    pub(super) draft: Option<&'a DraftRecord>,
    pub(super) addressees: &'a [Addressee],
    /// What the gate of send policies gave it; nothing for a message that waits.
    pub(super) clearance: Option<&'a Clearance>,
    /// Until when this node has it claimed from the start.
    pub(super) claimed_until: Option<Timestamp>,
    pub(super) log: &'a SubmissionLog,
    pub(super) now: Timestamp,
}

/// Stores copies in mailboxes of one workspace, which it locks in their order, with their queue records and events.
pub(super) async fn store_all(tx: &mut Tx, app: &App, copies: &[SenderCopy<'_>]) -> Result<Vec<SentMail>> {
    let messages: Vec<QueuedMessage> = copies.iter().map(|copy| copy.queued(app)).collect();
    let email = |(copy, message): (&SenderCopy<'_>, &QueuedMessage)| {
        (copy.mailbox().clone(), copy.email(app, message.status))
    };
    let mut new_emails: Vec<(MailboxId, NewEmail)> = copies.iter().zip(&messages).map(email).collect();
    let hints: Vec<ThreadHints> = new_emails.iter().map(|(_, mail)| asked_hints(mail)).collect();
    let asked = new_emails.iter().zip(&hints);
    let queries: Vec<ThreadQuery<'_>> = asked
        .map(|((mailbox, mail), hints)| ThreadQuery { mailbox, hints, date: mail.record.date })
        .collect();
    let mut context = submissions::load(tx, &queries).await?;
    if !copies.iter().all(|copy| context.mailboxes.contains(copy.mailbox())) {
        return Err(Error::not_found("Mailbox not found"));
    }
    for (_, mail) in &mut new_emails {
        // It did not arrive, so there is no event of its arrival, and calls that wait for mail are not woken.
        mail.record.arrival = context.last_event;
    }
    for copy in copies {
        copy.content.require_new(app)?;
    }
    // Contents of messages that were written here are new; in one order nevertheless, since each is locked.
    let mut contents: Vec<_> = copies.iter().map(|copy| (&copy.content.record, copy.now)).collect();
    contents.sort_by_key(|(content, _)| &content.id);
    contents::insert_all(tx, &contents).await?;
    emails::insert_all(tx, &mut new_emails, &mut context.threads).await?;
    let mut queued: Vec<NewOutbound<'_>> = Vec::with_capacity(copies.len());
    for (copy, message) in copies.iter().zip(&messages) {
        queued.push(NewOutbound {
            mail: &message.record,
            recipients: &message.recipients,
            claim: copy.claimed_until.map(|until| (app.outbox().node(), until)),
            clearance: copy.clearance.ok_or_else(|| Error::internal("a message without clearance"))?,
        });
    }
    outbound::insert_all(tx, &queued).await?;
    let people = copies.iter().flat_map(|copy| copy.addressees);
    let written_to = people.filter(|one| !matches!(one.route, Route::Suppressed));
    let addresses: BTreeSet<String> = written_to.map(|one| one.address.to_lowercase()).collect();
    correspondents::record(tx, Direction::Sent, &addresses).await?;
    let mut log = Vec::new();
    for ((copy, message), (_, mail)) in copies.iter().zip(&messages).zip(&new_emails) {
        copy.store_schedule(tx).await?;
        for hook in app.hooks().send {
            hook.after_send(tx, app, &copy.origin.mailbox, copy.id, copy.now).await?;
        }
        for kind in copy.event_types(message) {
            let data = sent_data(&SentEmail::from(&mail.record), &message.recipients);
            let event = NewEvent { kind, mailbox: Some(copy.mailbox().clone()), data };
            log.push((event, &*copy.content.key, copy.now));
        }
    }
    NewEvent::append_all(tx, app, log).await?;
    for (copy, message) in copies.iter().zip(&messages) {
        bounces::suppress(tx, app, &message.record, (&[], &message.recipients), copy.now).await?;
    }
    let sent = copies.iter().zip(messages).zip(new_emails);
    Ok(sent.map(|((copy, message), (_, mail))| copy.finish(app, message, mail)).collect())
}

/// What the thread of an email is looked up by.
fn asked_hints(mail: &NewEmail) -> ThreadHints {
    if mail.thread.is_some() { ThreadHints::default() } else { mail.hints.without_own() }
}

/// A message with its recipients, as the queue keeps it.
struct QueuedMessage {
    record: OutboundRecord,
    recipients: Vec<DeliveryRecord>,
    status: DeliveryStatus,
}

impl QueuedMessage {
    fn all_bounced(&self) -> bool {
        self.recipients.iter().all(|one| one.state == RecipientState::Bounced)
    }

    fn any_bounced(&self) -> bool {
        self.recipients.iter().any(DeliveryRecord::is_failed)
    }
}

/// The first delivery records of a message.
pub(super) fn delivery_records(addressees: &[Addressee], now: Timestamp) -> Vec<DeliveryRecord> {
    (0..).zip(addressees).map(|(position, addressee)| addressee.record(position, now)).collect()
}

impl SenderCopy<'_> {
    fn mailbox(&self) -> &MailboxId {
        &self.origin.mailbox.id
    }

    fn queued(&self, app: &App) -> QueuedMessage {
        let recipients = delivery_records(self.addressees, self.now);
        let states: Vec<RecipientState> = recipients.iter().map(|one| one.state).collect();
        let status = DeliveryStatus::of(&states);
        let failed = status != DeliveryStatus::Queued && recipients.iter().any(DeliveryRecord::is_failed);
        let record = OutboundRecord {
            id: self.id.as_str().to_owned(),
            mailbox_id: Some(self.mailbox().clone()),
            email_id: Some(self.id.clone()),
            kind: OutboundKind::Email,
            content_id: self.prepared.hash.clone(),
            prefix: String::new(),
            sender: Some(self.origin.mailbox.email.clone()),
            message_id: Some(self.outgoing.message_id.clone()),
            created_at: self.now,
            expires_at: self.now.plus_seconds(app.settings().outbound.retry_seconds),
            report: if failed { ReportState::Due } else { ReportState::None },
        };
        QueuedMessage { record, recipients, status }
    }

    fn email(&self, app: &App, status: DeliveryStatus) -> NewEmail {
        let own = Delivery::own(app, self.prepared, self.now);
        let mut mail = sender_copy(&own, self.origin, self.outgoing, self.id, self.content, 0);
        mail.record.folder_id = SystemFolder::Sent.into();
        mail.record.delivery_status = Some(status);
        mail
    }

    /// The events of the submission. Queued deliveries get theirs later.
    fn event_types(&self, message: &QueuedMessage) -> Vec<EventType> {
        let is_known = message.status != DeliveryStatus::Queued;
        let is_scheduled = self.draft.is_some_and(|draft| draft.scheduled_at.is_some());
        let kinds = [
            (is_known && !message.all_bounced(), EventType::MessageSent),
            (message.any_bounced(), EventType::MessageBounced),
            (is_scheduled, EventType::ScheduleSent),
        ];
        kinds.into_iter().filter(|(is_due, _)| *is_due).map(|(_, kind)| kind).collect()
    }

    /// A scheduled send can still be read after it was sent.
    async fn store_schedule(&self, tx: &mut Tx) -> Result<()> {
        let Some(draft) = self.draft.filter(|draft| draft.scheduled_at.is_some()) else { return Ok(()) };
        if draft.email_id != *self.id {
            return Ok(());
        }
        let record = DraftRecord {
            state: model::drafts::DraftState::Sent,
            version: draft.version + 1,
            claimed_until: None,
            last_error: None,
            ..draft.clone()
        };
        Ok(stored_drafts::insert(tx, self.mailbox(), &record).await?)
    }

    /// The recipients that it was not sent to.
    fn suppressed(&self) -> Vec<String> {
        let left_out = self.addressees.iter().filter(|one| matches!(one.route, Route::Suppressed));
        left_out.map(|one| one.address.clone()).collect()
    }

    /// Keeps what the worker and the mail log need after the commit, and returns what the sender is told.
    fn finish(&self, app: &App, message: QueuedMessage, mail: NewEmail) -> SentMail {
        if message.status == DeliveryStatus::Queued {
            let (record, bytes) = (message.record.clone(), self.message.clone());
            app.outbox().fresh_messages().keep(&self.origin.workspace, record, bytes);
        }
        let is_accepted =
            |one: &Addressee| matches!(one.route, Route::Mailbox(_) | Route::Sandbox | Route::Suppressed);
        let status =
            if self.addressees.iter().all(is_accepted) { SendStatus::Sent } else { SendStatus::Queued };
        self.log.record(message.record, message.recipients, self.content.record.size);
        let message_id = self.outgoing.message_id.clone();
        SentMail {
            id: self.id.clone(),
            status,
            thread_id: mail.record.thread_id,
            message_id,
            review_id: None,
            scheduled_send_at: None,
            suppressed: self.suppressed(),
            fix: None,
        }
    }
}

/// The sender's copy of a message; the caller sets its folder.
pub(crate) fn sender_copy(
    delivery: &Delivery<'_>,
    origin: &Origin,
    outgoing: &OutgoingMessage,
    id: &EmailId,
    content: &Content,
    sequence: i64,
) -> NewEmail {
    let own = Recipient {
        workspace: origin.workspace.clone(),
        plan: origin.plan,
        mailbox: origin.mailbox.id.clone(),
        address: line(&outgoing.to),
        policy: None,
    };
    let mut mail = delivery.email(&own, id, sequence, content);
    mail.thread.clone_from(&outgoing.thread);
    let record = &mut mail.record;
    record.outgoing = true;
    record.read = true;
    record.is_urgent = false;
    record.date = delivery.now;
    record.to_line = line(&outgoing.to);
    record.cc = Some(line(&outgoing.cc)).filter(|text| !text.is_empty());
    record.bcc = Some(line(&outgoing.bcc)).filter(|text| !text.is_empty());
    // A message written here is never flagged; it is only marked clean when that is certain.
    record.scan_status = Some(delivery.prepared.verdict.0).filter(|status| *status == ScanStatus::Clean);
    record.scan_threats = Vec::new();
    keep_attachment_ids(&mut mail, outgoing);
    mail
}

/// Attachments that were in the mailbox before keep their ids.
fn keep_attachment_ids(mail: &mut NewEmail, outgoing: &OutgoingMessage) {
    let mut known: Vec<_> = outgoing.attachments.iter().filter(|source| source.keeps_id).collect();
    for attachment in &mut mail.attachments {
        let same = known.iter().position(|source| {
            source.file.filename == attachment.public.filename
                && i64::try_from(source.file.bytes.len()).ok() == Some(attachment.public.size)
        });
        if let Some(id) = same.and_then(|index| known.remove(index).id.clone()) {
            attachment.public.id = id;
        }
    }
    mail.record.attachments = mail.attachments.iter().map(|attachment| attachment.public.clone()).collect();
}

/// Recipients as a header line.
pub(crate) fn line(people: &[Mailbox]) -> String {
    people.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The event data of a message that was sent or queued.
pub(crate) fn sent_data(mail: &SentEmail, recipients: &[DeliveryRecord]) -> serde_json::Value {
    serde_json::json!({
        "email_id": mail.id,
        "thread_id": mail.thread_id,
        "message_id": mail.message_id,
        "subject": mail.subject,
        "delivery_status": mail.delivery_status,
        "recipients": recipients.iter().map(|one| serde_json::json!({
            "recipient": one.recipient, "state": one.shown_state(), "class": one.class, "last_reply": one.reply,
        })).collect::<Vec<_>>(),
    })
}
