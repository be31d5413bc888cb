//! Storing prepared messages in the mailboxes of one workspace, with everything that follows from their arrival.
//!
//! Several messages take as many statements as one: each step is done for all of them before the next.

use std::collections::BTreeSet;

use model::{
    EmailId, LabelId, MailboxId, Timestamp,
    emails::{Attachment, ScanStatus, SenderAuthentication},
    events::EventType,
    filter::{self, Rules},
    folders::SystemFolder,
    labels::Label,
};
use store::{
    Tx,
    arrivals::{self, ArrivalContext},
    contents,
    correspondents::{self, Direction},
    emails::{self, EmailRecord, NewAttachment, NewEmail},
    events,
    mailboxes::{self, MailboxName, MailboxRecord},
    metering,
    threads::ThreadQuery,
};

use super::{
    PreparedMessage,
    content::Content,
    prepare::{self, received_data},
};
use crate::core::{
    app::App,
    arriving::{Arriving, Recipient},
    error::{Error, Result},
    events::NewEvent,
};

/// A prepared message on its way into mailboxes.
pub(crate) struct Delivery<'a> {
    pub(crate) app: &'a App,
    pub(crate) prepared: &'a PreparedMessage,
    pub(crate) authentication: &'a SenderAuthentication,
    /// The envelope's sender; nothing for a null sender.
    pub(crate) sender: Option<&'a str>,
    pub(crate) now: Timestamp,
    /// Whether it is older mail that a caller brings along, which was not received here.
    pub(crate) imported: bool,
}

/// The authentication of a message that was written here, not received.
const NOT_RECEIVED: &SenderAuthentication = &SenderAuthentication::unknown(None);

impl<'a> Delivery<'a> {
    /// A message that a mailbox keeps of its own: a draft, or the sender's copy.
    pub(crate) const fn own(app: &'a App, prepared: &'a PreparedMessage, now: Timestamp) -> Self {
        Self { app, prepared, authentication: NOT_RECEIVED, sender: None, now, imported: false }
    }
}

/// A message that is delivered to one mailbox.
pub(crate) struct MailboxDelivery<'a> {
    pub(crate) delivery: &'a Delivery<'a>,
    pub(crate) recipient: &'a Recipient,
    /// The id of the email that it becomes.
    pub(crate) id: &'a EmailId,
    pub(crate) content: &'a Content,
}

