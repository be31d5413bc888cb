//! What became of a message, from the store: where it arrived, and how far it has come on its way out. For operators, who
//! have a Message-ID, the id of an email or one of the queue, and do not know whose it is.

use model::{
    EmailId, FolderId, MailboxId, ThreadId, Timestamp, WorkspaceId,
    emails::{ScanStatus, SenderAuthentication},
    sending::RecipientState,
};
use serde::Serialize;
use store::{
    SystemTx,
    emails::{self, EmailRecord},
    outbound::{self, DeliveryRecord, OutboundRecord},
    trace::{self, MailboxMatch},
};

use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    inbox::inbound,
};

/// Mailboxes, emails and sends that are looked at for one message.
const MAX_FOUND: i64 = 100;

/// What became of a message.
#[derive(Debug, Default, Serialize)]
pub struct Trace {
    /// Its Message-IDs, without angle brackets; usually one.
    pub message_ids: Vec<String>,
    /// What it is in mailboxes of this server.
    pub emails: Vec<TracedEmail>,
    /// Its ways out. Copies for other addresses and automatic answers are there only until they have left.
    pub sends: Vec<TracedSend>,
}

/// A message in a mailbox.
#[derive(Debug, Serialize)]
pub struct TracedEmail {
    /// Its id.
    pub id: EmailId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The mailbox.
    pub mailbox_id: MailboxId,
    /// The mailbox's address.
    pub mailbox: String,
    /// Whether the mailbox wrote it.
    pub outgoing: bool,
    /// When it arrived, or was written.
    pub arrived_at: Timestamp,
    /// Where it lies.
    pub folder: FolderId,
    /// The address in its From line.
    pub from: String,
    /// The address that it was sent to.
    pub recipient: String,
    /// Its size in bytes.
    pub size: i64,
    /// What the scan says.
    pub scan_status: Option<ScanStatus>,
    /// What is known about its sender.
    pub sender_authentication: SenderAuthentication,
}

/// A message on its way out, or one that has left.
#[derive(Debug, Serialize)]
pub struct TracedSend {
    /// Its id in the queue.
    pub queue_id: String,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The email; nothing for automatic mail.
    pub email_id: Option<EmailId>,
    /// What it is: `mail`, `forward`, `auto_reply`, `system`.
    pub kind: String,
    /// The envelope's sender; nothing for a null sender.
    pub from: Option<String>,
    /// When it came into the queue.
    pub queued_at: Timestamp,
    /// Until when it is tried.
    pub expires_at: Timestamp,
    /// What became of it for each recipient.
    pub recipients: Vec<TracedRecipient>,
}

/// What became of a message for one recipient.
#[derive(Debug, Serialize)]
pub struct TracedRecipient {
    /// The address.
    pub recipient: String,
    /// The domain, the relay, or `local` for a mailbox of this server.
    pub destination: String,
    /// What became of it.
    pub state: RecipientState,
    /// How often it was tried.
    pub attempts: i64,
    /// When it was tried last.
    pub last_attempt_at: Option<Timestamp>,
    /// When it will be tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// What the other server said last.
    pub last_reply: Option<String>,
}

/// Finds what became of a message: by its Message-ID, with or without angle brackets, by the id of one of its emails, or
/// by its id in the queue. An id leads to everything that has the same Message-ID.
#[crate::boxed]
pub async fn find(app: &App, named: &str) -> Result<Trace> {
    let named = named.trim();
    let named = named.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(named).to_owned();
    let found = app.db().system_read(async move |tx| Search::default().run(tx, &named).await).await?;
    if found.emails.is_empty() && found.sends.is_empty() {
        return Err(Error::not_found("Message not found")
            .with_fix("Give a Message-ID, the id of an email, or the id of a mail in the queue."));
    }
    Ok(found)
}

/// What was found so far.
#[derive(Default)]
struct Search {
    trace: Trace,
}

impl Search {
    async fn run(mut self, tx: &mut SystemTx, named: &str) -> Result<Trace, store::Error> {
        self.by_id(tx, named).await?;
        if self.trace.emails.is_empty() && self.trace.sends.is_empty() {
            self.trace.message_ids.push(named.to_owned());
        }
        for message_id in self.trace.message_ids.clone() {
            self.by_message_id(tx, &message_id).await?;
        }
        // The sender's own first, where all came at once.
        let when = |email: &TracedEmail| (email.arrived_at, !email.outgoing, email.id.clone());
        self.trace.emails.sort_by_key(when);
        self.trace.sends.sort_by_key(|send| (send.queued_at, send.queue_id.clone()));
        Ok(self.trace)
    }

