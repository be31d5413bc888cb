//! The one way out for every mail that somebody sends: its email, its records in the queue, what plans count, and its
//! delivery to mailboxes of this server are one transaction.

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
    sending::{DeliveryStatus, OutboundMode, RecipientLine, RecipientState, SendStatus, SentMail},
};
use store::{
    SystemTx, Tx, contents, drafts as stored_drafts,
    emails::{self, EmailRecord, NewEmail},
    events, mailboxes,
    mailboxes::MailboxName,
    outbound::{self, DeliveryRecord, OutboundRecord},
};

use super::{
    departure::Departure,
    origin::Origin,
    outgoing_message::{Bound, OutgoingMessage},
    quota,
};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
        state::outbox::RELAY,
    },
    inbox::inbound::{self, Content, Delivery, PreparedMessage, Recipient, Refusal},
    outbox::drafts::loaded::LoadedDraft,
};

/// Mailboxes of this server that one transaction delivers to; further ones get the mail from the queue.
const MAX_LOCAL_MAILBOXES: usize = 50;

/// Where the mail goes for one recipient.
enum Route {
    /// Into a mailbox of this server.
    Mailbox(Box<Recipient>),
    /// To this server, but not now.
    Later(String),
    /// Nowhere.
    Refused(String),
    /// To another server.
    Out(String),
    /// Into the sandbox.
    Sandbox,
}

/// A recipient of a mail.
struct Addressee {
    address: String,
    line: RecipientLine,
    way: Route,
}

/// A mail that is ready to leave.
pub(crate) struct Submission {
    origin: Origin,
    letter: OutgoingMessage,
    id: EmailId,
    now: Timestamp,
    addressees: Vec<Addressee>,
    prepared: Arc<PreparedMessage>,
    contents: BTreeMap<WorkspaceId, Content>,
    /// Recipients outside the workspace.
    external: i64,
    /// The draft that goes with it.
    draft: Option<LoadedDraft>,
    /// What is told of it once it has left.
    pub(crate) departure: Departure,
}

/// What came of an attempt to let a mail leave.
pub(crate) enum SubmitOutcome {
    /// It has left.
    Now(SentMail),
    /// A limit of the plan keeps it back.
    NotBefore(Timestamp),
}