/// Stores messages in mailboxes of one workspace, in this order, with everything that follows from their arrival.
///
/// On PostgreSQL it locks the mailboxes in their order. Where that may be too late, since locks of other workspaces or of
/// reported messages come in between, the caller has locked them before.
pub(crate) async fn store_all(tx: &mut Tx, app: &App, deliveries: &[MailboxDelivery<'_>]) -> Result<()> {
    // Before the event log is locked: the sending worker locks the message first, then the log.
    for one in deliveries {
        one.record_report(tx).await?;
    }
    let mut new_emails: Vec<(MailboxId, NewEmail)> = deliveries.iter().map(MailboxDelivery::email).collect();
    let queries: Vec<ThreadQuery<'_>> = new_emails
        .iter()
        .map(|(mailbox, mail)| ThreadQuery { mailbox, hints: &mail.hints, date: mail.record.date })
        .collect();
    // The contents come after that: only a transaction that has the next sequence may lock several.
    let mut context = arrivals::load(tx, &queries).await?;
    for ((one, (_, mail)), sequence) in deliveries.iter().zip(&mut new_emails).zip(context.first_sequence..) {
        mail.record.arrival = sequence;
        one.complete(tx, &context, mail).await?;
    }
    for one in deliveries {
        one.content.require_new(app)?;
    }
    let records: Vec<_> = deliveries.iter().map(|one| (&one.content.record, one.delivery.now)).collect();
    contents::insert_all(tx, &records).await?;
    emails::insert_all(tx, &mut new_emails, &mut context.threads).await?;
    record_correspondents(tx, deliveries, &new_emails).await?;
    let mut log = Vec::with_capacity(deliveries.len());
    for (one, (_, mail)) in deliveries.iter().zip(&new_emails) {
        one.count(tx).await?;
        let event = NewEvent {
            kind: EventType::MessageReceived,
            mailbox: Some(one.recipient.mailbox.clone()),
            data: received_data(&mail.record),
        };
        log.push(event.record(app, &one.content.key, mail.record.arrival, one.delivery.now)?);
    }
    events::insert_all(tx, &log).await?;
    for (one, (_, mail)) in deliveries.iter().zip(&new_emails) {
        let arriving = one.arriving(one.mailbox(&context)?);
        for hook in app.hooks().arrival {
            hook.after_arrival(tx, app, &arriving, &mail.record).await?;
        }
    }
    Ok(())
}

/// Records who has written to the workspace. What a caller brought along, spam and dangerous messages make nobody a
/// correspondent.
async fn record_correspondents(
    tx: &mut Tx,
    deliveries: &[MailboxDelivery<'_>],
    new_emails: &[(MailboxId, NewEmail)],
) -> Result<()> {
    let counts = |(one, (_, mail)): &(&MailboxDelivery<'_>, &(MailboxId, NewEmail))| {
        one.delivery.authentication.inbound_provider.is_some()
            && mail.record.folder_id != SystemFolder::Spam
            && one.delivery.prepared.verdict.0 != ScanStatus::Flagged
            && !mail.record.sender_address.is_empty()
    };
    let counted = deliveries.iter().zip(new_emails).filter(counts);
    let addresses: BTreeSet<String> =
        counted.map(|(_, (_, mail))| mail.record.sender_address.clone()).collect();
    Ok(correspondents::record(tx, Direction::Received, &addresses).await?)
}

impl MailboxDelivery<'_> {
    async fn record_report(&self, tx: &mut Tx) -> Result<()> {
        let Some(report) = &self.delivery.prepared.report else { return Ok(()) };
        let named = MailboxName::Id(self.recipient.mailbox.clone());
        let mailbox = mailboxes::find(tx, &named).await?.ok_or_else(no_mailbox)?;
        let (app, arriving) = (self.delivery.app, self.arriving(&mailbox));
        for hook in app.hooks().arrival {
            hook.record_report(tx, app, &arriving, report).await?;
        }
        Ok(())
    }

    /// The email that the message becomes, and its mailbox. It has no arrival number yet.
    fn email(&self) -> (MailboxId, NewEmail) {
        let mail = self.delivery.email(self.recipient, self.id, 0, self.content);
        (self.recipient.mailbox.clone(), mail)
    }

    fn mailbox<'b>(&self, context: &'b ArrivalContext) -> Result<&'b MailboxRecord> {
        context.mailboxes.get(&self.recipient.mailbox).ok_or_else(no_mailbox)
    }

    /// Adds to the email what its mailbox decides.
    async fn complete(&self, tx: &mut Tx, context: &ArrivalContext, mail: &mut NewEmail) -> Result<()> {
        let (delivery, mailbox) = (self.delivery, self.mailbox(context)?);
        if delivery.prepared.is_spam(delivery.authentication) && mailbox.settings.spam.to_spam_folder {
            mail.record.folder_id = SystemFolder::Spam.into();
        }
        let labels = context.labels.get(&self.recipient.mailbox).map_or(&[][..], Vec::as_slice);
        mail.labels = matching_labels(labels, &mail.record, delivery.prepared);
        let arriving = self.arriving(mailbox);
        for hook in delivery.app.hooks().arrival {
            let until = hook.hold(tx, delivery.app, &arriving, &mail.record).await?;
            mail.record.held_until = mail.record.held_until.max(until);
        }
        Ok(())
    }

    /// Counts the message as received, unless it is imported.
    async fn count(&self, tx: &mut Tx) -> Result<()> {
        let delivery = self.delivery;
        if delivery.imported {
            return Ok(());
        }
        let counter = format!("received.{}", delivery.now.month());
        mailboxes::add_to_counter(tx, &self.recipient.mailbox, &counter, 1).await?;
        Ok(metering::add_usage(tx, delivery.now.day(), "mails_in", 1).await?)
    }

    /// The message as passed to the hooks.
    fn arriving<'b>(&'b self, mailbox: &'b MailboxRecord) -> Arriving<'b> {
        let Delivery { prepared, authentication, sender, now, .. } = *self.delivery;
        Arriving {
            message: &prepared.message,
            safe: prepared.safe(),
            has_link: prepared.has_link,
            verdict: prepared.verdict.0,
            authentication,
            sender,
            recipient: self.recipient,
            mailbox,
            content_id: &self.content.record.id,
            key: &self.content.key,
            now,
        }
    }
}

