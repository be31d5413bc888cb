//! What arriving and leaving mail means for triagers, decided in the transaction that stores it.

use mail::auto_reply::may_answer;
use model::{
    EmailId, Timestamp,
    emails::ScanStatus,
    events::EventType,
    triagers::{Occasion, SourceKind, TriagerTaskKind},
};
use store::{
    Tx,
    emails::EmailRecord,
    mailboxes::MailboxRecord,
    triage_jobs::{self, NewJob},
    triagers,
    vault::DataKey,
};

use super::look::domains;
use crate::{
    App, Result, assistant,
    events::NewEvent,
    inbound::{Delivery, Recipient},
};

/// The longest that a mail is held while an answer is drafted.
pub(super) const LONGEST_HOLD_SECONDS: i64 = 300;

/// A mail on its way into a mailbox.
pub(crate) struct Arrival<'a> {
    pub(crate) delivery: &'a Delivery<'a>,
    pub(crate) recipient: &'a Recipient,
    pub(crate) mailbox: &'a MailboxRecord,
}

/// Whether anything happens by itself in a mailbox. Costs nothing to ask, since every mail does.
fn is_automatic(app: &App, mailbox: &MailboxRecord) -> bool {
    assistant::is_configured(app) && mailbox.settings.agent_inbox.automations_enabled
}

impl Arrival<'_> {
    /// The same, if anything is to be done about it. What was imported did not arrive now.
    pub(crate) fn wanted(self) -> Option<Self> {
        let came = self.delivery.authentication.inbound_provider.is_some();
        (came && is_automatic(self.delivery.app, self.mailbox)).then_some(self)
    }

    /// Until when the mail is held out of sight, because an answer is drafted.
    pub(crate) async fn hold(&self, tx: &mut Tx, mail: &EmailRecord) -> Result<Option<Timestamp>> {
        if !self.mailbox.settings.auto_draft.enabled || mail.folder_id.as_str() != "inbox" {
            return Ok(None);
        }
        // What waits for its scan may turn out clean.
        if !matches!(mail.scan_status, None | Some(ScanStatus::Clean)) {
            return Ok(None);
        }
        let message = &self.delivery.prepared.message;
        let own = [self.mailbox.email.as_str(), self.recipient.address.as_str()];
        if may_answer(message, self.delivery.sender, &own).is_err() {
            return Ok(None);
        }
        let Some(triager) = triagers::find_default(tx, &self.recipient.mailbox).await? else {
            return Ok(None);
        };
        let triager = triager.at_work(true);
        let occasion = Occasion {
            kinds: vec![SourceKind::MailReceived],
            in_inbox: true,
            domains: domains(message.from.iter()),
        };
        let drafts = triager.does(TriagerTaskKind::DraftResponse)
            && triager.fires(&occasion, &self.delivery.prepared.subject(mail)).is_some();
        Ok(drafts.then(|| self.delivery.now.plus_seconds(LONGEST_HOLD_SECONDS)))
    }

    /// Puts the mail into the queue, and tells that it is held if it is.
    pub(crate) async fn enqueue(self, tx: &mut Tx, mail: &EmailRecord, key: &DataKey) -> Result<()> {
        let (app, now) = (self.delivery.app, self.delivery.now);
        let job = NewJob {
            id: app.new_uuid().simple().to_string(),
            email: mail.id.clone(),
            outgoing: false,
            sender: self.delivery.sender.map(ToOwned::to_owned),
            now,
        };
        triage_jobs::insert(tx, &self.recipient.mailbox, &job).await?;
        let Some(until) = mail.held_until else { return Ok(()) };
        let data = serde_json::json!({
            "email_id": mail.id,
            "thread_id": mail.thread_id,
            "held_until": until,
            "reason": "auto_draft",
        });
        let event =
            NewEvent { kind: EventType::MessageHeld, mailbox: Some(self.recipient.mailbox.clone()), data };
        event.append(tx, app, key, now).await
    }
}

/// Puts a mail that is leaving into the queue, if a triager of its mailbox could care.
pub(crate) async fn note_sent(
    tx: &mut Tx,
    app: &App,
    mailbox: &MailboxRecord,
    email: &EmailId,
    now: Timestamp,
) -> Result<()> {
    if !mailbox.triages_sent || !is_automatic(app, mailbox) {
        return Ok(());
    }
    let id = app.new_uuid().simple().to_string();
    let job = NewJob { id, email: email.clone(), outgoing: true, sender: None, now };
    Ok(triage_jobs::insert(tx, &mailbox.id, &job).await?)
}
