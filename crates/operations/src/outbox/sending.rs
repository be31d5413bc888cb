//! Mail that goes out: sending, answering, passing on, and what becomes of it.
//!
//! Every way of sending ends in [`submit`], which is one transaction; [`work`] takes the queue on its way.

pub(crate) mod attachments;
pub(crate) mod attempts;
pub(crate) mod automatic;
mod claims;
mod departure;
mod incoming_reports;
pub(crate) mod origin;
pub(crate) mod outgoing_message;
mod quota;
mod report;
mod signing;
pub(crate) mod submit;
pub mod worker;

use std::time::Duration;

use mail::{
    address::Mailbox,
    compose::quote::{self, Original},
    message::{self, Message},
};
use model::{
    AttachmentId, EmailId, Timestamp, WorkspaceId,
    emails::BodyFormat,
    folders::is_unsent,
    sending::{
        Delivery, DeliveryStatus, NewForward, NewMail, NewReply, RecipientDelivery, RecipientState,
        SendStatus, SentMail,
    },
};
use store::{contents, emails, outbound};

pub(crate) use self::{
    automatic::AutomaticMail,
    incoming_reports::ReportNotes,
    origin::Origin,
    outgoing_message::{
        OutgoingMessage, answered_id, body, headers, passed_on_references, people, references, sender,
        subject,
    },
    quota::{KEPT_BACK, check_request},
};
use self::{
    quota::not_before,
    submit::{Submission, SubmitOutcome},
};
use crate::{
    core::{
        app::App,
        call::Call,
        error::{Detail, Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::{present, refuse_flagged, visible},
    mailbox::mailboxes,
    outbox::drafts::loaded::{LoadedDraft, hold, join_thread},
};

/// What every way of sending can be refused for.
const SENDING_ERRORS: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::SenderNotAllowed,
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
];

/// Sends a mail.
pub const SEND: Operation = Operation::send(
    "sendEmail",
    "Sends a mail. `sent` means that every next host has taken it; `queued` that it will be tried for two days.",
)
.errors(SENDING_ERRORS);
/// Answers a mail.
pub const REPLY: Operation =
    Operation::send("replyToEmail", "Answers a mail, its sender or everybody, in its thread.")
        .errors(SENDING_ERRORS);
/// Passes a mail on.
pub const FORWARD: Operation =
    Operation::send("forwardEmail", "Passes a mail on to others, with its files unless told otherwise.")
        .errors(SENDING_ERRORS);
/// Reads what became of a mail.
pub const DELIVERY: Operation =
    Operation::read("getEmailDelivery", "Reads what became of a mail for each recipient.")
        .errors(&[ErrorKind::NotFound])
        .tagged();

pub(crate) const OPERATIONS: &[&Operation] = &[&SEND, &REPLY, &FORWARD, &DELIVERY];

pub(crate) const ERRORS: &[ErrorKind] = SENDING_ERRORS;

/// Sends a mail. With `wait` it answers when every next host has taken it, or when its time is over.
#[crate::boxed]
pub async fn send(app: &App, call: &Call, mailbox: &str, input: NewMail, wait: bool) -> Result<SentMail> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let held = hold(app, &origin, input.source_draft_id.as_ref(), call.now).await?;
    let mut letter = match &held {
        Some(held) => held.letter(app, &origin, input.attachments.is_none()).await?,
        None => OutgoingMessage { message_id: origin.new_message_id(app), ..OutgoingMessage::default() },
    };
    letter.from = sender(&origin, input.from.as_ref())?;
    fill(&mut letter.to, people("to", input.to.as_ref())?, input.to.is_some());
    fill(&mut letter.cc, people("cc", input.cc.as_ref())?, input.cc.is_some());
    fill(&mut letter.bcc, people("bcc", input.bcc.as_ref())?, input.bcc.is_some());
    set_body(&mut letter, input.html, input.text);
    let mut lacks = lacking(&letter);
    match input.subject {
        Some(text) => letter.subject = subject(&text)?,
        None if held.is_none() => lacks.push(Detail::new("subject", "is required")),
        None => {}
    }
    Error::refuse(lacks)?;
    letter.headers = headers(input.headers)?;
    if let Some(id) = &input.in_reply_to {
        letter.in_reply_to = Some(answered_id(id)?);
        letter.references = letter.in_reply_to.clone().into_iter().collect();
    }
    if input.references.is_some() {
        letter.references = references(input.references.as_ref())?;
    }
    if let Some(thread) = input.thread_id {
        join_thread(app, &origin, &mut letter, thread).await?;
    }
    let draft = held.as_ref().map(|held| &held.record.email_id);
    if let Some(given) = input.attachments {
        letter.files = attachments::resolve(app, &origin, given, letter.html.as_deref(), draft).await?;
    }
    finish(app, call, origin, letter, SubmitOptions { draft: held, keeps_id: false, wait }).await
}

