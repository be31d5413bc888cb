//! A draft on its way into the store: what its writer says becomes a message that is read and sealed like any other.

use std::sync::Arc;

use model::{
    EmailId, ThreadId, Timestamp, drafts::DraftState, emails::SenderAuthentication, events::EventType,
    sending::FileInput,
};
use store::{
    Tx, contents,
    drafts::{self, DraftRecord},
    emails::{self, EmailRecord},
    events, mailboxes as stored_mailboxes,
};

use super::loaded::{LoadedDraft, Source, find};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
    },
    inbox::{
        emails::present,
        inbound::{self, Content, Delivery, PreparedMessage},
    },
    outbox::sending::{
        attachments,
        origin::Origin,
        outgoing_message::{Bound, OutgoingMessage, passed_on_references},
        submit,
    },
};

/// What a request says about a draft, beside the draft that it replaces.
pub(crate) struct Written {
    pub(crate) source: Source,
    pub(crate) thread: Option<ThreadId>,
    /// The email that it passes on.
    pub(crate) passes_on: Option<EmailId>,
    pub(crate) attachments: Option<Vec<FileInput>>,
    pub(crate) replaced: Option<LoadedDraft>,
    pub(crate) state: DraftState,
    pub(crate) scheduled_at: Option<Timestamp>,
}

/// The thread that a draft belongs to, if that is known; what it answers or passes on is put into it.
async fn find_place(app: &App, origin: &Origin, written: &mut Written) -> Result<Option<ThreadId>> {
    if let Some(id) = written.passes_on.take() {
        let mailbox = origin.mailbox.id.clone();
        let mail =
            app.db().read(&origin.workspace, async move |tx| emails::find(tx, &mailbox, &id).await).await?;
        let mail = mail.ok_or_else(present::missing)?;
        written.source.references = passed_on_references(mail.message_id.as_deref());
        return Ok(Some(mail.thread_id));
    }
    let before = written.replaced.as_ref();
    let asked = written.thread.take();
    // A draft that passes something on stays beside it, and goes on without answering anybody.
    if let Some(held) = before.filter(|held| held.source.passes_on())
        && written.source.in_reply_to.is_none()
        && asked.as_ref().is_none_or(|thread| *thread == held.thread)
    {
        written.source.references.clone_from(&held.source.references);
        return Ok(Some(held.thread.clone()));
    }
    match asked {
        Some(thread) => written.source.join(app, origin, thread).await.map(Some),
        None => Ok(before.map(|held| held.thread.clone())),
    }
}

/// A draft that is ready to be stored.
pub(crate) struct Ready {
    origin: Origin,
    letter: OutgoingMessage,
    prepared: Arc<PreparedMessage>,
    content: Content,
    record: DraftRecord,
    replaced: Option<LoadedDraft>,
    now: Timestamp,
}

impl Ready {
    /// Writes the message, reads and seals it.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        mut written: Written,
        now: Timestamp,
    ) -> Result<Self> {
        let thread = find_place(app, &origin, &mut written).await?;
        let Written { source, attachments, replaced, state, scheduled_at, .. } = written;
        let key = app.data_key(&origin.workspace).await?;
        let message_id = match &replaced {
            Some(held) => held.record.message_id.clone(),
            None => origin.new_message_id(app),
        };
        let record = DraftRecord {
            email_id: replaced.as_ref().map_or_else(|| app.new_id(), |held| held.record.email_id.clone()),
            state,
            version: replaced.as_ref().map_or(1, |held| held.record.version + 1),
            source: source.seal(&key)?,
            message_id,
            scheduled_at,
            claimed_until: None,
            last_error: None,
            created_at: replaced.as_ref().map_or(now, |held| held.record.created_at),
            updated_at: now,
        };
        let unused = thread.clone().unwrap_or_else(|| app.new_id());
        let written = LoadedDraft { record: record.clone(), source, thread: unused, starred: false };
        let mut letter = written.letter(app, &origin, false).await?;
        letter.thread = thread;
        letter.files = match (attachments, &replaced) {
            (Some(given), held) => {
                let draft = held.as_ref().map(|held| &held.record.email_id);
                attachments::resolve(app, &origin, given, letter.html.as_deref(), draft).await?
            }
            (None, Some(held)) => held.files(app, &origin).await?,
            (None, None) => Vec::new(),
        };
        attachments::check(&letter.files)?;
        let bound = match state {
            DraftState::Draft => Bound::to_keep(),
            // What could never leave is not scheduled.
            _ => Bound::to_send(app, &origin),
        };
        let raw = letter.compose(bound, now).await?;
        crate::inbox::emails::require_room(app, &origin.workspace, origin.plan, raw.len()).await?;
        let mut prepared = inbound::read(app, raw.clone()).await?;
        let (body, format) = (&written.source.body, written.source.format);
        prepared.show_as(body, format);
        let prepared = Arc::new(prepared);
        let content = Content::seal(app, &origin.workspace, &prepared, &raw).await?;
        Ok(Self { origin, letter, prepared, content, record, replaced, now })
    }

    /// Stores the draft, in the place of the one that it replaces.
    pub(crate) async fn store(self, tx: &mut Tx, app: &App) -> Result<EmailRecord> {
        let mailbox = &self.origin.mailbox.id;
        stored_mailboxes::lock(tx, mailbox).await?;
        if let Some(held) = &self.replaced {
            let present = find(tx, mailbox, &held.record.email_id).await?;
            if present.version != held.record.version {
                return Err(Error::new(ErrorKind::DraftLocked));
            }
            let brief = emails::find_brief(tx, mailbox, &held.record.email_id).await?;
            emails::delete(tx, mailbox, brief.as_slice()).await?;
        }
        contents::insert(tx, &self.content.record, self.now).await?;
        let authentication = SenderAuthentication::unknown(None);
        let delivery = Delivery {
            app,
            prepared: &self.prepared,
            authentication: &authentication,
            sender: None,
            now: self.now,
        };
        let arrival = events::last_sequence(tx).await?;
        let id = &self.record.email_id;
        let mut mail = submit::outgoing(&delivery, &self.origin, &self.letter, id, &self.content, arrival);
        let folder = if self.record.state == DraftState::Draft { "draft" } else { "scheduled" };
        mail.record.folder_id = folder.into();
        mail.record.starred = self.replaced.as_ref().is_some_and(|held| held.starred);
        emails::insert(tx, mailbox, &mut mail).await?;
        drafts::insert(tx, mailbox, &self.record).await?;
        if self.record.scheduled_at.is_some() {
            drafts::wake(tx).await?;
        }
        if self.replaced.is_none() {
            let data = serde_json::json!({
                "draft_id": mail.record.id,
                "email_id": mail.record.id,
                "thread_id": mail.record.thread_id,
                "subject": mail.record.subject,
                "recipient": mail.record.to_line,
                "status": self.record.state,
            });
            let event = NewEvent { kind: EventType::DraftCreated, mailbox: Some(mailbox.clone()), data };
            event.append(tx, app, &self.content.key, self.now).await?;
        }
        Ok(mail.record)
    }
}
