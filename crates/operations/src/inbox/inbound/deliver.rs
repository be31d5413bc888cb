//! Storing a prepared message in its mailboxes, all in one transaction.
//!
//! Locks are taken in the same order everywhere: mailboxes, reported messages, the event log, contents.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use mail::message::{self, Message};
use model::{
    EmailId, LabelId, MailboxId, Timestamp, WorkspaceId,
    emails::{Attachment, SenderAuthentication},
    events::EventType,
    filter::{self, Rules},
    folders::SystemFolder,
};
use store::{
    SystemTx, Tx, contents,
    emails::{self, EmailRecord, NewAttachment, NewEmail},
    events, idempotency, labels, mailboxes, metering,
};

use super::{
    Arrival, PreparedMessage,
    content::{Content, SealedContent},
    prepare::{self, received_data},
};
use crate::core::{
    app::App,
    arriving::{Arriving, Recipient},
    error::{Error, Result},
    events::NewEvent,
};

/// Messages up to this size without files are parsed, analysed and sealed on the async thread: that takes a tenth of a
/// millisecond, and less than one in the worst case.
const MAX_INLINE_BYTES: usize = 16 * 1024;

/// Parses and analyses a message on a blocking thread.
pub(crate) async fn read(app: &App, raw: Bytes) -> Result<PreparedMessage> {
    let blocklist = app.scanning().blocklist();
    let _turn = app.scanning().turn().await;
    let work = move || prepare::analyse(&raw, message::read(&raw), &blocklist);
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// Parses and analyses a message and seals it for its workspaces; a long one on a blocking thread.
pub(crate) async fn prepare_and_seal(
    app: &App,
    raw: &Bytes,
    workspaces: impl Iterator<Item = &WorkspaceId>,
) -> Result<(Arc<PreparedMessage>, BTreeMap<WorkspaceId, Content>)> {
    let mut keys = BTreeMap::new();
    for workspace in workspaces {
        if !keys.contains_key(workspace) {
            keys.insert(workspace.clone(), app.data_key(workspace).await?);
        }
    }
    let (blocklist, bytes) = (app.scanning().blocklist(), raw.clone());
    let turn = app.scanning().turn().await;
    let finish = move |message: Message| -> Result<_> {
        let prepared = prepare::analyse(&bytes, message, &blocklist);
        let mut sealed = Vec::with_capacity(keys.len());
        for (workspace, key) in keys {
            let content = SealedContent::new(key, &workspace, &prepared, &bytes)?;
            sealed.push((workspace, content));
        }
        Ok((prepared, sealed))
    };
    // Switching threads takes longer than a short message does; but files may contain archives.
    let short = if raw.len() <= MAX_INLINE_BYTES { Some(caught(|| message::read(raw))?) } else { None };
    let (prepared, sealed) = match short {
        Some(message) if message.files.is_empty() && message.inner.is_empty() => caught(|| finish(message))??,
        read => {
            let raw = raw.clone();
            let work = move || finish(read.unwrap_or_else(|| message::read(&raw)));
            tokio::task::spawn_blocking(work).await.map_err(Error::internal)??
        }
    };
    drop(turn);
    let mut contents = BTreeMap::new();
    for (workspace, sealed) in sealed {
        contents.insert(workspace, Content::store(app, sealed).await?);
    }
    Ok((Arc::new(prepared), contents))
}

/// Runs a parser of untrusted input, so that a panic fails only this message.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Error::internal("reading a message panicked"))
}

/// A prepared message with everything that its delivery needs.
struct PreparedDelivery {
    app: App,
    arrival: Arrival,
    authentication: SenderAuthentication,
    name: Option<String>,
    prepared: Arc<PreparedMessage>,
    contents: BTreeMap<WorkspaceId, Content>,
    ids: Vec<EmailId>,
}

impl PreparedDelivery {
    async fn deliver(&self, tx: &mut SystemTx) -> Result<Vec<EmailId>> {
        let delivery = Delivery {
            app: &self.app,
            prepared: &self.prepared,
            authentication: &self.authentication,
            sender: self.arrival.from.as_deref(),
            now: self.app.now(),
            // What came by no transport was uploaded.
            imported: self.arrival.provider.is_none(),
        };
        let (recipients, ids) = (&self.arrival.recipients, self.ids.clone());
        delivery.to_all(tx, recipients, ids, &self.contents, self.name.as_deref()).await
    }
}