/// What a request says takes the place of what the draft says.
fn fill(line: &mut Vec<Mailbox>, given: Vec<Mailbox>, is_given: bool) {
    if is_given {
        *line = given;
    }
}

fn set_body(letter: &mut OutgoingMessage, html: Option<String>, text: Option<String>) {
    if html.is_some() || text.is_some() {
        (letter.html, letter.text) = (body(html), body(text));
    }
}

/// How a message is submitted.
pub(crate) struct SubmitOptions {
    /// The draft that it was, which goes with it.
    pub(crate) draft: Option<LoadedDraft>,
    /// Whether the sent email has the draft's id.
    pub(crate) keeps_id: bool,
    /// Whether the answer waits until every next host has taken it.
    pub(crate) wait: bool,
}

/// The last checks that all ways of sending share, then the transaction, then the wait.
pub(crate) async fn finish(
    app: &App,
    call: &Call,
    origin: Origin,
    mut letter: OutgoingMessage,
    options: SubmitOptions,
) -> Result<SentMail> {
    let SubmitOptions { draft, keeps_id, wait } = options;
    require_complete(&letter)?;
    attachments::check(&letter.files)?;
    letter.sign(&origin.mailbox.settings);
    let mut news = app.news(&call.workspace);
    let submission = Submission::prepare(app, origin, letter, draft, keeps_id, call.now).await?;
    let (app_, now, departure) = (app.clone(), call.now, submission.departure.clone());
    let sent = app
        .write_across(call, async move |tx| match submission.commit(tx, &app_).await? {
            SubmitOutcome::Now(sent) => Ok(sent),
            SubmitOutcome::NotBefore(earliest) => Err(not_before(now, earliest)),
        })
        .await?;
    departure.tell();
    if sent.status == SendStatus::Sent || !wait {
        return Ok(sent);
    }
    news.mark_unchanged();
    // The mail is accepted: whatever fails from here on, the caller must not send it again.
    match wait_until_taken(app, &call.workspace, sent.id.as_str(), &mut news).await {
        Ok(true) => {
            let taken = SentMail { status: SendStatus::Sent, ..sent };
            if let Err(error) = app.keep_answer(call, &taken).await {
                tracing::warn!(%error, "a repeated send will be answered with queued");
            }
            Ok(taken)
        }
        Ok(false) => Ok(sent),
        Err(error) => {
            tracing::warn!(%error, "what became of a mail could not be read");
            Ok(sent)
        }
    }
}

/// Refuses a mail that nobody would get, or that says nothing.
pub(crate) fn require_complete(letter: &OutgoingMessage) -> Result<()> {
    Error::refuse(lacking(letter))
}

fn lacking(letter: &OutgoingMessage) -> Vec<Detail> {
    let to = letter.to.is_empty().then(|| Detail::new("to", "is required"));
    let is_silent = letter.html.is_none() && letter.text.is_none();
    let text = is_silent.then(|| Detail::new("text", "one of html and text is required"));
    to.into_iter().chain(text).collect()
}

