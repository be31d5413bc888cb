//! Sending, replying and forwarding, and the delivery status of a message.
//!
//! Every send ends in [`submit`], which is one transaction; [`worker`] delivers from the queue.

mod acceptance;
pub(crate) mod attachments;
pub(crate) mod attempts;
pub(crate) mod automatic;
mod bounces;
mod claims;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod gate;
mod incoming_reports;
mod loaded_message;
pub(crate) mod origin;
mod outcomes;
pub(crate) mod outgoing_message;
mod quota;
mod report;
pub(crate) mod routing;
mod signing;
mod submission_claim;
mod submission_log;
pub(crate) mod submit;
mod waiting_copy;
pub mod worker;

use std::sync::Arc;

use mail::{
    address::Mailbox,
    compose::quote::{self, Original},
    message::{self, Message},
};
use model::{
    AttachmentId, EmailId, Timestamp,
    audit::AuditDetails,
    emails::BodyFormat,
    folders::is_unsent,
    sending::{
        Delivery, DeliveryStatus, NewForward, NewMail, NewReply, RecipientDelivery, RecipientState,
        SendStatus, SentMail,
    },
};
use store::{
    SystemTx, contents, emails,
    outbound::{self, DeliveryRecord},
};

use self::{
    acceptance::QueuedDelivery,
    submit::{ApprovalState, Asked, Submission, SubmitOutcome},
};
pub(crate) use self::{
    automatic::AutomaticMessages,
    incoming_reports::IncomingReports,
    origin::Origin,
    outgoing_message::{
        OutgoingMessage, answered_id, body, forward_references, headers, people, references, sender, subject,
    },
    quota::check_request,
};
use crate::{
    core::{
        app::App,
        call::Call,
        caller::Actor,
        error::{Detail, Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::{present, refuse_flagged, visible},
    mailbox::mailboxes,
    outbox::drafts::loaded::{LoadedDraft, join_thread, load_unlocked},
    outbox::unsubscribing,
};

/// The errors that every send can fail with.
const SENDING_ERRORS: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::SenderNotAllowed,
    ErrorKind::SendBlocked,
    ErrorKind::RecipientSuppressed,
    ErrorKind::ContentWithheld,
    ErrorKind::QuotaExceeded,
    ErrorKind::DraftLocked,
    ErrorKind::AttachmentTooLarge,
    ErrorKind::AttachmentsTooLarge,
    ErrorKind::TooManyAttachments,
    ErrorKind::MessageTooLarge,
    ErrorKind::OutboundNotConfigured,
    ErrorKind::EmailSendRecipientLimitExceeded,
    ErrorKind::EmailSendRateLimitExceeded,
    ErrorKind::SendCapExceeded,
];

/// Sends a message.
pub const SEND: Operation = Operation::send(
    "sendEmail",
    "Sends an email. `sent` means that the next server of every recipient accepted it; `queued` that it will be retried for two days.",
)
.errors(SENDING_ERRORS);
/// Replies to a message.
pub const REPLY: Operation =
    Operation::send("replyToEmail", "Replies to an email, to its sender or to all, in its thread.")
        .errors(SENDING_ERRORS);
/// Forwards a message.
pub const FORWARD: Operation = Operation::send(
    "forwardEmail",
    "Forwards an email, with its attachments unless `attachments` says otherwise.",
)
.errors(SENDING_ERRORS);
/// Reads the delivery status of a message.
pub const DELIVERY: Operation =
    Operation::read("getEmailDelivery", "Returns the delivery status of an email for each recipient.")
        .errors(&[ErrorKind::NotFound])
        .tagged();

pub(crate) const OPERATIONS: &[&Operation] = &[&SEND, &REPLY, &FORWARD, &DELIVERY];

pub(crate) const ERRORS: &[ErrorKind] = SENDING_ERRORS;

/// Sends a message. With `wait` it returns when every next hop has accepted it, or when the time is up.
#[crate::boxed]
pub async fn send(app: &App, call: &Call, mailbox: &str, input: NewMail, wait: bool) -> Result<SentMail> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let (outgoing, draft) = written(app, &origin, input, call.now).await?;
    finish(app, call, origin, outgoing, SubmitOptions { draft, keeps_id: false, wait }).await
}

