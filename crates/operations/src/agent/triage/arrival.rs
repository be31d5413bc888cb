//! Queues arriving and sent messages for triagers, in the transaction that stores them.

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

/// Maximum time that a message is held while a reply is drafted.
pub(super) const MAX_HOLD_SECONDS: i64 = 300;

/// Queues messages for triagers when they arrive or are sent.
pub(crate) struct Triage;

impl ArrivalHook for Triage {
    fn hold<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        email: &'a EmailRecord,
    ) -> HookFuture<'a, Option<Timestamp>> {
        if !is_enabled(app, arriving) {
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
        if !is_enabled(app, arriving) {
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
        Box::pin(enqueue_sent(tx, app, mailbox, email, now))
    }
}

/// Whether automations are on in a mailbox. Costs nothing, since it is asked for every message.
fn is_automatic(app: &App, mailbox: &MailboxRecord) -> bool {
    assistant::is_configured(app) && mailbox.settings.agent_inbox.automations_enabled
}

/// Whether triagers should process an arriving message.
fn is_enabled(app: &App, arriving: &Arriving<'_>) -> bool {
    arriving.came_in() && is_automatic(app, arriving.mailbox)
}

/// Until when the message is held, because a reply is drafted.
async fn hold(tx: &mut Tx, arriving: &Arriving<'_>, mail: &EmailRecord) -> Result<Option<Timestamp>> {
    if !arriving.mailbox.settings.auto_draft.enabled || mail.folder_id != SystemFolder::Inbox {
        return Ok(None);
    }
    // A message that is not scanned yet may turn out clean.
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

/// Queues the message, and appends an event if it is held.
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

/// Queues a sent message, if a triager of its mailbox is triggered by sent mail.
async fn enqueue_sent(
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