/// How often a send that waits looks by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Waits until every next host has taken a mail. False when the time is over, or when it cannot become true any more.
async fn wait_until_taken(
    app: &App,
    workspace: &WorkspaceId,
    id: &str,
    news: &mut tokio::sync::watch::Receiver<u64>,
) -> Result<bool> {
    let window = app.settings().outbound.send_window;
    let deadline = tokio::time::Instant::now() + window;
    let last = app.now().plus_seconds(i64::try_from(window.as_secs()).unwrap_or(i64::MAX));
    loop {
        let wanted = id.to_owned();
        let found = app.db().read(workspace, async move |tx| outbound::recipients(tx, &wanted).await).await?;
        let is = |state: RecipientState| found.iter().any(|one| one.state == state);
        if is(RecipientState::Bounced) || found.is_empty() {
            return Ok(false);
        }
        if !is(RecipientState::Queued) {
            return Ok(true);
        }
        // One that was put off until after the window keeps nobody waiting.
        let too_late = |one: &outbound::DeliveryRecord| {
            one.state == RecipientState::Queued
                && one.attempts > 0
                && one.next_attempt_at.is_some_and(|at| at > last)
        };
        if found.iter().any(too_late) || tokio::time::Instant::now() >= deadline {
            return Ok(false);
        }
        // Nothing tells of a mail that is put off.
        let look = (tokio::time::Instant::now() + LOOK_AGAIN).min(deadline);
        tokio::select! {
            _ = tokio::time::timeout_at(look, news.changed()) => {}
            () = app.ending() => return Ok(false),
        }
    }
}

/// A mail of the mailbox that is answered or passed on.
struct Source {
    message: Message,
    record: emails::EmailRecord,
}

async fn source(app: &App, origin: &Origin, id: EmailId, now: Timestamp) -> Result<Source> {
    let mailbox = origin.mailbox.id.clone();
    let (record, content) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let mail = visible(tx, &mailbox, &id, true, now).await?;
            if is_unsent(&mail.folder_id) {
                return Err(present::missing());
            }
            let content = contents::find(tx, &mail.content_id).await?.ok_or_else(present::missing)?;
            Ok((mail, content))
        })
        .await?;
    let raw = present::open_raw(app, &origin.workspace, &content).await?;
    let message = tokio::task::spawn_blocking(move || message::read(&raw)).await.map_err(Error::internal)?;
    Ok(Source { message, record })
}

/// A message as one who answers it or passes it on needs it.
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

/// Answers a mail.
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
    let held = hold(app, &origin, input.source_draft_id.as_ref(), call.now).await?;
    let mut letter = match &held {
        Some(held) => held.letter(app, &origin, input.attachments.is_none()).await?,
        None => OutgoingMessage { message_id: origin.new_message_id(app), ..OutgoingMessage::default() },
    };
    letter.from = sender(&origin, input.from.as_ref())?;
    let mut own = vec![origin.mailbox.email.as_str()];
    if !source.record.outgoing {
        own.push(source.record.recipient.as_str());
    }
    let answered = quote::reply_recipients(&original(&source.message), &own, input.reply_all);
    // What the draft says goes before what follows from the mail that is answered.
    let drafted = !letter.to.is_empty();
    letter.cc = match &input.cc {
        Some(given) => people("cc", Some(given))?,
        None if input.to.is_some() => Vec::new(),
        None if drafted => letter.cc,
        None => answered.cc.iter().filter_map(mailbox_of).collect(),
    };
    letter.to = match &input.to {
        Some(given) => people("to", Some(given))?,
        None if drafted => letter.to,
        None => answered.to.iter().filter_map(mailbox_of).collect(),
    };
    fill(&mut letter.bcc, people("bcc", input.bcc.as_ref())?, input.bcc.is_some());
    if letter.to.is_empty() && input.to.is_none() {
        return Err(Error::invalid("to", "the mail names nobody to answer"));
    }
    letter.subject = match input.subject {
        Some(text) => subject(&text)?,
        None if held.is_some() && !letter.subject.is_empty() => letter.subject,
        None => quote::reply_subject(&source.message.subject),
    };
    set_body(&mut letter, input.html, input.text);
    letter.headers = headers(input.headers)?;
    let message = &source.message;
    let threading =
        quote::threading(message.message_id.as_deref(), message.in_reply_to.as_deref(), &message.references);
    (letter.in_reply_to, letter.references) = (threading.in_reply_to, threading.references);
    letter.thread = Some(source.record.thread_id.clone());
    let draft = held.as_ref().map(|held| &held.record.email_id);
    if let Some(given) = input.attachments {
        letter.files = attachments::resolve(app, &origin, given, letter.html.as_deref(), draft).await?;
    }
    finish(app, call, origin, letter, SubmitOptions { draft: held, keeps_id: false, wait }).await
}