/// The message that a request describes, with the draft that it was.
pub(crate) async fn written(
    app: &App,
    origin: &Origin,
    input: NewMail,
    now: Timestamp,
) -> Result<(OutgoingMessage, Option<LoadedDraft>)> {
    let loaded = load_unlocked(app, origin, input.source_draft_id.as_ref(), now).await?;
    let mut outgoing = match &loaded {
        Some(loaded) => loaded.outgoing_message(app, origin, input.attachments.is_none()).await?,
        None => OutgoingMessage { message_id: origin.new_message_id(app), ..OutgoingMessage::default() },
    };
    outgoing.from = sender(origin, input.from.as_ref())?;
    fill(&mut outgoing.to, people("to", input.to.as_ref())?, input.to.is_some());
    fill(&mut outgoing.cc, people("cc", input.cc.as_ref())?, input.cc.is_some());
    fill(&mut outgoing.bcc, people("bcc", input.bcc.as_ref())?, input.bcc.is_some());
    set_body(&mut outgoing, input.html, input.text);
    let mut missing = missing_fields(&outgoing);
    match input.subject {
        Some(text) => outgoing.subject = subject(&text)?,
        None if loaded.is_none() => missing.push(Detail::new("subject", "is required")),
        None => {}
    }
    Error::refuse(missing)?;
    outgoing.headers = headers(input.headers)?;
    if let Some(asked) = input.unsubscribe {
        unsubscribing::add_headers(app, origin, &mut outgoing, asked).await?;
    }
    if let Some(id) = &input.in_reply_to {
        outgoing.in_reply_to = Some(answered_id(id)?);
        outgoing.references = outgoing.in_reply_to.clone().into_iter().collect();
    }
    if input.references.is_some() {
        outgoing.references = references(input.references.as_ref())?;
    }
    if let Some(thread) = input.thread_id {
        join_thread(app, origin, &mut outgoing, thread).await?;
    }
    let draft = loaded.as_ref().map(|loaded| &loaded.record.email_id);
    if let Some(given) = input.attachments {
        outgoing.attachments =
            attachments::resolve(app, origin, given, outgoing.html.as_deref(), draft).await?;
    }
    Ok((outgoing, loaded))
}

/// The recipients of a message as the gate of send policies compares them.
pub(crate) async fn routed_recipients(
    app: &App,
    origin: &Origin,
    outgoing: &OutgoingMessage,
) -> Result<Vec<gate::NamedRecipient>> {
    let addressees = routing::addressees(app, origin, outgoing).await?;
    Ok(gate::routed_recipients(outgoing, &addressees))
}

/// A field of the request replaces that of the draft.
fn fill(line: &mut Vec<Mailbox>, given: Vec<Mailbox>, is_given: bool) {
    if is_given {
        *line = given;
    }
}

fn set_body(outgoing: &mut OutgoingMessage, html: Option<String>, text: Option<String>) {
    if html.is_some() || text.is_some() {
        (outgoing.html, outgoing.text) = (body(html), body(text));
    }
}

/// How a message is submitted.
pub(crate) struct SubmitOptions {
    /// The draft that it was, which is deleted with the send.
    pub(crate) draft: Option<LoadedDraft>,
    /// Whether the sent email has the draft's id.
    pub(crate) keeps_id: bool,
    /// Whether the answer waits until every next hop has accepted it.
    pub(crate) wait: bool,
}

