//! Submission of a message: its email, its queue records, what plans count, and its delivery to mailboxes of this
//! server are one transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    emails::{InboundProvider, SenderAuthentication},
    sending::SentMail,
};
use store::{SystemTx, Tx, drafts as stored_drafts, emails, mailboxes};

use super::{
    copies::{self, SenderCopy},
    origin::Origin,
    outgoing_message::{OutgoingMessage, SizeLimit},
    quota::{self, CountedMessage},
    routing::{Addressee, Route, addressees, count_external},
    submission_claim::SubmissionClaim,
    submission_log::SubmissionLog,
};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
    },
    inbox::{
        emails::{require_room, require_room_beside},
        inbound::{self, Content, Delivery, PreparedMessage, Recipient, Refusal},
    },
    outbox::drafts::loaded::LoadedDraft,
};

/// A message that is ready to be sent.
pub(crate) struct Submission {
    origin: Origin,
    outgoing: OutgoingMessage,
    id: EmailId,
    now: Timestamp,
    addressees: Vec<Addressee>,
    prepared: Arc<PreparedMessage>,
    /// As it goes over the wire.
    message: Bytes,
    contents: BTreeMap<WorkspaceId, Content>,
    /// Recipients outside the workspace.
    external: i64,
    /// The draft that is deleted with it.
    draft: Option<LoadedDraft>,
    /// Until when this node has it claimed from the start.
    claimed_until: Option<Timestamp>,
    /// The log line to write after the commit.
    pub(crate) log: SubmissionLog,
}

/// The outcome of a submission.
pub(crate) enum SubmitOutcome {
    /// It was sent or queued.
    Submitted(SentMail),
    /// A plan limit defers it.
    NotBefore(Timestamp),
}