/// Delivers to all recipients, or to none; returns the prepared message, too.
pub(super) async fn deliver(
    app: &App,
    arrival: Arrival,
    authentication: SenderAuthentication,
    name: Option<String>,
) -> Result<(Vec<EmailId>, Arc<PreparedMessage>)> {
    let workspaces = arrival.recipients.iter().map(|recipient| &recipient.workspace);
    let (prepared, contents) = prepare_and_seal(app, &arrival.raw, workspaces).await?;
    let ids = new_ids(app, &arrival.recipients);
    // A report locks the row of the reported message, which the sending worker locks before the event log; a shared
    // commit may have locked the log already.
    let only =
        sole_mailbox(&arrival.recipients).filter(|_| prepared.report.is_none()).map(ToString::to_string);
    let delivery = Arc::new(PreparedDelivery {
        app: app.clone(),
        arrival,
        authentication,
        name,
        prepared,
        contents,
        ids,
    });
    // Keep a reference, so that the message is not dropped on the store's only writer thread.
    let kept = delivery.clone();
    let body = async move |tx: &mut SystemTx| delivery.deliver(tx).await;
    let db = app.db().clone();
    let work = async move {
        // Locks on several mailboxes in a shared commit could deadlock.
        match only {
            Some(mailbox) => db.shared_write(&mailbox, body).await,
            None => db.system_write(body).await,
        }
    };
    // The client may disconnect at any time, and other deliveries share its commit.
    let delivered = if app.db().finishes_alone() {
        work.await
    } else {
        tokio::spawn(work).await.map_err(Error::internal)?
    };
    Ok((delivered?, kept.prepared.clone()))
}

/// The mailbox of all recipients, if they have the same.
fn sole_mailbox(recipients: &[Recipient]) -> Option<&MailboxId> {
    let mailbox = &recipients.first()?.mailbox;
    recipients.iter().all(|recipient| recipient.mailbox == *mailbox).then_some(mailbox)
}

/// Claims an idempotency key for a recipient, or finds the email that was stored under it before.
async fn claim(
    tx: &mut Tx,
    content: &Content,
    name: &str,
    recipient: &Recipient,
    id: &EmailId,
    now: Timestamp,
) -> Result<Option<EmailId>> {
    // An Idempotency-Key of a caller has no line feed.
    let key = format!("mail\n{name}\n{}", recipient.address);
    if idempotency::claim(tx, &key, &[], now).await? {
        let sealed = content.key.seal(&key, id.as_str().as_bytes()).map_err(store::Error::from)?;
        idempotency::store(tx, &key, 200, &sealed).await?;
        return Ok(None);
    }
    let kept = idempotency::find(tx, &key, now).await?;
    let kept = kept.ok_or_else(|| Error::internal("a claimed name has no answer"))?;
    let plain = content.key.open(&key, &kept.answer).map_err(store::Error::from)?;
    Ok(Some(EmailId::from(String::from_utf8_lossy(&plain).as_ref())))
}

/// An id for each recipient; a duplicate recipient gets the message once.
fn new_ids(app: &App, recipients: &[Recipient]) -> Vec<EmailId> {
    let mut ids: Vec<EmailId> = Vec::with_capacity(recipients.len());
    for (index, recipient) in recipients.iter().enumerate() {
        let same =
            |other: &Recipient| other.mailbox == recipient.mailbox && other.address == recipient.address;
        let earlier = recipients[..index].iter().position(same);
        ids.push(earlier.map_or_else(|| app.new_id(), |earlier| ids[earlier].clone()));
    }
    ids
}

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