/// The checks that all sends share, then the transaction, then the wait.
pub(crate) async fn finish(
    app: &App,
    call: &Call,
    origin: Origin,
    mut outgoing: OutgoingMessage,
    options: SubmitOptions,
) -> Result<SentMail> {
    let SubmitOptions { draft, keeps_id, wait } = options;
    require_complete(&outgoing)?;
    attachments::check(&outgoing.attachments)?;
    outgoing.sign(&origin.mailbox.settings);
    let mut events = app.subscribe(&call.workspace);
    let asked = Asked::by(call);
    let submission = Submission::prepare(app, origin, outgoing, (draft, keeps_id), asked, call.now).await?;
    let recipients = submission.recipient_count();
    let watched = wait.then(|| app.outbox().watch(&call.workspace, submission.id().as_str()));
    events.mark_unchanged();
    let sent = submit(app, call, submission).await?;
    let Some(mut watched) = watched else { return Ok(sent) };
    // Only what is queued can still be accepted by a next hop while the call waits.
    if sent.status != SendStatus::Queued {
        return Ok(sent);
    }
    let mut delivery = QueuedDelivery::new(app, &call.workspace, sent.id.as_str(), recipients);
    // The message is accepted: whatever fails from here on, the caller must not send it again.
    match delivery.wait_until_accepted(&mut watched, &mut events).await {
        Ok(true) => {
            let accepted = SentMail { status: SendStatus::Sent, ..sent };
            if let Err(error) = app.keep_answer(call, &accepted).await {
                tracing::warn!(%error, "stored answer not updated; a repeated send reports queued");
            }
            Ok(accepted)
        }
        Ok(false) => Ok(sent),
        Err(error) => {
            tracing::warn!(%error, "delivery status unreadable; answering with queued");
            Ok(sent)
        }
    }
}

impl Asked {
    /// What a call asks for. A wallet has nobody to ask: it pays for what is done at once.
    fn by(call: &Call) -> Self {
        let approval = match call.caller.actor {
            Actor::Wallet(_) => ApprovalState::Impossible,
            _ => ApprovalState::Possible,
        };
        Self { request: call.caller.request(call.reserved_credits(), call.now), approval }
    }
}

/// The transaction, in one commit with others of the workspace if that locks nothing else.
async fn submit(app: &App, call: &Call, mut submission: Submission) -> Result<SentMail> {
    let (app_, now, log) = (app.clone(), call.now, submission.log.clone());
    let mut details = AuditDetails::default();
    details.about("email", submission.id()).in_mailbox(submission.mailbox());
    let sent = if submission.is_plain(app) && !call.rehearsal {
        let (key, bytes) = (format!("send {}", call.workspace), submission.bytes());
        let claim = submission.claim(app);
        let write = move |submissions: Vec<Arc<Submission>>| {
            let app = app_.clone();
            async move |tx: &mut SystemTx| Submission::commit_all(&submissions, tx, &app).await
        };
        let id = submission.id().clone();
        let sent = app.write_together(call, key, details, (Arc::new(submission), bytes), write).await?;
        // Another id is the stored answer of an earlier call with this idempotency key.
        if let Some(claim) = claim.filter(|_| sent.id == id && sent.status == SendStatus::Queued) {
            claim.deliver();
        }
        sent
    } else {
        let body = async move |tx: &mut SystemTx| match submission.commit(tx, &app_).await? {
            SubmitOutcome::Submitted(sent) => Ok(sent),
            SubmitOutcome::NotBefore(earliest, why) => Err(why.error(now, earliest)),
        };
        app.write_across(call, details, body).await?
    };
    log.write();
    Ok(sent)
}

/// Refuses a message without recipients or body.
pub(crate) fn require_complete(outgoing: &OutgoingMessage) -> Result<()> {
    Error::refuse(missing_fields(outgoing))
}

fn missing_fields(outgoing: &OutgoingMessage) -> Vec<Detail> {
    let to = outgoing.to.is_empty().then(|| Detail::new("to", "is required"));
    let is_silent = outgoing.html.is_none() && outgoing.text.is_none();
    let text = is_silent.then(|| Detail::new("text", "html or text is required"));
    to.into_iter().chain(text).collect()
}

/// A message of the mailbox that is replied to or forwarded.
struct Source {
    message: Message,
    record: emails::EmailRecord,
}

