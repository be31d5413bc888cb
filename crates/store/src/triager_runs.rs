//! Runs of triagers, in progress and finished.

use model::{
    EmailId, MailboxId, ThreadId, Timestamp, TriagerId, TriagerRunId,
    triagers::{RunSource, RunStatus, RunTask, RunTriager, SourceKind, TriagerRun},
};

use crate::{
    FromRow, Param, Row, Tx,
    error::Result,
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

impl FromRow for TriagerRun {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            triager: RunTriager { id: row.next()?, name: row.next()? },
            source: RunSource { kind: row.next()?, email_id: row.next()? },
            status: row.next()?,
            summary: row.next()?,
            tasks: row.next_json()?,
            started_at: row.next()?,
            finished_at: row.next()?,
        })
    }
}

/// Runs that are read for some threads at most.
const MAX_RUNS: usize = 1000;

const COLUMNS: &str =
    "id, triager_id, triager_name, source_kind, email_id, status, summary, tasks, started_at,
    finished_at";

/// The last runs of a mailbox, newest first.
pub async fn list_recent(tx: &mut Tx, mailbox: &MailboxId, most: i64) -> Result<Vec<TriagerRun>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM triager_run WHERE workspace_id = $1 AND mailbox_id = $2
         ORDER BY started_at DESC, id DESC LIMIT $3"
    );
    tx.all(&sql, &[mailbox.into(), most.into()]).await
}

/// The runs on the emails of these threads; of many runs the newest.
pub async fn list_of_threads(
    tx: &mut Tx,
    mailbox: &MailboxId,
    threads: &[ThreadId],
) -> Result<Vec<TriagerRun>> {
    let nothing = ThreadId::from("");
    let sql = format!(
        "SELECT {COLUMNS} FROM triager_run WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id IN
           (SELECT id FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND thread_id IN ({}))
         ORDER BY started_at DESC, id DESC LIMIT {MAX_RUNS}",
        list_placeholders(3)
    );
    let mut found = Vec::new();
    for some in threads.chunks(LIST_LENGTH) {
        let mut params: Vec<Param<'_>> = vec![mailbox.into()];
        params.extend(list_params(some.iter(), &nothing));
        found.extend(tx.all::<TriagerRun>(&sql, &params).await?);
    }
    Ok(found)
}

/// The runs of a job.
pub async fn list_of_job(tx: &mut Tx, mailbox: &MailboxId, job: &str) -> Result<Vec<TriagerRun>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM triager_run WHERE workspace_id = $1 AND mailbox_id = $2 AND job_id = $3 ORDER BY id"
    );
    tx.all(&sql, &[mailbox.into(), job.into()]).await
}

/// A run that starts, or one that starts and finishes at once.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its id.
    pub id: TriagerRunId,
    /// Its job.
    pub job: String,
    /// The triager.
    pub triager: TriagerId,
    /// Its name.
    pub triager_name: String,
    /// What triggered it.
    pub kind: SourceKind,
    /// The email.
    pub email: EmailId,
    /// When it starts.
    pub started_at: Timestamp,
}

/// Records the start of a run, unless an earlier attempt of its job did.
pub async fn begin(tx: &mut Tx, mailbox: &MailboxId, run: &NewRun) -> Result<()> {
    tx.run(
        "INSERT INTO triager_run (workspace_id, mailbox_id, id, job_id, triager_id, triager_name, source_kind, email_id,
           status, summary, tasks, started_at, finished_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'RUNNING', '', '[]', $9, NULL)
         ON CONFLICT (workspace_id, mailbox_id, job_id, triager_id) DO NOTHING",
        &[
            mailbox.into(),
            (&run.id).into(),
            run.job.as_str().into(),
            (&run.triager).into(),
            (&run.triager_name).into(),
            run.kind.into(),
            (&run.email).into(),
            run.started_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Records the outcome of a run.
pub async fn finish(
    tx: &mut Tx,
    mailbox: &MailboxId,
    id: &TriagerRunId,
    status: RunStatus,
    summary: &str,
    tasks: &[RunTask],
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE triager_run SET status = $4, summary = $5, tasks = $6, finished_at = $7
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into(), status.into(), summary.into(), Param::Json(&tasks), now.into()],
    )
    .await?;
    Ok(())
}