pub(crate) fn mailbox_of(person: &mail::compose::Person) -> Option<Mailbox> {
    let address = mail::address::Address::parse(&person.address).ok()?;
    Mailbox::new(person.name.as_deref(), address.clone()).ok().or(Some(address.into()))
}

/// Passes a mail on.
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
    let mut letter = OutgoingMessage {
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
    // The signature belongs to what the sender says, not to what is passed on.
    letter.sign(&origin.mailbox.settings);
    let bodies = quote::forward(&original(&source.message), letter.text.as_deref(), letter.html.as_deref());
    (letter.text, letter.html) = (Some(bodies.text), bodies.html);
    letter.references = passed_on_references(source.message.message_id.as_deref());
    letter.thread = Some(source.record.thread_id.clone());
    letter.files = match input.attachments {
        Some(given) => attachments::resolve(app, &origin, given, letter.html.as_deref(), None).await?,
        None => {
            attachments::of_email(
                app,
                &origin,
                &source.record.id,
                attachments::BodyContext::By(letter.html.as_deref()),
            )
            .await?
        }
    };
    let mut unsigned = origin.clone();
    unsigned.mailbox.settings.signature.enabled = false;
    finish(app, call, unsigned, letter, SubmitOptions { draft: None, keeps_id: false, wait }).await
}

/// A mail that is to be passed on, as a draft of it holds it.
pub struct PassedOn {
    /// What the sender says, with the original below.
    pub body: String,
    /// What the body is written in.
    pub format: BodyFormat,
    /// The files of the original.
    pub files: Vec<AttachmentId>,
}

/// Writes a mail that is to be passed on, for a draft. It leaves as that draft, not by [`forward`].
#[crate::boxed]
pub async fn pass_on(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: EmailId,
    said: quote::BodyText<'_>,
) -> Result<PassedOn> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let source = source(app, &origin, id, call.now).await?;
    // A draft can be read by agents: what is kept from them in the mail may not come to them by way of it.
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
    let files = source.record.attachments.into_iter().map(|file| file.id).collect();
    Ok(PassedOn { body, format, files })
}

/// Reads what became of a mail for each recipient.
#[crate::boxed]
pub async fn delivery(app: &App, call: &Call, mailbox: &str, id: EmailId) -> Result<Delivery> {
    let (named, now) = (mailboxes::name(mailbox), call.now);
    let (mail, queued, recipients) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let mail = visible(tx, &mailbox, &id, true, now).await?;
            let queued = outbound::find_of_email(tx, &mailbox, &id).await?;
            let recipients = match &queued {
                Some(queued) => outbound::recipients(tx, &queued.id).await?,
                None => Vec::new(),
            };
            Ok((mail, queued, recipients))
        })
        .await?;
    let states: Vec<RecipientState> = recipients.iter().map(|one| one.state).collect();
    Ok(Delivery {
        email_id: mail.id,
        message_id: mail.message_id,
        delivery_status: queued.is_some().then(|| DeliveryStatus::of(&states)),
        expires_at: queued.map(|queued| queued.expires_at),
        recipients: recipients
            .into_iter()
            .map(|one| RecipientDelivery {
                recipient: one.recipient,
                line: one.line,
                state: one.state,
                attempts: one.attempts,
                last_reply: one.reply,
                last_attempt_at: one.last_attempt_at,
                next_attempt_at: one.next_attempt_at,
                finished_at: one.finished_at,
            })
            .collect(),
    })
}