async fn source(app: &App, origin: &Origin, id: EmailId, now: Timestamp) -> Result<Source> {
    let mailbox = origin.mailbox.id.clone();
    let (record, content) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let email = visible(tx, &mailbox, &id, true, now).await?;
            if is_unsent(&email.folder_id) {
                return Err(present::missing());
            }
            let content = contents::find(tx, &email.content_id).await?.ok_or_else(present::missing)?;
            Ok((email, content))
        })
        .await?;
    let raw = present::open_raw(app, &origin.workspace, &content).await?;
    let message = tokio::task::spawn_blocking(move || message::read(&raw)).await.map_err(Error::internal)?;
    Ok(Source { message, record })
}

/// The parts of a message that a reply or a forward needs.
pub(crate) fn original(message: &Message) -> Original {
    let person = |person: &message::Person| mail::compose::Person {
        name: person.name.clone(),
        address: person.address.clone(),
    };
    let all = |people: &[message::Person]| people.iter().map(person).collect();
    Original {
        from: message.from.as_ref().map(person),
        reply_to: all(&message.reply_to),
        to: all(&message.to),
        cc: all(&message.cc),
        date: message.date,
        subject: message.subject.clone(),
        text: message.text.clone(),
        html: message.html.clone(),
    }
}

/// Replies to a message.
#[crate::boxed]
pub async fn reply(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    input: NewReply,
    wait: bool,
) -> Result<SentMail> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let source = source(app, &origin, id, call.now).await?;
    let loaded = load_unlocked(app, &origin, input.source_draft_id.as_ref(), call.now).await?;
    let mut outgoing = match &loaded {
        Some(loaded) => loaded.outgoing_message(app, &origin, input.attachments.is_none()).await?,
        None => OutgoingMessage { message_id: origin.new_message_id(app), ..OutgoingMessage::default() },
    };
    outgoing.from = sender(&origin, input.from.as_ref())?;
    let mut own = vec![origin.mailbox.email.as_str()];
    if !source.record.outgoing {
        own.push(source.record.recipient.as_str());
    }
    let answered = quote::reply_recipients(&original(&source.message), &own, input.reply_all);
    // The draft's fields take precedence over those derived from the original.
    let drafted = !outgoing.to.is_empty();
    outgoing.cc = match &input.cc {
        Some(given) => people("cc", Some(given))?,
        None if input.to.is_some() => Vec::new(),
        None if drafted => outgoing.cc,
        None => answered.cc.iter().filter_map(mailbox_of).collect(),
    };
    outgoing.to = match &input.to {
        Some(given) => people("to", Some(given))?,
        None if drafted => outgoing.to,
        None => answered.to.iter().filter_map(mailbox_of).collect(),
    };
    fill(&mut outgoing.bcc, people("bcc", input.bcc.as_ref())?, input.bcc.is_some());
    if outgoing.to.is_empty() && input.to.is_none() {
        return Err(Error::invalid("to", "the email has no address to reply to"));
    }
    outgoing.subject = match input.subject {
        Some(text) => subject(&text)?,
        None if loaded.is_some() && !outgoing.subject.is_empty() => outgoing.subject,
        None => quote::reply_subject(&source.message.subject),
    };
    set_body(&mut outgoing, input.html, input.text);
    outgoing.headers = headers(input.headers)?;
    let message = &source.message;
    let threading =
        quote::threading(message.message_id.as_deref(), message.in_reply_to.as_deref(), &message.references);
    (outgoing.in_reply_to, outgoing.references) = (threading.in_reply_to, threading.references);
    outgoing.thread = Some(source.record.thread_id.clone());
    let draft = loaded.as_ref().map(|loaded| &loaded.record.email_id);
    if let Some(given) = input.attachments {
        outgoing.attachments =
            attachments::resolve(app, &origin, given, outgoing.html.as_deref(), draft).await?;
    }
    finish(app, call, origin, outgoing, SubmitOptions { draft: loaded, keeps_id: false, wait }).await
}

pub(crate) fn mailbox_of(person: &mail::compose::Person) -> Option<Mailbox> {
    let address = mail::address::Address::parse(&person.address).ok()?;
    Mailbox::new(person.name.as_deref(), address.clone()).ok().or(Some(address.into()))
}

