//! Submission of a message: the gate of send policies, its email, its queue records, what plans count, and its delivery to
//! mailboxes of this server are one transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use model::{
    EmailId, MailboxId, ReviewId, Timestamp, WorkspaceId,
    drafts::DraftState,
    emails::{InboundProvider, SenderAuthentication},
    reviews::{ReviewFinding, ReviewState, SendRequest},
    send_policies::{
        SendPolicy,
        gate::{Clearance, ReviewState as Standing, Verdict},
    },
    sending::SentMail,
};
use store::{SystemTx, Tx, drafts as stored_drafts, emails, mailboxes, reviews, send_policies, workspaces};

use super::{
    content,
    copies::{self, SenderCopy},
    gate::{self, Candidate, ContentScan, Decision, Gate, NamedRecipient},
    origin::Origin,
    outgoing_message::{OutgoingMessage, SizeLimit},
    quota::{self, CountedMessage},
    routing::{Addressee, Route, addressees, count_external},
    submission_claim::SubmissionClaim,
    submission_log::SubmissionLog,
    waiting_copy::{self, WaitingFor},
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
    /// Each recipient once, as the gate of send policies compares them.
    named: Vec<NamedRecipient>,
    /// What its contents hold, if a policy asks.
    scan: Option<ContentScan>,
    digest: String,
    asked: Asked,
    /// Until when this node has it claimed from the start.
    claimed_until: Option<Timestamp>,
    /// The log line to write after the commit.
    pub(crate) log: SubmissionLog,
}

/// Who asks for a message to be sent, and whether a person has to be asked.
pub(crate) struct Asked {
    pub(crate) request: SendRequest,
    pub(crate) approval: ApprovalState,
}

/// Whether a person has approved a message, or can be asked to.
#[derive(Clone, Debug)]
pub(crate) enum ApprovalState {
    /// A person can be asked.
    Possible,
    /// Nobody can be asked: what would need a review is refused.
    Impossible,
    /// It was approved in this review, and leaves at this time or later.
    Approved(ReviewId, Option<Timestamp>),
}

/// The outcome of a submission.
pub(crate) enum SubmitOutcome {
    /// It was sent or queued, or waits for a person or a time.
    Submitted(SentMail),
    /// Something defers it.
    NotBefore(Timestamp, Deferral),
}

/// What defers a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// A limit of the plan.
    Plan,
    /// A cap of a send policy.
    Cap,
    /// The quiet hours of a send policy, for a scheduled message that is due.
    QuietHours,
}

impl Deferral {
    /// The refusal of a message that somebody waits for.
    pub(crate) fn error(self, now: Timestamp, earliest: Timestamp) -> Error {
        match self {
            Self::Plan => quota::not_before(now, earliest),
            Self::Cap | Self::QuietHours => gate::capped(now, earliest),
        }
    }

    /// Why a scheduled message is deferred, for people and for programs.
    pub(crate) const fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Plan => (quota::PLAN_LIMIT_REACHED, ErrorKind::EmailSendRateLimitExceeded.code()),
            Self::Cap => ("A cap of the send policy is reached.", ErrorKind::SendCapExceeded.code()),
            Self::QuietHours => ("These are quiet hours of the send policy.", "quiet_hours"),
        }
    }
}

impl Submission {
    /// Finds the routes of all recipients, composes the message, parses and seals it: everything that needs no
    /// transaction.
    pub(crate) async fn prepare(
        app: &App,
        origin: Origin,
        outgoing: OutgoingMessage,
        (draft, keeps_id): (Option<LoadedDraft>, bool),
        asked: Asked,
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
        let named = gate::routed_recipients(&outgoing, &addressees);
        let digest = waiting_copy::digest(&prepared.hash, &outgoing);
        let scan = content::scan(app, &origin, &outgoing).await?;
        let scan = scan.map(|scan| ContentScan { digest: digest.clone(), ..scan });
        Ok(Self {
            id,
            now,
            addressees,
            prepared,
            message: raw,
            contents,
            external,
            draft,
            named,
            scan,
            digest,
            origin,
            outgoing,
            asked,
            claimed_until: None,
            log: SubmissionLog::new(),
        })
    }

    /// The email that it becomes, and its name in the queue.
    pub(crate) fn id(&self) -> &EmailId {
        &self.id
    }