impl Delivery<'_> {
    /// Stores the message in all mailboxes, and returns the ids in the order of the recipients. A recipient who got it
    /// under the same idempotency key before does not get it again.
    async fn to_all(
        &self,
        tx: &mut SystemTx,
        recipients: &[Recipient],
        mut ids: Vec<EmailId>,
        contents: &BTreeMap<WorkspaceId, Content>,
        name: Option<&str>,
    ) -> Result<Vec<EmailId>> {
        // In one order for all deliveries, so that two messages to the same mailboxes cannot deadlock.
        let mut order: Vec<usize> = (0..recipients.len()).collect();
        order.sort_by_key(|index| {
            let recipient = &recipients[*index];
            (&recipient.workspace, &recipient.mailbox, &ids[*index])
        });
        order.dedup_by_key(|index| &ids[*index]);
        // All mailboxes before all contents, as in every other transaction that locks both.
        for index in &order {
            let recipient = &recipients[*index];
            mailboxes::lock(tx.enter(&recipient.workspace), &recipient.mailbox).await?;
        }
        // And reported messages before any event log: the sending worker locks them in this order.
        if let Some(report) = &self.prepared.report {
            for index in &order {
                let recipient = &recipients[*index];
                for hook in self.app.hooks().arrival {
                    hook.lock_reported(tx.enter(&recipient.workspace), &recipient.mailbox, report).await?;
                }
            }
        }
        let mut known = Vec::new();
        for index in order {
            let recipient = &recipients[index];
            let content = contents
                .get(&recipient.workspace)
                .ok_or_else(|| Error::internal("a recipient's workspace was not prepared"))?;
            let tx = tx.enter(&recipient.workspace);
            if let Some(name) = name
                && let Some(earlier) = claim(tx, content, name, recipient, &ids[index], self.now).await?
            {
                known.push((ids[index].clone(), earlier));
                continue;
            }
            self.to_mailbox(tx, recipient, &ids[index], content).await?;
        }
        for (new, earlier) in known {
            ids.iter_mut().filter(|id| **id == new).for_each(|id| *id = earlier.clone());
        }
        Ok(ids)
    }

    /// Stores the message in one mailbox, which the caller has locked, with everything that follows from its arrival.
    pub(crate) async fn to_mailbox(
        &self,
        tx: &mut Tx,
        recipient: &Recipient,
        id: &EmailId,
        content: &Content,
    ) -> Result<()> {
        let named = mailboxes::MailboxName::Id(recipient.mailbox.clone());
        let mailbox =
            mailboxes::find(tx, &named).await?.ok_or_else(|| Error::not_found("Mailbox not found"))?;
        let (arriving, hooks) = (self.arriving(recipient, &mailbox, content), self.app.hooks().arrival);
        // Before the event log is locked: the sending worker locks the message first, then the log.
        if let Some(report) = &self.prepared.report {
            for hook in hooks {
                hook.record_report(tx, self.app, &arriving, report).await?;
            }
        }
        // Before the content: only a transaction that has the next sequence may lock several contents.
        let sequence = events::next_sequence(tx).await?;
        contents::insert(tx, &content.record, self.now).await?;
        let mut mail = self.email(recipient, id, sequence, content);
        if self.prepared.is_spam(self.authentication) && mailbox.settings.spam.to_spam_folder {
            mail.record.folder_id = SystemFolder::Spam.into();
        }
        mail.labels = matching_labels(tx, &recipient.mailbox, &mail.record, self.prepared).await?;
        for hook in hooks {
            let until = hook.hold(tx, self.app, &arriving, &mail.record).await?;
            mail.record.held_until = mail.record.held_until.max(until);
        }
        emails::insert(tx, &recipient.mailbox, &mut mail).await?;
        if !self.imported {
            let counter = format!("received.{}", self.now.month());
            mailboxes::add_to_counter(tx, &recipient.mailbox, &counter, 1).await?;
            metering::add_usage(tx, self.now.day(), "mails_in", 1).await?;
        }
        let event = NewEvent {
            kind: EventType::MessageReceived,
            mailbox: Some(recipient.mailbox.clone()),
            data: received_data(&mail.record),
        };
        event.insert(tx, self.app, &content.key, sequence, self.now).await?;
        for hook in hooks {
            hook.after_arrival(tx, self.app, &arriving, &mail.record).await?;
        }
        Ok(())
    }

    /// The message as passed to the hooks.
    fn arriving<'b>(
        &'b self,
        recipient: &'b Recipient,
        mailbox: &'b mailboxes::MailboxRecord,
        content: &'b Content,
    ) -> Arriving<'b> {
        Arriving {
            message: &self.prepared.message,
            safe: self.prepared.safe(),
            has_link: self.prepared.has_link,
            verdict: self.prepared.verdict.0,
            authentication: self.authentication,
            sender: self.sender,
            recipient,
            mailbox,
            content_id: &content.record.id,
            key: &content.key,
            now: self.now,
        }
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
async fn matching_labels(
    tx: &mut Tx,
    mailbox: &MailboxId,
    record: &EmailRecord,
    prepared: &PreparedMessage,
) -> Result<Vec<LabelId>> {
    let labels = labels::list(tx, mailbox).await?;
    let subject = prepared.subject(record);
    Ok(labels
        .into_iter()
        .filter(|label| match filter::parse_rules(&label.rules) {
            Ok(Rules::Expression(filter)) => filter.matches(&subject),
            _ => false,
        })
        .map(|label| label.id)
        .collect())
}
