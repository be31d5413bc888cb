//! Triage jobs and their claims: inserted with the email, deleted with their outcome.

use model::{EmailId, MailboxId, Timestamp, WorkspaceId, triagers::SourceKind};

use crate::{
    SystemTx, Topic, Tx,
    error::Result,
    sql::{Columns, columns},
    turns::Queue,
};

/// An email to be triaged.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id.
    pub id: String,
    /// The email.
    pub email: EmailId,
    /// Whether it was sent from here.
    pub outgoing: bool,
    /// The envelope sender; `None` for a null sender.
    pub sender: Option<String>,
    /// When the email arrived.
    pub now: Timestamp,
}

/// A claimed job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its mailbox.
    pub mailbox: MailboxId,
    /// Its id.
    pub id: String,
    /// The email.
    pub email: EmailId,
    /// Whether it was sent from here.
    pub outgoing: bool,
    /// The envelope sender; `None` for a null sender.
    pub sender: Option<String>,
    /// How often in a row it was claimed, this time included, without being deferred or finished.
    pub attempts: i64,
    /// How often the model gave no answer.
    pub failures: i64,
    /// Its version since the claim: fences off earlier and later claims.
    pub version: i64,
    /// When the email arrived.
    pub created_at: Timestamp,
}

columns!(Job { workspace = workspace_id, mailbox = mailbox_id, id, email = email_id, outgoing, sender, attempts, failures, version, created_at });

/// Adds a job, in the transaction of the email's arrival or sending.
pub async fn insert(tx: &mut Tx, mailbox: &MailboxId, job: &NewJob) -> Result<()> {
    tx.pipeline(
        "INSERT INTO triage_job (workspace_id, mailbox_id, id, email_id, outgoing, sender, attempts, failures, version,
           due_at, claimed_until, created_at) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, $7, NULL, $7)",
        &[
            mailbox.into(),
            job.id.as_str().into(),
            (&job.email).into(),
            job.outgoing.into(),
            job.sender.as_ref().into(),
            job.now.into(),
        ],
    )
    .await?;
    tx.wake(Topic::Triage, None);
    Ok(())
}

/// The next workspaces, after the given one, with jobs that are due, or whose node was lost.
pub async fn due_workspaces(
    tx: &mut SystemTx,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let queue = Queue { table: "triage_job", condition: "true", due: "coalesce(claimed_until, due_at)" };
    queue.due_workspaces(tx, now, after, most, &[]).await
}

/// Claims due jobs of a workspace, the most overdue first.
pub async fn claim_due(
    tx: &mut SystemTx,
    workspace: &WorkspaceId,
    (now, until): (Timestamp, Timestamp),
    most: usize,
) -> Result<Vec<Job>> {
    // In a CTE: PostgreSQL may evaluate a subquery in the condition once per row, and each time it would lock further
    // rows.
    let sql = format!(
        "WITH chosen AS (SELECT mailbox_id, id FROM triage_job
           WHERE workspace_id = $1 AND coalesce(claimed_until, due_at) <= $2
           ORDER BY coalesce(claimed_until, due_at) LIMIT $4{})
         UPDATE triage_job SET version = version + 1, attempts = attempts + 1, claimed_until = $3
         WHERE workspace_id = $1 AND (mailbox_id, id) IN (SELECT mailbox_id, id FROM chosen)
         RETURNING {}",
        tx.skip_locked(),
        Job::COLUMNS
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    tx.all(&sql, &[workspace.into(), now.into(), until.into(), most.into()]).await
}

/// When the next job is due.
pub async fn next_due(tx: &mut SystemTx) -> Result<Option<Timestamp>> {
    let found: Option<(Timestamp,)> = tx
        .one(
            "SELECT coalesce(claimed_until, due_at) FROM triage_job ORDER BY coalesce(claimed_until, due_at) LIMIT 1",
            &[],
        )
        .await?;
    Ok(found.map(|(at,)| at))
}

/// Releases all claims of earlier processes, for a store with a single node.
pub async fn release_all(tx: &mut SystemTx) -> Result<()> {
    tx.run("UPDATE triage_job SET claimed_until = NULL WHERE claimed_until IS NOT NULL", &[]).await?;
    Ok(())
}

/// Releases a job until a time, after a failure or without one. False when it was claimed by another worker.
pub async fn defer(tx: &mut Tx, job: &Job, at: Timestamp, failed: bool) -> Result<bool> {
    let changed = tx
        .run(
            "UPDATE triage_job SET claimed_until = NULL, due_at = $5, attempts = 0, failures = failures + $6
             WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND version = $4",
            &[
                (&job.mailbox).into(),
                job.id.as_str().into(),
                job.version.into(),
                at.into(),
                i64::from(failed).into(),
            ],
        )
        .await?;
    tx.wake(Topic::Triage, None);
    Ok(changed == 1)
}

/// Whether a worker still has its claim on a job; locks the row until the transaction ends.
pub async fn lock_claimed(tx: &mut Tx, job: &Job) -> Result<bool> {
    let sql = format!(
        "SELECT id FROM triage_job WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND version = $4{}",
        tx.for_update()
    );
    let found: Option<(String,)> =
        tx.one(&sql, &[(&job.mailbox).into(), job.id.as_str().into(), job.version.into()]).await?;
    Ok(found.is_some())
}

/// Deletes a job. False when it is or was claimed by another worker.
pub async fn finish(tx: &mut Tx, job: &Job) -> Result<bool> {
    let gone = tx
        .run(
            "DELETE FROM triage_job WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3 AND version = $4",
            &[(&job.mailbox).into(), job.id.as_str().into(), job.version.into()],
        )
        .await?;
    Ok(gone == 1)
}

/// What a mailbox knows of a calendar event: its version, the job that last described it, and the description.
pub type KnownEvent = (i64, String, String);

/// Finds an event by the hash of its UID.
pub async fn find_event(tx: &mut Tx, mailbox: &MailboxId, uid: &str) -> Result<Option<KnownEvent>> {
    tx.one(
        "SELECT sequence, job_id, kind FROM calendar_event WHERE workspace_id = $1 AND mailbox_id = $2 AND uid = $3",
        &[mailbox.into(), uid.into()],
    )
    .await
}

/// Records what a job said about an event.
pub async fn record_event(
    tx: &mut Tx,
    job: &Job,
    uid: &str,
    sequence: i64,
    kind: SourceKind,
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO calendar_event (workspace_id, mailbox_id, uid, sequence, job_id, kind, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (workspace_id, mailbox_id, uid) DO UPDATE
         SET sequence = excluded.sequence, job_id = excluded.job_id, kind = excluded.kind,
           updated_at = excluded.updated_at",
        &[
            (&job.mailbox).into(),
            uid.into(),
            sequence.into(),
            job.id.as_str().into(),
            kind.into(),
            now.into(),
        ],
    )
    .await?;
    Ok(())
}
