//! Prepares and stores a draft: its source is composed, parsed and sealed like any other message.

use std::sync::Arc;

use model::{
    EmailId, ThreadId, Timestamp, drafts::DraftState, events::EventType, folders::SystemFolder,
    reviews::SendRequest, sending::FileInput,
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
        attachments, copies,
        origin::Origin,
        outgoing_message::{OutgoingMessage, SizeLimit, forward_references},
    },
};

/// A draft as requested, with the draft that it replaces.
pub(crate) struct DraftInput {
    pub(crate) source: Source,
    pub(crate) thread: Option<ThreadId>,
    /// The email that it forwards.
    pub(crate) forwards: Option<EmailId>,
    pub(crate) attachments: Option<Vec<FileInput>>,
    pub(crate) replaced: Option<LoadedDraft>,
    pub(crate) state: DraftState,
    pub(crate) scheduled_at: Option<Timestamp>,
    /// Who asks for it to be sent, if it is scheduled.
    pub(crate) request: Option<SendRequest>,
}

/// The thread of a draft, if known; sets the threading headers for what it replies to or forwards.
async fn find_thread(app: &App, origin: &Origin, input: &mut DraftInput) -> Result<Option<ThreadId>> {
    if let Some(id) = input.forwards.take() {
        let mailbox = origin.mailbox.id.clone();
        let email =
            app.db().read(&origin.workspace, async move |tx| emails::find(tx, &mailbox, &id).await).await?;
        let email = email.ok_or_else(present::missing)?;
        input.source.references = forward_references(email.message_id.as_deref());
        return Ok(Some(email.thread_id));
    }
    let before = input.replaced.as_ref();
    let asked = input.thread.take();
    // A draft that forwards something stays in its thread, and still replies to nothing.
    if let Some(loaded) = before.filter(|loaded| loaded.source.is_forward())
        && input.source.in_reply_to.is_none()
        && asked.as_ref().is_none_or(|thread| *thread == loaded.thread)
    {
        input.source.references.clone_from(&loaded.source.references);
        return Ok(Some(loaded.thread.clone()));
    }
    match asked {
        Some(thread) => input.source.join(app, origin, thread).await.map(Some),
        None => Ok(before.map(|loaded| loaded.thread.clone())),
    }
}

/// A draft that is ready to be stored.
pub(crate) struct PreparedDraft {
    origin: Origin,
    outgoing: OutgoingMessage,
    prepared: Arc<PreparedMessage>,
    content: Content,
    record: DraftRecord,
    replaced: Option<LoadedDraft>,
    now: Timestamp,
}

impl PreparedDraft {
    /// Composes the message, parses and seals it.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        mut input: DraftInput,
        now: Timestamp,
    ) -> Result<Self> {
        let thread = find_thread(app, &origin, &mut input).await?;
        let DraftInput { source, attachments, replaced, state, scheduled_at, request, .. } = input;
        let key = app.data_key(&origin.workspace).await?;
        let message_id = match &replaced {
            Some(loaded) => loaded.record.message_id.clone(),
            None => origin.new_message_id(app),
        };
        let record = DraftRecord {
            email_id: replaced.as_ref().map_or_else(|| app.new_id(), |loaded| loaded.record.email_id.clone()),
            state,
            version: replaced.as_ref().map_or(1, |loaded| loaded.record.version + 1),
            source: source.seal(&key)?,
            message_id,
            scheduled_at,
            claimed_until: None,
            last_error: None,
            created_at: replaced.as_ref().map_or(now, |loaded| loaded.record.created_at),
            updated_at: now,
            review_id: None,
            request,
        };
        let unused = thread.clone().unwrap_or_else(|| app.new_id());
        let input = LoadedDraft { record: record.clone(), source, thread: unused, starred: false };
        let mut outgoing = input.outgoing_message(app, &origin, false).await?;
        outgoing.thread = thread;
        outgoing.attachments = match (attachments, &replaced) {
            (Some(given), loaded) => {
                let draft = loaded.as_ref().map(|loaded| &loaded.record.email_id);
                attachments::resolve(app, &origin, given, outgoing.html.as_deref(), draft).await?
            }
            (None, Some(loaded)) => loaded.attachments(app, &origin).await?,
            (None, None) => Vec::new(),
        };
        attachments::check(&outgoing.attachments)?;
        let bound = match state {
            DraftState::Draft => SizeLimit::for_draft(),
            // A message that could never be sent is not scheduled.
            _ => SizeLimit::for_sending(app, &origin),
        };
        let raw = outgoing.compose(bound, now).await?;
        crate::inbox::emails::require_room(app, &origin.workspace, origin.plan, raw.len()).await?;
        let mut prepared = inbound::read(app, raw.clone()).await?;
        let (body, format) = (&input.source.body, input.source.format);
        prepared.show_as(body, format);
        let prepared = Arc::new(prepared);
        let content = Content::seal(app, &origin.workspace, &prepared, &raw).await?;
        Ok(Self { origin, outgoing, prepared, content, record, replaced, now })
    }

    /// Stores the draft in place of the one that it replaces.
    pub(crate) async fn store(self, tx: &mut Tx, app: &App) -> Result<EmailRecord> {
        let mailbox = &self.origin.mailbox.id;
        tx.audit().in_mailbox(mailbox);
        stored_mailboxes::lock(tx, mailbox).await?;
        if let Some(loaded) = &self.replaced {
            let present = find(tx, mailbox, &loaded.record.email_id).await?;
            if present.version != loaded.record.version {
                return Err(Error::new(ErrorKind::DraftLocked));
            }
            let brief = emails::find_brief(tx, mailbox, &loaded.record.email_id).await?;
            emails::delete(tx, mailbox, brief.as_slice()).await?;
        }
        self.content.require_new(app)?;
        contents::insert(tx, &self.content.record, self.now).await?;
        let own = Delivery::own(app, &self.prepared, self.now);
        let arrival = events::last_sequence(tx).await?;
        let id = &self.record.email_id;
        let mut email = copies::sender_copy(&own, &self.origin, &self.outgoing, id, &self.content, arrival);
        let is_draft = self.record.state == DraftState::Draft;
        let folder = if is_draft { SystemFolder::Drafts } else { SystemFolder::Scheduled };
        email.record.folder_id = folder.into();
        email.record.starred = self.replaced.as_ref().is_some_and(|loaded| loaded.starred);
        emails::insert(tx, mailbox, &mut email).await?;
        drafts::insert(tx, mailbox, &self.record).await?;
        if self.record.scheduled_at.is_some() {
            drafts::wake(tx);
        }
        if self.replaced.is_none() {
            let data = serde_json::json!({
                "draft_id": email.record.id,
                "email_id": email.record.id,
                "thread_id": email.record.thread_id,
                "subject": email.record.subject,
                "recipient": email.record.to_line,
                "status": self.record.state,
            });
            let event = NewEvent { kind: EventType::DraftCreated, mailbox: Some(mailbox.clone()), data };
            event.append(tx, app, &self.content.key, self.now).await?;
        }
        Ok(email.record)
    }
}
