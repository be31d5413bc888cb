//! Traces a message in the store: where it arrived, and its delivery status. For operators, who have a Message-ID, an
//! email id or a queue id, and do not know whose it is.

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

/// Mailboxes, emails and sends that are read for one message.
const MAX_MATCHES: i64 = 100;

/// The trace of a message.
#[derive(Debug, Default, Serialize)]
pub struct Trace {
    /// Its Message-IDs, without angle brackets; usually one.
    pub message_ids: Vec<String>,
    /// Its copies in mailboxes of this server.
    pub emails: Vec<TracedEmail>,
    /// Its deliveries. Forwarded copies and auto-replies are listed only until they have been delivered.
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
    /// Its folder.
    pub folder: FolderId,
    /// The address in its From line.
    pub from: String,
    /// The address that it was sent to.
    pub recipient: String,
    /// Its size in bytes.
    pub size: i64,
    /// The scan's verdict.
    pub scan_status: Option<ScanStatus>,
    /// The authentication of its sender.
    pub sender_authentication: SenderAuthentication,
}

/// A message that is queued, or was sent.
#[derive(Debug, Serialize)]
pub struct TracedSend {
    /// Its id in the queue.
    pub queue_id: String,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The email; `None` for automatic messages.
    pub email_id: Option<EmailId>,
    /// Its kind: `mail`, `forward`, `auto_reply`, `system`.
    pub kind: String,
    /// The envelope sender; `None` for the null sender.
    pub from: Option<String>,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// Until when delivery is retried.
    pub expires_at: Timestamp,
    /// The status for each recipient.
    pub recipients: Vec<TracedRecipient>,
}

/// The delivery status for one recipient.
#[derive(Debug, Serialize)]
pub struct TracedRecipient {
    /// The address.
    pub recipient: String,
    /// The domain, the relay, or `local` for a mailbox of this server.
    pub destination: String,
    /// The state.
    pub state: RecipientState,
    /// The number of attempts.
    pub attempts: i64,
    /// The last attempt.
    pub last_attempt_at: Option<Timestamp>,
    /// The next attempt.
    pub next_attempt_at: Option<Timestamp>,
    /// The last reply of the other server.
    pub last_reply: Option<String>,
}

/// Traces a message: by its Message-ID, with or without angle brackets, by the id of one of its emails, or by its
/// queue id. An id leads to everything with the same Message-ID.
#[crate::boxed]
pub async fn find(app: &App, named: &str) -> Result<Trace> {
    let named = named.trim();
    let named = named.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(named).to_owned();
    let found = app.db().system_read(async move |tx| Search::default().run(tx, &named).await).await?;
    if found.emails.is_empty() && found.sends.is_empty() {
        return Err(Error::not_found("Message not found")
            .with_fix("Give a Message-ID, the id of an email, or a queue id."));
    }
    Ok(found)
}

/// The result so far.
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
        // The sender's copy first, where all arrived at once.
        let when = |email: &TracedEmail| (email.arrived_at, !email.outgoing, email.id.clone());
        self.trace.emails.sort_by_key(when);
        self.trace.sends.sort_by_key(|send| (send.queued_at, send.queue_id.clone()));
        Ok(self.trace)
    }

    /// The email and the queued message with an id.
    async fn by_id(&mut self, tx: &mut SystemTx, named: &str) -> Result<(), store::Error> {
        let id = EmailId::from(named);
        for found_in in trace::find_by_email(tx, &id, MAX_MATCHES).await? {
            let found = emails::find(tx.enter(&found_in.workspace), &found_in.mailbox, &id).await?;
            self.add_emails(&found_in, found);
        }
        self.queued(tx, named).await
    }

    /// Messages with a queue id, and messages of the service itself with a Message-ID.
    async fn queued(&mut self, tx: &mut SystemTx, named: &str) -> Result<(), store::Error> {
        for (workspace, id) in trace::find_queued(tx, named, MAX_MATCHES).await? {
            let found = outbound::find(tx.enter(&workspace), &id).await?;
            self.add_sends(tx, &workspace, found).await?;
        }
        Ok(())
    }

    /// Everything with a Message-ID.
    async fn by_message_id(&mut self, tx: &mut SystemTx, message_id: &str) -> Result<(), store::Error> {
        let hash = inbound::message_id_hash(message_id);
        for found_in in trace::find_by_message_id(tx, &hash, MAX_MATCHES).await? {
            let (inside, thread) = (tx.enter(&found_in.workspace), ThreadId::from(found_in.found.as_str()));
            let mut found =
                trace::list_in_thread(inside, &found_in.mailbox, &thread, message_id, MAX_MATCHES).await?;
            if found.is_empty() {
                found = trace::list_in_mailbox(inside, &found_in.mailbox, message_id, MAX_MATCHES).await?;
            }
            self.add_emails(&found_in, found);
        }
        for found_in in trace::find_sending(tx, message_id, MAX_MATCHES).await? {
            let inside = tx.enter(&found_in.workspace);
            let found = trace::list_sent(inside, &found_in.mailbox, message_id, MAX_MATCHES).await?;
            self.add_sends(tx, &found_in.workspace, found).await?;
        }
        self.queued(tx, message_id).await
    }

    fn add_emails(&mut self, found_in: &MailboxMatch, found: impl IntoIterator<Item = EmailRecord>) {
        for record in found {
            self.add_message_id(record.message_id.as_ref());
            let known = |email: &TracedEmail| email.id == record.id && email.mailbox_id == found_in.mailbox;
            if !self.trace.emails.iter().any(known) {
                self.trace.emails.push(TracedEmail {
                    id: record.id,
                    workspace_id: found_in.workspace.clone(),
                    mailbox_id: found_in.mailbox.clone(),
                    mailbox: found_in.address.clone(),
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
            self.add_message_id(record.message_id.as_ref());
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

    /// Remembers a Message-ID to follow.
    fn add_message_id(&mut self, message_id: Option<&String>) {
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