    /// The email and the mail in the queue with an id.
    async fn by_id(&mut self, tx: &mut SystemTx, named: &str) -> Result<(), store::Error> {
        let id = EmailId::from(named);
        for place in trace::holding(tx, &id, MAX_FOUND).await? {
            let found = emails::find(tx.enter(&place.workspace), &place.mailbox, &id).await?;
            self.add_emails(&place, found);
        }
        self.queued(tx, named).await
    }

    /// Mail with an id of the queue, and mail of the service itself with a Message-ID.
    async fn queued(&mut self, tx: &mut SystemTx, named: &str) -> Result<(), store::Error> {
        for (workspace, id) in trace::queued(tx, named, MAX_FOUND).await? {
            let found = outbound::find(tx.enter(&workspace), &id).await?;
            self.add_sends(tx, &workspace, found).await?;
        }
        Ok(())
    }

    /// Everything with a Message-ID.
    async fn by_message_id(&mut self, tx: &mut SystemTx, message_id: &str) -> Result<(), store::Error> {
        let hash = inbound::message_id_hash(message_id);
        for place in trace::knowing(tx, &hash, MAX_FOUND).await? {
            let (inside, thread) = (tx.enter(&place.workspace), ThreadId::from(place.found.as_str()));
            let mut found = trace::in_thread(inside, &place.mailbox, &thread, message_id, MAX_FOUND).await?;
            if found.is_empty() {
                found = trace::in_mailbox(inside, &place.mailbox, message_id, MAX_FOUND).await?;
            }
            self.add_emails(&place, found);
        }
        for place in trace::sending(tx, message_id, MAX_FOUND).await? {
            let inside = tx.enter(&place.workspace);
            let found = trace::sent_from(inside, &place.mailbox, message_id, MAX_FOUND).await?;
            self.add_sends(tx, &place.workspace, found).await?;
        }
        self.queued(tx, message_id).await
    }

    fn add_emails(&mut self, place: &MailboxMatch, found: impl IntoIterator<Item = EmailRecord>) {
        for record in found {
            self.note(record.message_id.as_ref());
            let known = |email: &TracedEmail| email.id == record.id && email.mailbox_id == place.mailbox;
            if !self.trace.emails.iter().any(known) {
                self.trace.emails.push(TracedEmail {
                    id: record.id,
                    workspace_id: place.workspace.clone(),
                    mailbox_id: place.mailbox.clone(),
                    mailbox: place.address.clone(),
                    outgoing: record.outgoing,
                    arrived_at: record.arrived_at,
                    folder: record.folder_id,
                    from: record.sender_address,
                    recipient: record.recipient,
                    size: record.size,
                    scan_status: record.scan_status,
                    sender_authentication: record.sender_authentication,
                });
            }
        }
    }

    async fn add_sends(
        &mut self,
        tx: &mut SystemTx,
        workspace: &WorkspaceId,
        found: impl IntoIterator<Item = OutboundRecord>,
    ) -> Result<(), store::Error> {
        for record in found {
            self.note(record.message_id.as_ref());
            let known = |send: &TracedSend| send.queue_id == record.id && send.workspace_id == *workspace;
            if self.trace.sends.iter().any(known) {
                continue;
            }
            let recipients = outbound::recipients(tx.enter(workspace), &record.id).await?;
            self.trace.sends.push(TracedSend {
                queue_id: record.id,
                workspace_id: workspace.clone(),
                email_id: record.email_id,
                kind: record.kind.as_str().to_owned(),
                from: record.sender,
                queued_at: record.created_at,
                expires_at: record.expires_at,
                recipients: recipients.into_iter().map(TracedRecipient::from).collect(),
            });
        }
        Ok(())
    }

    /// Remembers a Message-ID that leads on.
    fn note(&mut self, message_id: Option<&String>) {
        if let Some(id) = message_id
            && !self.trace.message_ids.contains(id)
        {
            self.trace.message_ids.push(id.clone());
        }
    }
}

impl From<DeliveryRecord> for TracedRecipient {
    fn from(record: DeliveryRecord) -> Self {
        let local = record.destination.is_empty();
        Self {
            recipient: record.recipient,
            destination: if local { "local".to_owned() } else { record.destination },
            state: record.state,
            attempts: record.attempts,
            last_attempt_at: record.last_attempt_at,
            next_attempt_at: record.next_attempt_at,
            last_reply: record.reply,
        }
    }
}
