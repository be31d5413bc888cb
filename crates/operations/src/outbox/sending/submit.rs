//! Submission of a message: its email, its queue records, what plans count, and its delivery to mailboxes of this
//! server are one transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use mail::address::Mailbox;
use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    emails::{InboundProvider, ScanStatus, SenderAuthentication},
    events::EventType,
    folders::SystemFolder,
    outbound::{OutboundKind, ReportState},
    sending::{DeliveryStatus, RecipientState, SendStatus, SentMail},
};
use store::{
    SystemTx, Tx, contents, drafts as stored_drafts,
    emails::{self, NewEmail, SentEmail},
    mailboxes,
    outbound::{self, DeliveryRecord, OutboundRecord},
};

use super::{
    origin::Origin,
    outgoing_message::{OutgoingMessage, SizeLimit},
    quota,
    routing::{Addressee, Route, addressees, count_external},
    submission_log::SubmissionLog,
};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
    },
    inbox::{
        emails::{require_room, require_room_beside},
        inbound::{self, Content, Delivery, PreparedMessage, Recipient, Refusal},
    },
    outbox::drafts::loaded::LoadedDraft,
};

/// A message that is ready to be sent.
pub(crate) struct Submission {
    origin: Origin,
    outgoing: OutgoingMessage,
    id: EmailId,
    now: Timestamp,
    addressees: Vec<Addressee>,
    prepared: Arc<PreparedMessage>,
    contents: BTreeMap<WorkspaceId, Content>,
    /// Recipients outside the workspace.
    external: i64,
    /// The draft that is deleted with it.
    draft: Option<LoadedDraft>,
    /// The log line to write after the commit.
    pub(crate) log: SubmissionLog,
}

/// The outcome of a submission.
pub(crate) enum SubmitOutcome {
    /// It was sent or queued.
    Submitted(SentMail),
    /// A plan limit defers it.
    NotBefore(Timestamp),
}

