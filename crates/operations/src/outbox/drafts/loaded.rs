//! A stored draft, and the outgoing message it becomes.

use mail::{address::Mailbox, compose::Person};
use model::{EmailId, MailboxId, ThreadId, Timestamp, drafts::DraftState, emails::BodyFormat};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    drafts::{self, DraftRecord},
    emails,
    vault::DataKey,
};

use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
    },
    outbox::sending::{
        attachments,
        origin::Origin,
        outgoing_message::{OutgoingMessage, sender},
    },
};

/// The purpose that a draft's source is sealed for.
const SOURCE: &str = "draft";

/// What the author wrote in a draft.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) to: Vec<Mailbox>,
    pub(crate) cc: Vec<Mailbox>,
    pub(crate) bcc: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) format: BodyFormat,
    pub(crate) in_reply_to: Option<String>,
    pub(crate) references: Vec<String>,
    /// The message as it was accepted to be sent, if it was.
    #[serde(default)]
    pub(crate) accepted: Option<AcceptedMessage>,
    /// The text of the draft that it was, if the message says something else.
    #[serde(default)]
    pub(crate) drafted: Option<DraftedText>,
}

/// What a message has beside what a draft has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AcceptedMessage {
    from_name: Option<String>,
    from: String,
    /// With the signature of the mailbox.
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    headers: Vec<(String, String)>,
}

/// The text of a draft before it was sent with changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DraftedText {
    pub(crate) subject: String,
    pub(crate) body: String,
}

impl Source {
    /// A message that was accepted to be sent but waits, and the draft that it was.
    pub(crate) fn of_message(outgoing: &OutgoingMessage, draft: Option<&Self>) -> Self {
        let (body, format) = outgoing.unsigned_body();
        let is_changed = |draft: &&Self| draft.subject != outgoing.subject || draft.body != body;
        let earlier = draft.and_then(|draft| draft.drafted.clone());
        let drafted = earlier.or_else(|| {
            let draft = draft.filter(|draft| draft.accepted.is_none()).filter(is_changed)?;
            Some(DraftedText { subject: draft.subject.clone(), body: draft.body.clone() })
        });
        Self {
            to: outgoing.to.clone(),
            cc: outgoing.cc.clone(),
            bcc: outgoing.bcc.clone(),
            subject: outgoing.subject.clone(),
            body: body.to_owned(),
            format,
            in_reply_to: outgoing.in_reply_to.clone(),
            references: outgoing.references.clone(),
            accepted: Some(AcceptedMessage {
                from_name: outgoing.from.name.clone(),
                from: outgoing.from.address.clone(),
                text: outgoing.text.clone(),
                html: outgoing.html.clone(),
                headers: outgoing.headers.clone(),
            }),
            drafted,
        }
    }

    /// The same as a draft again, which its author can change.
    pub(crate) fn into_draft(self) -> Self {
        Self { accepted: None, drafted: None, ..self }
    }

    /// Whether it forwards a message: it refers to one that it does not reply to.
    pub(super) fn is_forward(&self) -> bool {
        self.in_reply_to.is_none() && !self.references.is_empty()
    }

    /// Joins a thread of the mailbox.
    pub(super) async fn join(&mut self, app: &App, origin: &Origin, thread: ThreadId) -> Result<ThreadId> {
        let (in_reply_to, references) = (self.in_reply_to.take(), std::mem::take(&mut self.references));
        let mut outgoing = OutgoingMessage { in_reply_to, references, ..OutgoingMessage::default() };
        join_thread(app, origin, &mut outgoing, thread.clone()).await?;
        (self.in_reply_to, self.references) = (outgoing.in_reply_to, outgoing.references);
        Ok(thread)
    }

    pub(crate) fn seal(&self, key: &DataKey) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(key.seal(SOURCE, &plain).map_err(store::Error::from)?)
    }

    pub(crate) fn open(key: &DataKey, sealed: &[u8]) -> Result<Self> {
        let plain = key.open(SOURCE, sealed).map_err(store::Error::from)?;
        serde_json::from_slice(&plain).map_err(Error::internal)
    }
}

/// A draft as it was read: it may only be replaced or sent while its version is unchanged.
#[derive(Clone)]
pub(crate) struct LoadedDraft {
    pub(crate) record: DraftRecord,
    pub(crate) source: Source,
    pub(crate) thread: ThreadId,
    pub(crate) starred: bool,
}