    /// Names it as it is: what is sent and to whom.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
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
    pub(crate) fn is_plain(&self, app: &App) -> bool {
        let stays_here = |one: &Addressee| matches!(one.route, Route::Mailbox(_));
        let has_policies =
            self.origin.has_policies || app.settings().send_policy.floor != SendPolicy::default();
        self.draft.is_none() && !has_policies && !self.addressees.iter().any(stays_here)
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
        let workspace = &first.origin.workspace;
        let mailboxes: BTreeSet<&MailboxId> = submissions.iter().map(|one| one.mailbox()).collect();
        let named = submissions.iter().flat_map(|one| one.named.iter().map(|one| one.address.clone()));
        let addresses: Vec<String> = named.collect();
        if send_policies::any(tx.enter(workspace), &mailboxes, &addresses).await? {
            return Self::commit_with_policies(submissions, tx, app).await;
        }
        let tx = tx.enter(workspace);
        let counted: Vec<CountedMessage<'_>> = submissions.iter().map(|one| one.counted()).collect();
        if let Some(earliest) = quota::count_sends(tx, app, &counted).await? {
            return Err(quota::not_before(first.now, earliest));
        }
        let cleared: Vec<Clearance> = submissions
            .iter()
            .map(|one| gate::clear_without_policies(one.candidate(Standing::Possible)))
            .collect::<Result<_>>()?;
        let copies = submissions.iter().zip(&cleared);
        let own: Result<Vec<_>> =
            copies.map(|(one, clearance)| one.copy(&one.addressees, Some(clearance))).collect();
        copies::store_all(tx, app, &own?).await
    }

    /// The same after a policy was set since they were prepared, or where an address is suppressed. Several are refused, so that each is submitted alone.
    async fn commit_with_policies(
        submissions: &[Arc<Self>],
        tx: &mut SystemTx,
        app: &App,
    ) -> Result<Vec<SentMail>> {
        let [only] = submissions else {
            return Err(Error::internal("messages under a send policy are submitted one by one"));
        };
        match only.commit(tx, app).await? {
            SubmitOutcome::Submitted(sent) => Ok(vec![sent]),
            SubmitOutcome::NotBefore(earliest, why) => Err(why.error(only.now, earliest)),
        }
    }

    /// Submits the message, or returns when it may be sent. The draft it came from must be unchanged.
    pub(crate) async fn commit(&self, tx: &mut SystemTx, app: &App) -> Result<SubmitOutcome> {
        let own = self.origin.workspace.clone();
        let gate = Gate::load(tx.enter(&own), app, self.mailbox()).await?;
        // Limits of plans lock the workspace, which comes before mailboxes; and only what leaves is counted.
        if gate.is_open() {
            if let Some(earliest) = self.count(tx, app).await? {
                return Ok(SubmitOutcome::NotBefore(earliest, Deferral::Plan));
            }
        } else {
            workspaces::lock(tx.enter(&own)).await?;
        }
        let mut addressees = self.lock_mailboxes(tx).await?;
        let standing = self.standing(tx.enter(&own)).await?;
        let decision = gate.decide(tx.enter(&own), self.candidate(standing)).await?;
        decision.leave_out_suppressed(&mut addressees);
        let waiting = match &decision.verdict {
            Verdict::Suppressed(findings) => return Err(gate::all_suppressed(findings)),
            Verdict::Block(findings) if standing == Standing::Approved => {
                return Err(gate::blocked(findings).of_kind(ErrorKind::ReviewBlocked));
            }
            Verdict::Block(findings) => return Err(gate::blocked(findings)),
            Verdict::Capped(until) => return Ok(SubmitOutcome::NotBefore(*until, Deferral::Cap)),
            Verdict::Schedule(end) if self.is_due_schedule() => {
                return Ok(SubmitOutcome::NotBefore(*end, Deferral::QuietHours));
            }
            Verdict::Schedule(end) => WaitingFor::Time(*end, self.approved_in()),
            Verdict::Review(reasons) => {
                WaitingFor::Review(reasons.clone(), self.findings(), gate.hold_seconds(app))
            }
            Verdict::Send(clearance) => match self.asked.approval {
                ApprovalState::Approved(_, Some(at)) if at > self.now => {
                    WaitingFor::Time(at, self.approved_in())
                }
                _ => {
                    if !gate.is_open()
                        && let Some(earliest) = self.count(tx, app).await?
                    {
                        return Ok(SubmitOutcome::NotBefore(earliest, Deferral::Plan));
                    }
                    return self.queue(tx, app, &addressees, &decision, clearance).await;
                }
            },
        };
        self.put_off(tx.enter(&own), app, (&addressees, &decision), waiting).await
    }

