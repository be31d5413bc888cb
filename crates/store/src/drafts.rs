//! Drafts and scheduled sends: what is stored beside their email.

use model::{
    EmailId, MailboxId, ReviewId, Timestamp, WorkspaceId,
    drafts::DraftState,
    folders::SystemFolder,
    reviews::{ReviewState, SendRequest},
};

use crate::{
    Param, SystemTx, Topic, Tx, emails,
    error::Result,
    reviews, send_policies,
    sql::{Columns, Insert, columns},
    turns::Queue,
};

/// A draft as it is stored.
#[derive(Clone, Debug)]
pub struct DraftRecord {
    /// Its email.
    pub email_id: EmailId,
    /// Its state.
    pub state: DraftState,
    /// Rises with every change.
    pub version: i64,
    /// What its author wrote, sealed.
    pub source: Vec<u8>,
    /// The Message-ID that it will have.
    pub message_id: String,
    /// When it is to be sent.
    pub scheduled_at: Option<Timestamp>,
    /// Until when the sending node's claim is valid.
    pub claimed_until: Option<Timestamp>,
    /// Why it could not be sent, or why it is still pending.
    pub last_error: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its author last changed it.
    pub updated_at: Timestamp,
    /// The review that it is in, or was approved in.
    pub review_id: Option<ReviewId>,
    /// Who asked for it to be sent, and what was charged.
    pub request: Option<SendRequest>,
}

impl DraftRecord {
    /// Whether a node is sending it at this time.
    pub fn is_sending(&self, now: Timestamp) -> bool {
        self.state == DraftState::Sending && self.claimed_until.is_some_and(|until| until > now)
    }
}

columns!(DraftRecord {
    email_id,
    state,
    version,
    source,
    message_id,
    scheduled_at,
    claimed_until,
    last_error,
    created_at,
    updated_at,
    review_id,
    request as optional_json,
});

const COLUMNS: &str = DraftRecord::COLUMNS;

/// Adds a draft, whose email must be there.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, draft: &DraftRecord) -> Result<()> {
    Insert::into("draft").column("mailbox_id", mailbox).record(draft).run(tx).await?;
    Ok(())
}

/// Finds a draft of a mailbox.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<Option<DraftRecord>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM draft WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3"),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// The same, with the row locked until the transaction ends.
pub async fn find_for_change(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId) -> Result<Option<DraftRecord>> {
    let lock = tx.for_update();
    tx.one(
        &format!(
            "SELECT {COLUMNS} FROM draft WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3{lock}"
        ),
        &[mailbox.into(), id.into()],
    )
    .await
}

/// Updates the state of a draft that is still at the given version, which is incremented. False when it is not.
pub async fn change(tx: &mut Tx, mailbox: &MailboxId, draft: &DraftRecord) -> Result<bool> {
    let changed = tx
        .run(
            "UPDATE draft SET state = $5, version = version + 1, scheduled_at = $6, claimed_until = $7, last_error = $8,
               review_id = $9, request = $10
             WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3 AND version = $4",
            &[
                mailbox.into(),
                (&draft.email_id).into(),
                draft.version.into(),
                draft.state.into(),
                draft.scheduled_at.into(),
                draft.claimed_until.into(),
                draft.last_error.as_ref().into(),
                draft.review_id.as_ref().into(),
                draft.request.as_ref().map_or(Param::Null, |request| Param::Json(request)),
            ],
        )
        .await?;
    Ok(changed == 1)
}

/// The outcome of cancelling a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It is a draft again.
    Done,
    /// There is no such schedule.
    Missing,
    /// It is being sent or was sent, or a node is changing it right now.
    Locked(DraftState),
}

/// Replaces what the author of a draft wrote.
pub async fn set_source(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId, source: &[u8]) -> Result<()> {
    let sql = "UPDATE draft SET source = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3";
    tx.run(sql, &[mailbox.into(), id.into(), source.into()]).await?;
    Ok(())
}