impl LoadedDraft {
    /// The message of the draft, with its attachments if `with_attachments` is set.
    pub(crate) async fn outgoing_message(
        &self,
        app: &App,
        origin: &Origin,
        with_attachments: bool,
    ) -> Result<OutgoingMessage> {
        let source = &self.source;
        let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let is_html = source.format == BodyFormat::Html;
        let attachments = if with_attachments { self.attachments(app, origin).await? } else { Vec::new() };
        let message = OutgoingMessage {
            from: sender(origin, None)?,
            to: source.to.clone(),
            cc: source.cc.clone(),
            bcc: source.bcc.clone(),
            subject: source.subject.clone(),
            text: if is_html { None } else { filled(&source.body) },
            html: if is_html { filled(&source.body) } else { None },
            in_reply_to: source.in_reply_to.clone(),
            references: source.references.clone(),
            thread: Some(self.thread.clone()),
            attachments,
            headers: Vec::new(),
            message_id: self.record.message_id.clone(),
            auto_submitted: None,
            unsigned: None,
        };
        let Some(accepted) = &source.accepted else { return Ok(message) };
        Ok(OutgoingMessage {
            from: Person { name: accepted.from_name.clone(), address: accepted.from.clone() },
            text: accepted.text.clone(),
            html: accepted.html.clone(),
            headers: accepted.headers.clone(),
            unsigned: Some((source.body.clone(), source.format)),
            ..message
        })
    }

    /// Whether it was accepted to be sent, so that it is signed already.
    pub(crate) fn is_accepted(&self) -> bool {
        self.source.accepted.is_some()
    }

    /// Its attachments, which keep their ids.
    pub(super) async fn attachments(
        &self,
        app: &App,
        origin: &Origin,
    ) -> Result<Vec<attachments::OutgoingAttachment>> {
        let mut all =
            attachments::of_email(app, origin, &self.record.email_id, attachments::BodyContext::Unchanged)
                .await?;
        for source in &mut all {
            source.keeps_id = true;
        }
        Ok(all)
    }
}

/// Loads the draft that a request names, if it names one. A scheduled draft, or one being sent, is locked.
pub(crate) async fn load_unlocked(
    app: &App,
    origin: &Origin,
    id: Option<&EmailId>,
    now: Timestamp,
) -> Result<Option<LoadedDraft>> {
    let Some(id) = id.cloned() else { return Ok(None) };
    let key = app.data_key(&origin.workspace).await?;
    let mailbox = origin.mailbox.id.clone();
    let (record, email) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let record = find(tx, &mailbox, &id).await?;
            let email = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            Ok::<_, Error>((record, email))
        })
        .await?;
    if record.is_sending(now) {
        return Err(Error::new(ErrorKind::DraftLocked));
    }
    if record.state != DraftState::Draft {
        return Err(Error::draft_locked(record.state));
    }
    let source = Source::open(&key, &record.source)?;
    Ok(Some(LoadedDraft { record, source, thread: email.thread_id, starred: email.starred }))
}

/// A draft or scheduled send that was not sent yet.
pub(crate) async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<DraftRecord> {
    let found = drafts::find(tx, mailbox, id).await?;
    found.filter(|draft| draft.state != DraftState::Sent).ok_or_else(missing)
}

/// The error for a missing draft.
pub(super) fn missing() -> Error {
    Error::not_found("Draft not found")
}

/// Puts a message into a thread of the mailbox; it replies to the newest message there unless it says otherwise.
pub(crate) async fn join_thread(
    app: &App,
    origin: &Origin,
    outgoing: &mut OutgoingMessage,
    thread: ThreadId,
) -> Result<()> {
    let (mailbox, wanted) = (origin.mailbox.id.clone(), thread.clone());
    let newest = app
        .db()
        .read(&origin.workspace, async move |tx| {
            if emails::count_thread(tx, &mailbox, &wanted, None).await? == 0 {
                return Err(Error::not_found("Thread not found"));
            }
            Ok(emails::newest_in_thread(tx, &mailbox, &wanted).await?)
        })
        .await?;
    if let Some((id, earlier)) = newest.filter(|_| outgoing.in_reply_to.is_none()) {
        let earlier: Vec<String> =
            earlier.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect();
        let threading = mail::compose::quote::threading(Some(&id), None, &earlier);
        outgoing.in_reply_to = threading.in_reply_to;
        if outgoing.references.is_empty() {
            outgoing.references = threading.references;
        }
    }
    outgoing.thread = Some(thread);
    Ok(())
}