fn no_mailbox() -> Error {
    Error::not_found("Mailbox not found")
}

impl Delivery<'_> {
    /// Stores the message in one mailbox, which the caller has locked, with everything that follows from its arrival.
    pub(crate) async fn to_mailbox(
        &self,
        tx: &mut Tx,
        recipient: &Recipient,
        id: &EmailId,
        content: &Content,
    ) -> Result<()> {
        store_all(tx, self.app, &[MailboxDelivery { delivery: self, recipient, id, content }]).await
    }

    /// The email that the message becomes in a mailbox.
    pub(crate) fn email(
        &self,
        recipient: &Recipient,
        id: &EmailId,
        arrival: i64,
        content: &Content,
    ) -> NewEmail {
        let message = &self.prepared.message;
        let attachments = self.attachments();
        let references = message.references.join(" ");
        let record = EmailRecord {
            id: id.clone(),
            thread_id: self.app.new_id(),
            folder_id: SystemFolder::Inbox.into(),
            content_id: self.prepared.hash.clone(),
            outgoing: false,
            arrival,
            arrived_at: self.now,
            date: self.prepared.date(self.now),
            subject: message.subject.clone(),
            sender: self.prepared.sender(),
            sender_address: self.prepared.sender_address().to_lowercase(),
            recipient: recipient.address.clone(),
            to_line: prepare::people(message.to.iter()),
            cc: some(prepare::people(message.cc.iter())),
            bcc: None,
            reply_to: some(prepare::people(message.reply_to.iter())),
            read: false,
            starred: false,
            is_urgent: self.prepared.urgent,
            category: self.prepared.category,
            snippet: self.prepared.snippet.clone(),
            body_format: self.prepared.body_format,
            safe_source: self.prepared.safe_source,
            safe_divergent: self.prepared.safe_divergent,
            size: content.record.size,
            stored_objects: content.objects(),
            message_id: message.message_id.clone(),
            in_reply_to: message.in_reply_to.clone(),
            email_references: some(references),
            delivery_status: None,
            automatic: message.automatic.map(|kind| prepare::automatic_name(kind).to_owned()),
            scan_status: self.prepared.scan_status(self.app.scanning().has_external()),
            scan_threats: self.prepared.verdict.1.clone(),
            sender_authentication: self.authentication.clone(),
            attachments: attachments.iter().map(|attachment| attachment.public.clone()).collect(),
            held_until: None,
            labels: Vec::new(),
        };
        NewEmail {
            record,
            attachments,
            labels: Vec::new(),
            thread: None,
            hints: self.prepared.hints(),
            text: self.prepared.text.clone(),
        }
    }

    fn attachments(&self) -> Vec<NewAttachment> {
        let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.prepared
            .message
            .files
            .iter()
            .map(|file| NewAttachment {
                public: Attachment {
                    id: self.app.new_id(),
                    filename: file.name.clone(),
                    mimetype: file.media_type.clone(),
                    size: i64::try_from(file.size).unwrap_or(i64::MAX),
                    content_id: file.content_id.clone(),
                    disposition: file.disposition.clone(),
                },
                byte_range: (signed(file.range.start), signed(file.range.end)),
                encoding: prepare::encoding_name(file.encoding),
            })
            .collect()
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The labels whose expression matches the message.
fn matching_labels(labels: &[Label], record: &EmailRecord, prepared: &PreparedMessage) -> Vec<LabelId> {
    let subject = prepared.subject(record);
    let matches = |label: &&Label| match filter::parse_rules(&label.rules) {
        Ok(Rules::Expression(filter)) => filter.matches(&subject),
        _ => false,
    };
    labels.iter().filter(matches).map(|label| label.id.clone()).collect()
}