impl Submission {
    /// Finds the routes of all recipients, composes the message, parses and seals it: everything that needs no
    /// transaction.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        outgoing: OutgoingMessage,
        draft: Option<LoadedDraft>,
        keeps_id: bool,
        now: Timestamp,
    ) -> Result<Self> {
        // A mailbox may only send from a verified domain.
        if !crate::mailbox::mailboxes::is_reachable(origin.mailbox.domain.as_ref()) {
            let fix = "The domain of this mailbox is not verified: publish its DNS records and verify it.";
            return Err(Error::new(ErrorKind::SenderNotAllowed).with_fix(fix));
        }
        quota::check_request(app, origin.plan, outgoing.recipient_count())?;
        let addressees = addressees(app, &origin, &outgoing).await?;
        let external = count_external(&origin.workspace, &addressees);
        let raw = outgoing.compose(SizeLimit::for_sending(app, &origin), now).await?;
        match origin.stored_bytes {
            Some(stored) => require_room_beside(app, origin.plan, stored, raw.len())?,
            None => require_room(app, &origin.workspace, origin.plan, raw.len()).await?,
        }
        let received = Arc::new(inbound::read(app, raw.clone()).await?);
        let mut contents = seal(app, &origin.workspace, &addressees, &received, &raw).await?;
        // The sender's copy shows the body as written, the recipients' as received.
        let mut prepared = Arc::unwrap_or_clone(received);
        let (body, format) = outgoing.body();
        prepared.show_as(body, format);
        let prepared = Arc::new(prepared);
        let own = Content::seal(app, &origin.workspace, &prepared, &raw).await?;
        contents.insert(origin.workspace.clone(), own);
        let id = match &draft {
            Some(loaded) if keeps_id => loaded.record.email_id.clone(),
            _ => app.new_id(),
        };
        let log = SubmissionLog::new();
        let message = raw;
        let claimed_until = None;
        Ok(Self {
            origin,
            outgoing,
            id,
            now,
            addressees,
            prepared,
            message,
            contents,
            external,
            draft,
            claimed_until,
            log,
        })
    }

    /// The email that it becomes, and its name in the queue.
    pub(crate) fn id(&self) -> &EmailId {
        &self.id
    }

    /// The mailbox that it is sent from.
    pub(crate) fn mailbox(&self) -> &MailboxId {
        &self.origin.mailbox.id
    }

    /// How many recipients it has.
    pub(crate) fn recipient_count(&self) -> usize {
        self.addressees.len()
    }

    /// The bytes that its copy stores in rows, about.
    pub(crate) fn bytes(&self) -> usize {
        self.contents.values().map(Content::bytes_in_row).sum()
    }

    /// Whether it locks nothing but its workspace and mailbox, so that [several](Self::commit_all) can be submitted
    /// together.
    pub(crate) fn is_plain(&self) -> bool {
        let stays_here = |one: &Addressee| matches!(one.route, Route::Mailbox(_));
        self.draft.is_none() && !self.addressees.iter().any(stays_here)
    }

    /// Claims it for this node, if this node can deliver it as soon as it is committed.
    pub(super) fn claim(&mut self, app: &App) -> Option<SubmissionClaim> {
        let recipients = copies::delivery_records(&self.addressees, self.now);
        let claim = SubmissionClaim::make(app, &self.origin.workspace, self.id.as_str(), &recipients)?;
        self.claimed_until = Some(claim.until);
        Some(claim)
    }

    fn counted(&self) -> CountedMessage<'_> {
        let (plan, mailbox) = (self.origin.plan, &self.origin.mailbox.id);
        CountedMessage { plan, mailbox, external: self.external, now: self.now }
    }

    /// Submits plain messages of one workspace, all or none.
    pub(crate) async fn commit_all(
        submissions: &[Arc<Self>],
        tx: &mut SystemTx,
        app: &App,
    ) -> Result<Vec<SentMail>> {
        let Some(first) = submissions.first() else { return Ok(Vec::new()) };
        let tx = tx.enter(&first.origin.workspace);
        let counted: Vec<CountedMessage<'_>> = submissions.iter().map(|one| one.counted()).collect();
        if let Some(earliest) = quota::count_sends(tx, app, &counted).await? {
            return Err(quota::not_before(first.now, earliest));
        }
        let own: Result<Vec<_>> = submissions.iter().map(|one| one.copy(&one.addressees)).collect();
        copies::store_all(tx, app, &own?).await
    }

    /// Submits the message, or returns when it may be sent. The draft it came from must be unchanged.
    pub(crate) async fn commit(&self, tx: &mut SystemTx, app: &App) -> Result<SubmitOutcome> {
        let own = self.origin.workspace.clone();
        if let Some(earliest) = quota::count_sends(tx.enter(&own), app, &[self.counted()]).await? {
            return Ok(SubmitOutcome::NotBefore(earliest));
        }
        let addressees = self.lock_mailboxes(tx).await?;
        self.delete_draft(tx.enter(&own)).await?;
        // In the order of workspaces, so that two submissions cannot deadlock on event logs.
        let workspaces: BTreeSet<WorkspaceId> = self.contents.keys().cloned().collect();
        let mut sent = None;
        for workspace in workspaces {
            if workspace == own {
                sent = copies::store_all(tx.enter(&own), app, &[self.copy(&addressees)?]).await?.pop();
            }
            self.deliver(tx.enter(&workspace), app, &addressees).await?;
        }
        let sent = sent.ok_or_else(|| Error::internal("a mail without a copy for its sender"))?;
        Ok(SubmitOutcome::Submitted(sent))
    }

    /// Locks all mailboxes in the order of every transaction. One that was deleted meanwhile refuses the message. Returns
    /// the routes as they are now.
    async fn lock_mailboxes(&self, tx: &mut SystemTx) -> Result<Vec<Addressee>> {
        let mut wanted: BTreeSet<(&WorkspaceId, &MailboxId)> = BTreeSet::new();
        let origin = (&self.origin.workspace, &self.origin.mailbox.id);
        wanted.insert(origin);
        for addressee in &self.addressees {
            if let Route::Mailbox(to) = &addressee.route {
                wanted.insert((&to.workspace, &to.mailbox));
            }
        }
        let mut present: BTreeSet<(&WorkspaceId, &MailboxId)> = BTreeSet::new();
        for (workspace, mailbox) in wanted {
            if mailboxes::lock_present(tx.enter(workspace), mailbox).await? {
                present.insert((workspace, mailbox));
            }
        }
        let mut addressees = self.addressees.clone();
        for addressee in &mut addressees {
            if let Route::Mailbox(to) = &addressee.route
                && !present.contains(&(&to.workspace, &to.mailbox))
            {
                addressee.route = Route::Refused(Refusal::UNKNOWN.to_string());
            }
        }
        Ok(addressees)
    }

    /// Deletes the draft that this message was.
    async fn delete_draft(&self, tx: &mut Tx) -> Result<()> {
        let Some(loaded) = &self.draft else { return Ok(()) };
        let mailbox = &self.origin.mailbox.id;
        let present = stored_drafts::find_for_change(tx, mailbox, &loaded.record.email_id).await?;
        let same = |present: &stored_drafts::DraftRecord| {
            (present.version, present.state) == (loaded.record.version, loaded.record.state)
        };
        if !present.is_some_and(|present| same(&present)) {
            return Err(Error::new(ErrorKind::DraftLocked));
        }
        let brief = emails::find_brief(tx, mailbox, &loaded.record.email_id).await?;
        emails::delete(tx, mailbox, brief.as_slice()).await?;
        Ok(())
    }

    /// What its sender keeps.
    fn copy<'a>(&'a self, addressees: &'a [Addressee]) -> Result<SenderCopy<'a>> {
        Ok(SenderCopy {
            origin: &self.origin,
            outgoing: &self.outgoing,
            prepared: &self.prepared,
            content: self.content(&self.origin.workspace)?,
            message: &self.message,
            id: &self.id,
            draft: self.draft.as_ref().map(|loaded| &loaded.record),
            addressees,
            claimed_until: self.claimed_until,
            log: &self.log,
            now: self.now,
        })
    }

    /// Delivers to the mailboxes of one workspace.
    async fn deliver(&self, tx: &mut Tx, app: &App, addressees: &[Addressee]) -> Result<()> {
        let authentication = SenderAuthentication::unknown(Some(InboundProvider::MailApi));
        let sender = Some(self.origin.mailbox.email.as_str());
        let delivery = Delivery {
            app,
            prepared: &self.prepared,
            authentication: &authentication,
            sender,
            now: self.now,
            imported: false,
        };
        let workspace = tx.workspace().clone();
        let mut here: Vec<&Recipient> = Vec::new();
        for addressee in addressees {
            if let Route::Mailbox(to) = &addressee.route
                && to.workspace == workspace
            {
                here.push(to);
            }
        }
        here.sort_by(|one, other| (&one.mailbox, &one.address).cmp(&(&other.mailbox, &other.address)));
        let content = self.content(&workspace)?;
        for recipient in here {
            delivery.to_mailbox(tx, recipient, &app.new_id(), content).await?;
        }
        Ok(())
    }

    fn content(&self, workspace: &WorkspaceId) -> Result<&Content> {
        let found = self.contents.get(workspace);
        found.ok_or_else(|| Error::internal("a recipient's workspace was not prepared"))
    }
}

/// Seals the message for every receiving workspace but the sender's own.
async fn seal(
    app: &App,
    own: &WorkspaceId,
    addressees: &[Addressee],
    received: &Arc<PreparedMessage>,
    raw: &Bytes,
) -> Result<BTreeMap<WorkspaceId, Content>> {
    let mut sealed = BTreeMap::new();
    for addressee in addressees {
        if let Route::Mailbox(to) = &addressee.route
            && to.workspace != *own
            && !sealed.contains_key(&to.workspace)
        {
            let content = Content::seal(app, &to.workspace, received, raw).await?;
            sealed.insert(to.workspace.clone(), content);
        }
    }
    Ok(sealed)
}