    /// Counts the message for the limits of the plan, or returns when they allow it.
    async fn count(&self, tx: &mut SystemTx, app: &App) -> Result<Option<Timestamp>> {
        quota::count_sends(tx.enter(&self.origin.workspace), app, &[self.counted()]).await
    }

    /// What the gate is shown of the message.
    fn candidate(&self, review: Standing) -> Candidate<'_> {
        Candidate {
            id: self.id.as_str(),
            recipients: &self.named,
            review,
            content: self.scan.as_ref(),
            digest: &self.digest,
            now: self.now,
        }
    }

    /// What a reviewer is shown of its contents.
    fn findings(&self) -> Vec<ReviewFinding> {
        self.scan.as_ref().and_then(|scan| scan.findings.clone()).unwrap_or_default()
    }

    /// Whether a person has approved the message, or can be asked to.
    async fn standing(&self, tx: &mut Tx) -> Result<Standing> {
        let earlier = self.draft.as_ref().filter(|_| self.is_due_schedule());
        if let Some(review) = earlier.and_then(|loaded| loaded.record.review_id.as_ref()) {
            let found = reviews::find(tx, review).await?;
            if found.is_some_and(|review| review.state == ReviewState::Approved) {
                return Ok(Standing::Approved);
            }
        }
        Ok(match self.asked.approval {
            ApprovalState::Possible => Standing::Possible,
            ApprovalState::Impossible => Standing::Impossible,
            ApprovalState::Approved(..) => Standing::Approved,
        })
    }

    /// Whether it was scheduled, and is sent by the worker now.
    fn is_due_schedule(&self) -> bool {
        self.draft.as_ref().is_some_and(|loaded| loaded.record.state == DraftState::Sending)
    }

    fn approved_in(&self) -> Option<ReviewId> {
        match &self.asked.approval {
            ApprovalState::Approved(review, _) => Some(review.clone()),
            _ => None,
        }
    }

    /// Queues the message, which the gate has let through.
    async fn queue(
        &self,
        tx: &mut SystemTx,
        app: &App,
        addressees: &[Addressee],
        decision: &Decision,
        clearance: &Clearance,
    ) -> Result<SubmitOutcome> {
        let own = self.origin.workspace.clone();
        decision.count(tx.enter(&own)).await?;
        self.delete_draft(tx.enter(&own)).await?;
        // In the order of workspaces, so that two submissions cannot deadlock on event logs.
        let workspaces: BTreeSet<WorkspaceId> = self.contents.keys().cloned().collect();
        let mut sent = None;
        for workspace in workspaces {
            if workspace == own {
                let copy = self.copy(addressees, Some(clearance))?;
                sent = copies::store_all(tx.enter(&own), app, &[copy]).await?.pop();
            }
            self.deliver(tx.enter(&workspace), app, addressees).await?;
        }
        let sent = sent.ok_or_else(|| Error::internal("a mail without a copy for its sender"))?;
        Ok(SubmitOutcome::Submitted(sent))
    }

    /// Keeps the message until a person has decided about it, or until its time.
    async fn put_off(
        &self,
        tx: &mut Tx,
        app: &App,
        (addressees, decision): (&[Addressee], &Decision),
        waiting: WaitingFor,
    ) -> Result<SubmitOutcome> {
        if matches!(waiting, WaitingFor::Review(..)) {
            decision.count(tx).await?;
        }
        self.delete_draft(tx).await?;
        let copy = self.copy(addressees, None)?;
        let draft = self.draft.as_ref();
        let sent = waiting_copy::store(tx, app, &copy, (draft, &self.asked.request), waiting).await?;
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
    fn copy<'a>(
        &'a self,
        addressees: &'a [Addressee],
        clearance: Option<&'a Clearance>,
    ) -> Result<SenderCopy<'a>> {
        Ok(SenderCopy {
            clearance,
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
