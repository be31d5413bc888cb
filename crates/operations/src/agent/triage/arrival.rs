//! What arriving and leaving mail means for triagers, decided in the transaction that stores it.

use mail::auto_reply::may_answer;
use model::{
    EmailId, Timestamp,
    emails::ScanStatus,
    events::EventType,
    folders::SystemFolder,
    triagers::{Occasion, SourceKind, TriagerTaskKind},
};
use store::{
    Tx,
    emails::EmailRecord,
    mailboxes::MailboxRecord,
    triage_jobs::{self, NewJob},
    triagers,
};

use super::context::domains;
use crate::{
    core::{
        app::{App, ArrivalHook, HookFuture, SendHook},
        arriving::Arriving,
        assistant,
        error::Result,
        events::NewEvent,
    },
    inbox::inbound::FilterableEmail,
};

/// The longest that a mail is held while an answer is drafted.
pub(super) const MAX_HOLD_SECONDS: i64 = 300;

/// Has triagers look at mail that arrives or leaves.
pub(crate) struct Triage;

impl ArrivalHook for Triage {
    fn hold<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        email: &'a EmailRecord,
    ) -> HookFuture<'a, Option<Timestamp>> {
        if !is_wanted(app, arriving) {
            return Box::pin(async { Ok(None) });
        }
        Box::pin(hold(tx, arriving, email))
    }

    fn after_arrival<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        email: &'a EmailRecord,
    ) -> HookFuture<'a> {
        if !is_wanted(app, arriving) {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(enqueue(tx, app, arriving, email))
    }
}

impl SendHook for Triage {
    fn after_send<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        mailbox: &'a MailboxRecord,
        email: &'a EmailId,
        now: Timestamp,
    ) -> HookFuture<'a> {
        Box::pin(note_sent(tx, app, mailbox, email, now))
    }
}

/// Whether anything happens by itself in a mailbox. Costs nothing to ask, since every mail does.
fn is_automatic(app: &App, mailbox: &MailboxRecord) -> bool {
    assistant::is_configured(app) && mailbox.settings.agent_inbox.automations_enabled
}

/// Whether anything is to be done about a message that arrives.
fn is_wanted(app: &App, arriving: &Arriving<'_>) -> bool {
    arriving.came_in() && is_automatic(app, arriving.mailbox)
}

/// Until when the mail is held out of sight, because an answer is drafted.
async fn hold(tx: &mut Tx, arriving: &Arriving<'_>, mail: &EmailRecord) -> Result<Option<Timestamp>> {
    if !arriving.mailbox.settings.auto_draft.enabled || mail.folder_id != SystemFolder::Inbox {
        return Ok(None);
    }
    // What waits for its scan may turn out clean.
    if !matches!(mail.scan_status, None | Some(ScanStatus::Clean)) {
        return Ok(None);
    }
    let message = arriving.message;
    let own = [arriving.mailbox.email.as_str(), arriving.recipient.address.as_str()];
    if may_answer(message, arriving.sender, &own).is_err() {
        return Ok(None);
    }
    let Some(triager) = triagers::find_default(tx, &arriving.recipient.mailbox).await? else {
        return Ok(None);
    };
    let triager = triager.at_work(true);
    let occasion = Occasion {
        kinds: vec![SourceKind::MailReceived],
        in_inbox: true,
        domains: domains(message.from.iter()),
    };
    let subject = FilterableEmail { record: mail, message, safe: arriving.safe, has_link: arriving.has_link };
    let drafts = triager.does(TriagerTaskKind::DraftResponse) && triager.fires(&occasion, &subject).is_some();
    Ok(drafts.then(|| arriving.now.plus_seconds(MAX_HOLD_SECONDS)))
}

/// Puts the mail into the queue, and tells that it is held if it is.
async fn enqueue(tx: &mut Tx, app: &App, arriving: &Arriving<'_>, mail: &EmailRecord) -> Result<()> {
    let now = arriving.now;
    let job = NewJob {
        id: app.new_uuid().simple().to_string(),
        email: mail.id.clone(),
        outgoing: false,
        sender: arriving.sender.map(ToOwned::to_owned),
        now,
    };
    triage_jobs::insert(tx, &arriving.recipient.mailbox, &job).await?;
    let Some(until) = mail.held_until else { return Ok(()) };
    let data = serde_json::json!({
        "email_id": mail.id,
        "thread_id": mail.thread_id,
        "held_until": until,
        "reason": "auto_draft",
    });
    let mailbox = Some(arriving.recipient.mailbox.clone());
    let event = NewEvent { kind: EventType::MessageHeld, mailbox, data };
    event.append(tx, app, arriving.key, now).await
}

/// Puts a mail that is leaving into the queue, if a triager of its mailbox could care.
async fn note_sent(
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