/// Forwards a message.
#[crate::boxed]
pub async fn forward(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    input: NewForward,
    wait: bool,
) -> Result<SentMail> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let source = source(app, &origin, id, call.now).await?;
    let mut outgoing = OutgoingMessage {
        message_id: origin.new_message_id(app),
        from: sender(&origin, input.from.as_ref())?,
        to: people("to", Some(&input.to))?,
        cc: people("cc", input.cc.as_ref())?,
        bcc: people("bcc", input.bcc.as_ref())?,
        subject: match &input.subject {
            Some(text) => subject(text)?,
            None => quote::forward_subject(&source.message.subject),
        },
        text: body(input.text),
        html: body(input.html),
        headers: headers(input.headers)?,
        ..OutgoingMessage::default()
    };
    // The signature belongs to the sender's own text, not to the forwarded one.
    outgoing.sign(&origin.mailbox.settings);
    let bodies =
        quote::forward(&original(&source.message), outgoing.text.as_deref(), outgoing.html.as_deref());
    (outgoing.text, outgoing.html) = (Some(bodies.text), bodies.html);
    outgoing.references = forward_references(source.message.message_id.as_deref());
    outgoing.thread = Some(source.record.thread_id.clone());
    outgoing.attachments = match input.attachments {
        Some(given) => attachments::resolve(app, &origin, given, outgoing.html.as_deref(), None).await?,
        None => {
            attachments::of_email(
                app,
                &origin,
                &source.record.id,
                attachments::BodyContext::Html(outgoing.html.as_deref()),
            )
            .await?
        }
    };
    let mut unsigned = origin.clone();
    unsigned.mailbox.settings.signature.enabled = false;
    finish(app, call, unsigned, outgoing, SubmitOptions { draft: None, keeps_id: false, wait }).await
}

/// The content of a draft that forwards a message.
pub struct ForwardDraft {
    /// The sender's text, with the original below.
    pub body: String,
    /// The format of the body.
    pub format: BodyFormat,
    /// The attachments of the original.
    pub attachments: Vec<AttachmentId>,
}

/// Composes a forward as a draft. It is sent as that draft, not by [`forward`].
#[crate::boxed]
pub async fn compose_forward(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    said: quote::BodyText<'_>,
) -> Result<ForwardDraft> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let source = source(app, &origin, id, call.now).await?;
    // Agents can read drafts: content that is withheld from them must not reach them through one.
    refuse_flagged(&source.record)?;
    let (text, html) = match said {
        quote::BodyText::Text(text) => (Some(text), None),
        quote::BodyText::Html(html) => (None, Some(html)),
    };
    let bodies = quote::forward(&original(&source.message), text, html);
    let (body, format) = match bodies.html {
        Some(html) => (html, BodyFormat::Html),
        None => (bodies.text, BodyFormat::Text),
    };
    let attachments = source.record.attachments.into_iter().map(|file| file.id).collect();
    Ok(ForwardDraft { body, format, attachments })
}

/// Reads the delivery status of a message for each recipient.
#[crate::boxed]
pub async fn delivery(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<Delivery> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    let (email, queued, recipients) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let email = visible(tx, &mailbox, &id, true, now).await?;
            let queued = outbound::find_of_email(tx, &mailbox, &id).await?;
            let recipients = match &queued {
                Some(queued) => outbound::recipients(tx, &queued.id).await?,
                None => Vec::new(),
            };
            Ok((email, queued, recipients))
        })
        .await?;
    let states: Vec<RecipientState> = recipients.iter().map(DeliveryRecord::shown_state).collect();
    Ok(Delivery {
        email_id: email.id,
        message_id: email.message_id,
        delivery_status: queued.is_some().then(|| DeliveryStatus::of(&states)),
        expires_at: queued.map(|queued| queued.expires_at),
        recipients: recipients
            .into_iter()
            .map(|one| RecipientDelivery {
                state: one.shown_state(),
                class: one.class,
                recipient: one.recipient,
                line: one.line,
                attempts: one.attempts,
                last_reply: one.reply,
                last_attempt_at: one.last_attempt_at,
                next_attempt_at: one.next_attempt_at,
                finished_at: one.finished_at,
            })
            .collect(),
    })
}