/// Turns a scheduled send back into a draft, in a mailbox that the caller has locked.
pub async fn cancel_schedule(
    tx: &mut Tx,
    mailbox: &MailboxId,
    id: &EmailId,
    now: Timestamp,
) -> Result<CancelOutcome> {
    let found = find(tx, mailbox, id).await?;
    let Some(record) = found.filter(|record| record.scheduled_at.is_some()) else {
        return Ok(CancelOutcome::Missing);
    };
    let abandoned = record.state == DraftState::Sending && !record.is_sending(now);
    let in_review = record.state == DraftState::InReview;
    if in_review || (!record.state.may_become(DraftState::Draft) && !abandoned) {
        return Ok(CancelOutcome::Locked(record.state));
    }
    if let Some(review) = &record.review_id {
        // What a person has approved is not sent now, and never again by that approval.
        reviews::set_state(tx, review, ReviewState::Withdrawn).await?;
        send_policies::discount(tx, id.as_str()).await?;
    }
    let draft = DraftRecord {
        state: DraftState::Draft,
        scheduled_at: None,
        claimed_until: None,
        last_error: None,
        review_id: None,
        ..record
    };
    if !change(tx, mailbox, &draft).await? {
        return Ok(CancelOutcome::Locked(DraftState::Sending));
    }
    let Some(brief) = emails::find_brief(tx, mailbox, id).await? else { return Ok(CancelOutcome::Missing) };
    emails::move_to(tx, mailbox, &[brief], &SystemFolder::Drafts.into()).await?;
    Ok(CancelOutcome::Done)
}

/// Wakes the timers of all nodes: a schedule is new or changed.
pub fn wake(tx: &mut Tx) {
    tx.wake(Topic::Schedule, None);
}

/// The scheduled sends of a mailbox that are still pending, soonest first, after the given position.
pub async fn list_scheduled(
    tx: &mut Tx,
    mailbox: &MailboxId,
    after: Option<(Timestamp, EmailId)>,
    most: i64,
) -> Result<Vec<DraftRecord>> {
    let (at, id) = after.unwrap_or_else(|| (Timestamp::from_micros(i64::MIN), EmailId::from("")));
    tx.all(
        &format!(
            "SELECT {COLUMNS} FROM draft WHERE workspace_id = $1 AND mailbox_id = $2
             AND state IN ('scheduled', 'deferred', 'sending', 'failed') AND (scheduled_at, email_id) > ($3, $4)
             ORDER BY scheduled_at, email_id LIMIT $5"
        ),
        &[mailbox.into(), at.into(), (&id).into(), most.into()],
    )
    .await
}

/// A scheduled send that a node has claimed.
#[derive(Clone, Debug)]
pub struct DueSend {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its mailbox.
    pub mailbox: MailboxId,
    /// Its email.
    pub email: EmailId,
    /// Its version since the claim: fences off earlier and later claims.
    pub version: i64,
}

columns!(DueSend { workspace = workspace_id, mailbox = mailbox_id, email = email_id, version });

/// The next workspaces, after the given one, with scheduled sends that are due, or whose node was lost while it sent
/// them.
pub async fn due_workspaces(
    tx: &mut SystemTx,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let queue = Queue {
        table: "draft",
        condition: "state IN ('scheduled', 'deferred', 'sending')",
        due: "coalesce(claimed_until, scheduled_at)",
    };
    queue.due_workspaces(tx, now, after, most, &[]).await
}

/// Claims due scheduled sends of a workspace, the most overdue first.
pub async fn claim_due(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    (now, until): (Timestamp, Timestamp),
    most: usize,
) -> Result<Vec<DueSend>> {
    let sql = format!(
        "WITH chosen AS (SELECT mailbox_id, email_id FROM draft WHERE workspace_id = $1
           AND state IN ('scheduled', 'deferred', 'sending') AND coalesce(claimed_until, scheduled_at) <= $2
           ORDER BY coalesce(claimed_until, scheduled_at) LIMIT $4{})
         UPDATE draft SET state = 'sending', version = version + 1, claimed_until = $3
         WHERE workspace_id = $1 AND (mailbox_id, email_id) IN (SELECT mailbox_id, email_id FROM chosen)
         RETURNING {}",
        tx.skip_locked(),
        DueSend::COLUMNS
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    tx.all(&sql, &[workspace.into(), now.into(), until.into(), most.into()]).await
}

/// When the next scheduled send is due.
pub async fn next_due(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let found: Option<(Option<Timestamp>,)> = tx
        .one(
            "SELECT coalesce(claimed_until, scheduled_at) FROM draft WHERE state IN ('scheduled', 'deferred', 'sending')
             ORDER BY coalesce(claimed_until, scheduled_at) LIMIT 1",
            &[],
        )
        .await?;
    Ok(found.and_then(|(at,)| at))
}

/// Releases a claimed scheduled send, unless it was claimed again since.
pub async fn release(tx: &mut Tx, due: &DueSend, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE draft SET claimed_until = $5 WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3
         AND version = $4 AND state = 'sending'",
        &[(&due.mailbox).into(), (&due.email).into(), due.version.into(), now.into()],
    )
    .await?;
    tx.wake(Topic::Schedule, None);
    Ok(())
}

/// Releases all claims of earlier processes, for a store with a single node.
pub async fn release_all(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE draft SET claimed_until = NULL WHERE state = 'sending'", &[]).await?;
    Ok(())
}