impl Submission {
    /// Finds the ways of all recipients, writes the message, reads and seals it: everything that needs no transaction.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        letter: OutgoingMessage,
        draft: Option<LoadedDraft>,
        keeps_id: bool,
        now: Timestamp,
    ) -> Result<Self> {
        // Whoever has not proven that a domain is theirs does not write in its name.
        if !crate::mailbox::mailboxes::is_reachable(origin.mailbox.domain.as_ref()) {
            let fix = "The domain of this mailbox is not verified: publish its DNS records and verify it.";
            return Err(Error::new(ErrorKind::SenderNotAllowed).with_fix(fix));
        }
        quota::check_request(app, origin.plan, letter.recipient_count())?;
        let addressees = addressees(app, &origin, &letter).await?;
        let external = count_external(&origin.workspace, &addressees);
        let raw = letter.compose(Bound::to_send(app, &origin), now).await?;
        crate::inbox::emails::require_room(app, &origin.workspace, origin.plan, raw.len()).await?;
        let received = Arc::new(inbound::read(app, raw.clone()).await?);
        let mut contents = seal(app, &origin.workspace, &addressees, &received, &raw).await?;
        // The sender reads the body as it was written, others as it came.
        let mut prepared = Arc::unwrap_or_clone(received);
        let (body, format) = letter.body();
        prepared.show_as(body, format);
        let prepared = Arc::new(prepared);
        let own = Content::seal(app, &origin.workspace, &prepared, &raw).await?;
        contents.insert(origin.workspace.clone(), own);
        let id = match &draft {
            Some(held) if keeps_id => held.record.email_id.clone(),
            _ => app.new_id(),
        };
        let departure = Departure::new();
        Ok(Self { origin, letter, id, now, addressees, prepared, contents, external, draft, departure })
    }

    /// Lets the mail leave, or tells when it may. A draft that goes with it must still be the one that was read.
    pub(crate) async fn commit(mut self, tx: &mut SystemTx, app: &App) -> Result<SubmitOutcome> {
        let own = self.origin.workspace.clone();
        let counted = quota::take(
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
        self.hold_mailboxes(tx).await?;
        self.release_draft(tx.enter(&own)).await?;
        // By workspace, so that two mails cannot wait for each other's event logs.
        let workspaces: BTreeSet<WorkspaceId> = self.contents.keys().cloned().collect();
        let mut thread = None;
        for workspace in workspaces {
            if workspace == own {
                thread = Some(self.keep_own(tx.enter(&own), app).await?);
            }
            self.deliver(tx.enter(&workspace), app).await?;
        }
        let thread_id = thread.ok_or_else(|| Error::internal("a mail without a copy for its sender"))?;
        let status = if self.all_taken() { SendStatus::Sent } else { SendStatus::Queued };
        let message_id = self.letter.message_id.clone();
        Ok(SubmitOutcome::Now(SentMail { id: self.id, status, thread_id, message_id }))
    }

    /// Holds all mailboxes in the order that every transaction keeps. One that is gone meanwhile refuses the mail.
    async fn hold_mailboxes(&mut self, tx: &mut SystemTx) -> Result<()> {
        let mut wanted: BTreeSet<(WorkspaceId, MailboxId)> = BTreeSet::new();
        wanted.insert((self.origin.workspace.clone(), self.origin.mailbox.id.clone()));
        for addressee in &self.addressees {
            if let Route::Mailbox(to) = &addressee.way {
                wanted.insert((to.workspace.clone(), to.mailbox.clone()));
            }
        }
        for (workspace, mailbox) in &wanted {
            mailboxes::lock(tx.enter(workspace), mailbox).await?;
        }
        for addressee in &mut self.addressees {
            let Route::Mailbox(to) = &addressee.way else { continue };
            let named = MailboxName::Id(to.mailbox.clone());
            if mailboxes::find_id(tx.enter(&to.workspace), &named).await?.is_none() {
                addressee.way = Route::Refused(Refusal::UNKNOWN.to_string());
            }
        }
        let named = MailboxName::Id(self.origin.mailbox.id.clone());
        let own = mailboxes::find_id(tx.enter(&self.origin.workspace), &named).await?;
        own.map(|_| ()).ok_or_else(|| Error::not_found("Mailbox not found"))
    }

    /// Takes the draft away that becomes this mail.
    async fn release_draft(&self, tx: &mut Tx) -> Result<()> {
        let Some(held) = &self.draft else { return Ok(()) };
        let mailbox = &self.origin.mailbox.id;
        let present = stored_drafts::find_for_change(tx, mailbox, &held.record.email_id).await?;
        let same = |present: &stored_drafts::DraftRecord| {
            (present.version, present.state) == (held.record.version, held.record.state)
        };
        if !present.is_some_and(|present| same(&present)) {
            return Err(Error::new(ErrorKind::DraftLocked));
        }
        let brief = emails::find_brief(tx, mailbox, &held.record.email_id).await?;
        emails::delete(tx, mailbox, brief.as_slice()).await?;
        Ok(())
    }

    /// Stores the sender's copy with everything that belongs to it, and gives its thread.
    async fn keep_own(&self, tx: &mut Tx, app: &App) -> Result<model::ThreadId> {
        let mailbox = &self.origin.mailbox.id;
        let content = self.content(&self.origin.workspace)?;
        contents::insert(tx, &content.record, self.now).await?;
        let records = self.delivery_records();
        let states: Vec<RecipientState> = records.iter().map(|record| record.state).collect();
        let status = DeliveryStatus::of(&states);
        // It did not arrive, so no event tells of it; whoever waits for mail is not interested in it.
        let arrival = events::last_sequence(tx).await?;
        let mut mail = self.own_email(app, content, arrival);
        mail.record.delivery_status = Some(status);
        emails::insert(tx, mailbox, &mut mail).await?;
        let outbound = self.outbound(app, status, &states);
        outbound::insert(tx, &outbound, &records).await?;
        self.keep_schedule(tx).await?;
        for hook in app.hooks().send {
            hook.after_send(tx, app, &self.origin.mailbox, &self.id, self.now).await?;
        }
        for kind in self.told(status, &states) {
            let data = sent_data(&mail.record, &records);
            let event = NewEvent { kind, mailbox: Some(mailbox.clone()), data };
            event.append(tx, app, &content.key, self.now).await?;
        }
        self.departure.note(outbound, records, content.record.size);
        Ok(mail.record.thread_id)
    }

    /// What the event log tells at once. What waits is told when it is known.
    fn told(&self, status: DeliveryStatus, states: &[RecipientState]) -> Vec<EventType> {
        let scheduled = self.draft.as_ref().is_some_and(|held| held.record.scheduled_at.is_some());
        let known = status != DeliveryStatus::Queued;
        let bounced = |state: &RecipientState| *state == RecipientState::Bounced;
        let kinds = [
            (known && !states.iter().all(bounced), EventType::MessageSent),
            (states.iter().any(bounced), EventType::MessageBounced),
            (scheduled, EventType::ScheduleSent),
        ];
        kinds.into_iter().filter(|(told, _)| *told).map(|(_, kind)| kind).collect()
    }

    /// A scheduled send can still be looked at once it has left.
    async fn keep_schedule(&self, tx: &mut Tx) -> Result<()> {
        let Some(held) = self.draft.as_ref().filter(|held| held.record.scheduled_at.is_some()) else {
            return Ok(());
        };
        if held.record.email_id != self.id {
            return Ok(());
        }
        let record = stored_drafts::DraftRecord {
            state: model::drafts::DraftState::Sent,
            version: held.record.version + 1,
            claimed_until: None,
            last_error: None,
            ..held.record.clone()
        };
        Ok(stored_drafts::insert(tx, &self.origin.mailbox.id, &record).await?)
    }

    fn own_email(&self, app: &App, content: &Content, sequence: i64) -> NewEmail {
        let authentication = SenderAuthentication::unknown(None);
        let delivery = Delivery {
            app,
            prepared: &self.prepared,
            authentication: &authentication,
            sender: None,
            now: self.now,
        };
        let mut mail = outgoing(&delivery, &self.origin, &self.letter, &self.id, content, sequence);
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
            message_id: Some(self.letter.message_id.clone()),
            created_at: self.now,
            expires_at: self.now.plus_seconds(app.settings().outbound.retry_seconds),
            report: if failed { ReportState::Due } else { ReportState::None },
        }
    }

    fn delivery_records(&self) -> Vec<DeliveryRecord> {
        (0..)
            .zip(&self.addressees)
            .map(|(position, addressee)| addressee.record(position, self.now))
            .collect()
    }

    /// Delivers to the mailboxes of one workspace.
    async fn deliver(&self, tx: &mut Tx, app: &App) -> Result<()> {
        let authentication = SenderAuthentication::unknown(Some(InboundProvider::MailApi));
        let sender = Some(self.origin.mailbox.email.as_str());
        let delivery = Delivery {
            app,
            prepared: &self.prepared,
            authentication: &authentication,
            sender,
            now: self.now,
        };
        let workspace = tx.workspace().clone();
        let mut here: Vec<&Recipient> = Vec::new();
        for addressee in &self.addressees {
            if let Route::Mailbox(to) = &addressee.way
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

    fn all_taken(&self) -> bool {
        self.addressees.iter().all(|one| matches!(one.way, Route::Mailbox(_) | Route::Sandbox))
    }
}

impl Addressee {
    fn record(&self, position: i64, now: Timestamp) -> DeliveryRecord {
        use RecipientState as State;
        let (state, reply, destination) = match &self.way {
            Route::Mailbox(_) => (State::Sent, Some("250 2.1.5 Delivered to a mailbox of this server"), ""),
            Route::Refused(reply) => (State::Bounced, Some(reply.as_str()), ""),
            Route::Later(reply) => (State::Queued, Some(reply.as_str()), ""),
            Route::Out(destination) => (State::Queued, None, destination.as_str()),
            Route::Sandbox => (State::Sandboxed, Some("250 2.1.5 Kept in the sandbox"), ""),
        };
        let tried = state != State::Queued;
        DeliveryRecord {
            position,
            recipient: self.address.clone(),
            line: self.line,
            destination: destination.to_owned(),
            state,
            attempts: i64::from(tried),
            next_attempt_at: (!tried).then_some(now),
            last_attempt_at: tried.then_some(now),
            finished_at: tried.then_some(now),
            reply: reply.map(ToOwned::to_owned),
        }
    }
}

/// The email that a mail of a mailbox's own becomes in it, before it is known where it lies.
pub(crate) fn outgoing(
    delivery: &Delivery<'_>,
    origin: &Origin,
    letter: &OutgoingMessage,
    id: &EmailId,
    content: &Content,
    sequence: i64,
) -> NewEmail {
    let own = Recipient {
        workspace: origin.workspace.clone(),
        plan: origin.plan,
        mailbox: origin.mailbox.id.clone(),
        address: line(&letter.to),
        policy: None,
    };
    let mut mail = delivery.email(&own, id, sequence, content);
    mail.thread.clone_from(&letter.thread);
    let record = &mut mail.record;
    record.outgoing = true;
    record.read = true;
    record.is_urgent = false;
    record.date = delivery.now;
    record.to_line = line(&letter.to);
    record.cc = Some(line(&letter.cc)).filter(|text| !text.is_empty());
    record.bcc = Some(line(&letter.bcc)).filter(|text| !text.is_empty());
    // What was written here is nobody's trap; it is only called clean where that is sure.
    record.scan_status = Some(delivery.prepared.verdict.0).filter(|status| *status == ScanStatus::Clean);
    record.scan_threats = Vec::new();
    keep_file_ids(&mut mail, letter);
    mail
}

/// Files that were in the mailbox before keep their ids.
fn keep_file_ids(mail: &mut NewEmail, letter: &OutgoingMessage) {
    let mut known: Vec<_> = letter.files.iter().filter(|source| source.keeps_id).collect();
    for attachment in &mut mail.attachments {
        let same = known.iter().position(|source| {
            source.file.filename == attachment.shown.filename
                && i64::try_from(source.file.bytes.len()).ok() == Some(attachment.shown.size)
        });
        if let Some(id) = same.and_then(|index| known.remove(index).id.clone()) {
            attachment.shown.id = id;
        }
    }
    mail.record.attachments = mail.attachments.iter().map(|attachment| attachment.shown.clone()).collect();
}

/// Recipients as they are shown.
pub(crate) fn line(people: &[Mailbox]) -> String {
    people.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What an event tells about a mail that left, or is about to.
pub(crate) fn sent_data(mail: &EmailRecord, recipients: &[DeliveryRecord]) -> serde_json::Value {
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

/// Every recipient once, with its way.
async fn addressees(app: &App, origin: &Origin, letter: &OutgoingMessage) -> Result<Vec<Addressee>> {
    let lines =
        [(&letter.to, RecipientLine::To), (&letter.cc, RecipientLine::Cc), (&letter.bcc, RecipientLine::Bcc)];
    let mut seen = BTreeSet::new();
    let (mut all, mut here) = (Vec::new(), 0);
    for (people, line) in lines {
        for person in people {
            let address = person.address();
            if !seen.insert(address.as_str().to_owned()) {
                continue;
            }
            let mut way = way(app, &origin.mailbox.email, address).await?;
            here += usize::from(matches!(way, Route::Mailbox(_)));
            if here > MAX_LOCAL_MAILBOXES && matches!(way, Route::Mailbox(_)) {
                way = Route::Later("The mail waits for its turn".to_owned());
            }
            all.push(Addressee { address: address.to_string(), line, way });
        }
    }
    Ok(all)
}

async fn way(app: &App, sender: &str, address: &mail::address::Address) -> Result<Route> {
    Ok(match inbound::route(app, Some(sender), &address.to_string()).await {
        Ok(recipient) => Route::Mailbox(Box::new(recipient)),
        Err(refusal) if refusal == Refusal::RELAY => match app.settings().outbound.mode {
            OutboundMode::Local => {
                let fix = format!(
                    "{address} is no mailbox of this server; set outbound.mode to relay, direct or sandbox."
                );
                return Err(Error::new(ErrorKind::OutboundNotConfigured).with_fix(fix));
            }
            OutboundMode::Relay => Route::Out(RELAY.to_owned()),
            OutboundMode::Direct => Route::Out(address.domain().to_owned()),
            OutboundMode::Sandbox => Route::Sandbox,
        },
        // What the store cannot tell now, it cannot tell the queue either.
        Err(refusal) if refusal == Refusal::TRY_LATER => {
            return Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(2));
        }
        Err(refusal) if refusal.code < 500 => Route::Later(refusal.to_string()),
        Err(refusal) => Route::Refused(refusal.to_string()),
    })
}

/// Refuses recipients that this server has no way to.
pub(crate) async fn check_ways(app: &App, origin: &Origin, letter: &OutgoingMessage) -> Result<()> {
    addressees(app, origin, letter).await.map(|_| ())
}

fn count_external(workspace: &WorkspaceId, addressees: &[Addressee]) -> i64 {
    let inside = |one: &&Addressee| matches!(&one.way, Route::Mailbox(to) if to.workspace == *workspace);
    i64::try_from(addressees.len() - addressees.iter().filter(inside).count()).unwrap_or(i64::MAX)
}

/// Seals the message for every workspace that gets it but the sender's own.
async fn seal(
    app: &App,
    own: &WorkspaceId,
    addressees: &[Addressee],
    received: &Arc<PreparedMessage>,
    raw: &Bytes,
) -> Result<BTreeMap<WorkspaceId, Content>> {
    let mut sealed = BTreeMap::new();
    for addressee in addressees {
        if let Route::Mailbox(to) = &addressee.way
            && to.workspace != *own
            && !sealed.contains_key(&to.workspace)
        {
            let content = Content::seal(app, &to.workspace, received, raw).await?;
            sealed.insert(to.workspace.clone(), content);
        }
    }
    Ok(sealed)
}
