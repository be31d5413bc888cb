//! A draft as it is stored, and the message that it says.

use mail::address::Mailbox;
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

/// The purpose that what was written is sealed for.
const SOURCE: &str = "draft";

/// What its writer put into a draft.
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
}

impl Source {
    /// Whether it passes a message on: it belongs to one that it does not answer.
    pub(super) fn passes_on(&self) -> bool {
        self.in_reply_to.is_none() && !self.references.is_empty()
    }

    /// Joins a thread of the mailbox.
    pub(super) async fn join(&mut self, app: &App, origin: &Origin, thread: ThreadId) -> Result<ThreadId> {
        let (in_reply_to, references) = (self.in_reply_to.take(), std::mem::take(&mut self.references));
        let mut letter = OutgoingMessage { in_reply_to, references, ..OutgoingMessage::default() };
        join_thread(app, origin, &mut letter, thread.clone()).await?;
        (self.in_reply_to, self.references) = (letter.in_reply_to, letter.references);
        Ok(thread)
    }

    pub(super) fn seal(&self, key: &DataKey) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(key.seal(SOURCE, &plain).map_err(store::Error::from)?)
    }

    pub(crate) fn open(key: &DataKey, sealed: &[u8]) -> Result<Self> {
        let plain = key.open(SOURCE, sealed).map_err(store::Error::from)?;
        serde_json::from_slice(&plain).map_err(Error::internal)
    }
}

/// A draft as it was read: it may only be replaced or sent while it is still that one.
#[derive(Clone)]
pub(crate) struct LoadedDraft {
    pub(crate) record: DraftRecord,
    pub(crate) source: Source,
    pub(crate) thread: ThreadId,
    pub(crate) starred: bool,
}

impl LoadedDraft {
    /// The mail that the draft says, with its files if they are wanted.
    pub(crate) async fn letter(
        &self,
        app: &App,
        origin: &Origin,
        with_files: bool,
    ) -> Result<OutgoingMessage> {
        let source = &self.source;
        let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let is_html = source.format == BodyFormat::Html;
        let files = if with_files { self.files(app, origin).await? } else { Vec::new() };
        Ok(OutgoingMessage {
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
            files,
            headers: Vec::new(),
            message_id: self.record.message_id.clone(),
            auto_submitted: None,
        })
    }

    /// Its files, which keep their ids.
    pub(super) async fn files(&self, app: &App, origin: &Origin) -> Result<Vec<attachments::SourceFile>> {
        let mut all =
            attachments::of_email(app, origin, &self.record.email_id, attachments::BodyContext::AsTheyAre)
                .await?;
        for source in &mut all {
            source.keeps_id = true;
        }
        Ok(all)
    }
}

/// Reads the draft that a request names, if it names one. One that is scheduled or leaving right now is locked.
pub(crate) async fn hold(
    app: &App,
    origin: &Origin,
    id: Option<&EmailId>,
    now: Timestamp,
) -> Result<Option<LoadedDraft>> {
    let Some(id) = id.cloned() else { return Ok(None) };
    let key = app.data_key(&origin.workspace).await?;
    let mailbox = origin.mailbox.id.clone();
    let (record, mail) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let record = find(tx, &mailbox, &id).await?;
            let mail = emails::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            Ok::<_, Error>((record, mail))
        })
        .await?;
    if record.is_leaving(now) {
        return Err(Error::new(ErrorKind::DraftLocked));
    }
    if record.state != DraftState::Draft {
        return Err(Error::new(ErrorKind::DraftLocked).with_fix("Cancel its schedule first."));
    }
    let source = Source::open(&key, &record.source)?;
    Ok(Some(LoadedDraft { record, source, thread: mail.thread_id, starred: mail.starred }))
}

/// A draft or scheduled send that has not left.
pub(crate) async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<DraftRecord> {
    let found = drafts::find(tx, mailbox, id).await?;
    found.filter(|draft| draft.state != DraftState::Sent).ok_or_else(missing)
}

/// The refusal for a draft that is not there.
pub(super) fn missing() -> Error {
    Error::not_found("Draft not found")
}

/// Puts a mail into a thread of the mailbox; it answers the newest mail there unless it says otherwise.
pub(crate) async fn join_thread(
    app: &App,
    origin: &Origin,
    letter: &mut OutgoingMessage,
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
    if let Some((id, earlier)) = newest.filter(|_| letter.in_reply_to.is_none()) {
        let earlier: Vec<String> =
            earlier.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect();
        let threading = mail::compose::quote::threading(Some(&id), None, &earlier);
        letter.in_reply_to = threading.in_reply_to;
        if letter.references.is_empty() {
            letter.references = threading.references;
        }
    }
    letter.thread = Some(thread);
    Ok(())
}