impl Submission {
    /// Finds the routes of all recipients, composes the message, parses and seals it: everything that needs no
    /// transaction.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        outgoing: OutgoingMessage,
        draft: Option<LoadedDraft>,
        keeps_id: bool,
        now: Timestamp,
    ) -> Result<Self> {
        // A mailbox may only send from a verified domain.
        if !crate::mailbox::mailboxes::is_reachable(origin.mailbox.domain.as_ref()) {
            let fix = "The domain of this mailbox is not verified: publish its DNS records and verify it.";
            return Err(Error::new(ErrorKind::SenderNotAllowed).with_fix(fix));
        }
        quota::check_request(app, origin.plan, outgoing.recipient_count())?;
        let addressees = addressees(app, &origin, &outgoing).await?;
        let external = count_external(&origin.workspace, &addressees);
        let raw = outgoing.compose(SizeLimit::for_sending(app, &origin), now).await?;
        match origin.stored_bytes {
            Some(stored) => require_room_beside(app, origin.plan, stored, raw.len())?,
            None => require_room(app, &origin.workspace, origin.plan, raw.len()).await?,
        }
        let received = Arc::new(inbound::read(app, raw.clone()).await?);
        let mut contents = seal(app, &origin.workspace, &addressees, &received, &raw).await?;
        // The sender's copy shows the body as written, the recipients' as received.
        let mut prepared = Arc::unwrap_or_clone(received);
        let (body, format) = outgoing.body();
        prepared.show_as(body, format);
        let prepared = Arc::new(prepared);
        let own = Content::seal(app, &origin.workspace, &prepared, &raw).await?;
        contents.insert(origin.workspace.clone(), own);
        let id = match &draft {
            Some(loaded) if keeps_id => loaded.record.email_id.clone(),
            _ => app.new_id(),
        };
        let log = SubmissionLog::new();
        Ok(Self { origin, outgoing, id, now, addressees, prepared, contents, external, draft, log })
    }

    /// The email that it becomes, and its name in the queue.
    pub(crate) fn id(&self) -> &EmailId {
        &self.id
    }

    /// How many recipients it has.
    pub(crate) fn recipient_count(&self) -> usize {
        self.addressees.len()
    }

    /// The key under which messages of one mailbox share a commit. `None` for those that lock more than the workspace and
    /// the mailbox.
    pub(crate) fn commit_key(&self) -> Option<String> {
        let stays_here = |one: &Addressee| matches!(one.route, Route::Mailbox(_));
        let is_plain = self.draft.is_none() && !self.addressees.iter().any(stays_here);
        is_plain.then(|| format!("send {}", self.origin.mailbox.id))
    }

    /// Submits the message, or returns when it may be sent. The draft it came from must be unchanged.
    pub(crate) async fn commit(&self, tx: &mut SystemTx, app: &App) -> Result<SubmitOutcome> {
        let own = self.origin.workspace.clone();
        let counted = quota::count_send(
            tx.enter(&own),
            app,
            self.origin.plan,
            &self.origin.mailbox.id,
            self.external,
            self.now,
        );
        if let Some(earliest) = counted.await? {
            return Ok(SubmitOutcome::NotBefore(earliest));
        }
        let (addressees, arrival) = self.lock_mailboxes(tx).await?;
        self.delete_draft(tx.enter(&own)).await?;
        // In the order of workspaces, so that two submissions cannot deadlock on event logs.
        let workspaces: BTreeSet<WorkspaceId> = self.contents.keys().cloned().collect();
        let mut thread = None;
        for workspace in workspaces {
            if workspace == own {
                thread = Some(self.store_copy(tx.enter(&own), app, &addressees, arrival).await?);
            }
            self.deliver(tx.enter(&workspace), app, &addressees).await?;
        }
        let thread_id = thread.ok_or_else(|| Error::internal("a mail without a copy for its sender"))?;
        let is_accepted = |one: &Addressee| matches!(one.route, Route::Mailbox(_) | Route::Sandbox);
        let status = if addressees.iter().all(is_accepted) { SendStatus::Sent } else { SendStatus::Queued };
        let message_id = self.outgoing.message_id.clone();
        Ok(SubmitOutcome::Submitted(SentMail { id: self.id.clone(), status, thread_id, message_id }))
    }

    /// Locks all mailboxes in the order of every transaction. One that was deleted meanwhile refuses the message. Returns
    /// the routes as they are now, and the number of the workspace's last event: the sender's copy did not arrive, so
    /// there is no arrival event, and calls that wait for mail are not woken.
    async fn lock_mailboxes(&self, tx: &mut SystemTx) -> Result<(Vec<Addressee>, i64)> {
        let mut wanted: BTreeSet<(&WorkspaceId, &MailboxId)> = BTreeSet::new();
        let origin = (&self.origin.workspace, &self.origin.mailbox.id);
        wanted.insert(origin);
        for addressee in &self.addressees {
            if let Route::Mailbox(to) = &addressee.route {
                wanted.insert((&to.workspace, &to.mailbox));
            }
        }
        let mut present: BTreeMap<(&WorkspaceId, &MailboxId), i64> = BTreeMap::new();
        for (workspace, mailbox) in wanted {
            if let Some(last) = mailboxes::lock_present(tx.enter(workspace), mailbox).await? {
                present.insert((workspace, mailbox), last);
            }
        }
        let mut addressees = self.addressees.clone();
        for addressee in &mut addressees {
            if let Route::Mailbox(to) = &addressee.route
                && !present.contains_key(&(&to.workspace, &to.mailbox))
            {
                addressee.route = Route::Refused(Refusal::UNKNOWN.to_string());
            }
        }
        let arrival = present.get(&origin).copied().ok_or_else(|| Error::not_found("Mailbox not found"))?;
        Ok((addressees, arrival))
    }

    /// Deletes the draft that this message was.
    async fn delete_draft(&self, tx: &mut Tx) -> Result<()> {
        let Some(loaded) = &self.draft else { return Ok(()) };
        let mailbox = &self.origin.mailbox.id;
        let present = stored_drafts::find_for_change(tx, mailbox, &loaded.record.email_id).await?;
        let same = |present: &stored_drafts::DraftRecord| {
            (present.version, present.state) == (loaded.record.version, loaded.record.state)
        };
        if !present.is_some_and(|present| same(&present)) {
            return Err(Error::new(ErrorKind::DraftLocked));
        }
        let brief = emails::find_brief(tx, mailbox, &loaded.record.email_id).await?;
        emails::delete(tx, mailbox, brief.as_slice()).await?;
        Ok(())
    }

    /// Stores the sender's copy with its queue records and events, and returns its thread.
    async fn store_copy(
        &self,
        tx: &mut Tx,
        app: &App,
        addressees: &[Addressee],
        arrival: i64,
    ) -> Result<model::ThreadId> {
        let mailbox = &self.origin.mailbox.id;
        let content = self.content(&self.origin.workspace)?;
        contents::insert(tx, &content.record, self.now).await?;
        let records: Vec<DeliveryRecord> =
            (0..).zip(addressees).map(|(position, addressee)| addressee.record(position, self.now)).collect();
        let states: Vec<RecipientState> = records.iter().map(|record| record.state).collect();
        let status = DeliveryStatus::of(&states);
        let mut mail = self.own_email(app, content, arrival);
        mail.record.delivery_status = Some(status);
        emails::insert(tx, mailbox, &mut mail).await?;
        let outbound = self.outbound(app, status, &states);
        outbound::insert(tx, &outbound, &records).await?;
        self.store_schedule(tx).await?;
        for hook in app.hooks().send {
            hook.after_send(tx, app, &self.origin.mailbox, &self.id, self.now).await?;
        }
        for kind in self.event_types(status, &states) {
            let data = sent_data(&SentEmail::from(&mail.record), &records);
            let event = NewEvent { kind, mailbox: Some(mailbox.clone()), data };
            event.append(tx, app, &content.key, self.now).await?;
        }
        self.log.record(outbound, records, content.record.size);
        Ok(mail.record.thread_id)
    }

    /// The events of the submission. Queued deliveries get theirs later.
    fn event_types(&self, status: DeliveryStatus, states: &[RecipientState]) -> Vec<EventType> {
        let scheduled = self.draft.as_ref().is_some_and(|loaded| loaded.record.scheduled_at.is_some());
        let known = status != DeliveryStatus::Queued;
        let bounced = |state: &RecipientState| *state == RecipientState::Bounced;
        let kinds = [
            (known && !states.iter().all(bounced), EventType::MessageSent),
            (states.iter().any(bounced), EventType::MessageBounced),
            (scheduled, EventType::ScheduleSent),
        ];
        kinds.into_iter().filter(|(is_due, _)| *is_due).map(|(_, kind)| kind).collect()
    }

    /// A scheduled send can still be read after it was sent.
    async fn store_schedule(&self, tx: &mut Tx) -> Result<()> {
        let Some(loaded) = self.draft.as_ref().filter(|loaded| loaded.record.scheduled_at.is_some()) else {
            return Ok(());
        };
        if loaded.record.email_id != self.id {
            return Ok(());
        }
        let record = stored_drafts::DraftRecord {
            state: model::drafts::DraftState::Sent,
            version: loaded.record.version + 1,
            claimed_until: None,
            last_error: None,
            ..loaded.record.clone()
        };
        Ok(stored_drafts::insert(tx, &self.origin.mailbox.id, &record).await?)
    }

    fn own_email(&self, app: &App, content: &Content, sequence: i64) -> NewEmail {
        let own = Delivery::own(app, &self.prepared, self.now);
        let mut mail = sender_copy(&own, &self.origin, &self.outgoing, &self.id, content, sequence);
        mail.record.folder_id = SystemFolder::Sent.into();
        mail
    }

    fn outbound(&self, app: &App, status: DeliveryStatus, states: &[RecipientState]) -> OutboundRecord {
        let failed = status != DeliveryStatus::Queued && states.contains(&RecipientState::Bounced);
        OutboundRecord {
            id: self.id.as_str().to_owned(),
            mailbox_id: Some(self.origin.mailbox.id.clone()),
            email_id: Some(self.id.clone()),
            kind: OutboundKind::Email,
            content_id: self.prepared.hash.clone(),
            prefix: String::new(),
            sender: Some(self.origin.mailbox.email.clone()),
            message_id: Some(self.outgoing.message_id.clone()),
            created_at: self.now,
            expires_at: self.now.plus_seconds(app.settings().outbound.retry_seconds),
            report: if failed { ReportState::Due } else { ReportState::None },
        }
    }

    /// Delivers to the mailboxes of one workspace.
    async fn deliver(&self, tx: &mut Tx, app: &App, addressees: &[Addressee]) -> Result<()> {
        let authentication = SenderAuthentication::unknown(Some(InboundProvider::MailApi));
        let sender = Some(self.origin.mailbox.email.as_str());
        let delivery = Delivery {
            app,
            prepared: &self.prepared,
            authentication: &authentication,
            sender,
            now: self.now,
            imported: false,
        };
        let workspace = tx.workspace().clone();
        let mut here: Vec<&Recipient> = Vec::new();
        for addressee in addressees {
            if let Route::Mailbox(to) = &addressee.route
                && to.workspace == workspace
            {
                here.push(to);
            }
        }
        here.sort_by(|one, other| (&one.mailbox, &one.address).cmp(&(&other.mailbox, &other.address)));
        let content = self.content(&workspace)?;
        for recipient in here {
            delivery.to_mailbox(tx, recipient, &app.new_id(), content).await?;
        }
        Ok(())
    }

    fn content(&self, workspace: &WorkspaceId) -> Result<&Content> {
        let found = self.contents.get(workspace);
        found.ok_or_else(|| Error::internal("a recipient's workspace was not prepared"))
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
            "recipient": one.recipient, "state": one.state, "last_reply": one.reply,
        })).collect::<Vec<_>>(),
    })
}

/// Seals the message for every receiving workspace but the sender's own.
async fn seal(
    app: &App,
    own: &WorkspaceId,
    addressees: &[Addressee],
    received: &Arc<PreparedMessage>,
    raw: &Bytes,
) -> Result<BTreeMap<WorkspaceId, Content>> {
    let mut sealed = BTreeMap::new();
    for addressee in addressees {
        if let Route::Mailbox(to) = &addressee.route
            && to.workspace != *own
            && !sealed.contains_key(&to.workspace)
        {
            let content = Content::seal(app, &to.workspace, received, raw).await?;
            sealed.insert(to.workspace.clone(), content);
        }
    }
    Ok(sealed)
}
