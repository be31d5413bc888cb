//! The queue as its workers see it, across workspaces: what is due, who works on it, what came of it.

use model::{Timestamp, WorkspaceId, sending::RecipientState};

use crate::{
    SystemTx, Topic, Tx,
    error::Result,
    sql::{Columns, columns, row},
    turns::Queue,
};

/// A record that a worker has taken on.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its mail.
    pub outbound: String,
    /// Its place among the recipients of the mail.
    pub position: i64,
    /// The address.
    pub recipient: String,
    /// The domain, as far as bounds and back-off go; empty for a mailbox of this server.
    pub destination: String,
    /// How often it was tried before.
    pub attempts: i64,
}

columns!(Claimed { workspace = workspace_id, outbound = outbound_id, position, recipient, destination, attempts });

/// A destination with mail in the queue.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its name.
    pub destination: String,
    /// When its first record is due: one that waits, or one whose node may be lost.
    pub due_at: Timestamp,
    /// Until when nobody tries, after it could not be reached.
    pub resting_until: Option<Timestamp>,
}

row!(Head { destination, due_at, resting_until });

/// The destinations in the queue in the order of their names, after a name or from the first on. One look for each, however many mails wait
/// there.
pub async fn heads(tx: &mut SystemTx, after: Option<&str>, most: i64) -> Result<Vec<Head>> {
    let (after, comparison) = after.map_or(("", ">="), |after| (after, ">"));
    let sql = format!(
        "WITH RECURSIVE names (name) AS (
           SELECT (SELECT destination FROM delivery WHERE state = 'queued' AND destination {comparison} $1
             ORDER BY destination LIMIT 1)
           UNION ALL SELECT (SELECT destination FROM delivery WHERE state = 'queued' AND destination > names.name
             ORDER BY destination LIMIT 1) FROM names WHERE names.name IS NOT NULL)
         SELECT names.name, (SELECT coalesce(claimed_until, next_attempt_at) FROM delivery
             WHERE state = 'queued' AND destination = names.name ORDER BY coalesce(claimed_until, next_attempt_at) LIMIT 1),
           destination.resting_until
         FROM names LEFT JOIN destination ON destination.name = names.name WHERE names.name IS NOT NULL LIMIT $2"
    );
    tx.all(&sql, &[after.into(), most.into()]).await
}

/// The next workspaces, behind the given one, with records of a destination that are due.
pub async fn due_workspaces(
    tx: &mut SystemTx,
    destination: &str,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let queue = Queue {
        table: "delivery",
        condition: "state = 'queued' AND destination = $4",
        due: "coalesce(claimed_until, next_attempt_at)",
    };
    queue.due_workspaces(tx, now, after, most, &[destination.into()]).await
}

/// Takes on such records of a workspace, the longest waiting first, for a node and until a time.
pub async fn claim(
    tx: &mut SystemTx,
    node: &str,
    (now, until): (Timestamp, Timestamp),
    (destination, workspace): (&str, &WorkspaceId),
    most: usize,
) -> Result<Vec<Claimed>> {
    let sql = format!(
        "WITH chosen AS (SELECT outbound_id, position FROM delivery WHERE workspace_id = $1
           AND state = 'queued' AND destination = $2 AND coalesce(claimed_until, next_attempt_at) <= $3
           ORDER BY coalesce(claimed_until, next_attempt_at) LIMIT $6{})
         UPDATE delivery SET claimed_by = $4, claimed_until = $5
         WHERE workspace_id = $1 AND (outbound_id, position) IN (SELECT outbound_id, position FROM chosen)
         RETURNING {}",
        tx.skip_locked(),
        Claimed::COLUMNS
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values = [workspace.into(), destination.into(), now.into(), node.into(), until.into(), most.into()];
    tx.all(&sql, &values).await
}

/// Which recipients of a mail a node still has taken on, at least until a time.
pub async fn held(tx: &mut Tx, outbound: &str, node: &str, until: Timestamp) -> Result<Vec<i64>> {
    let found: Vec<(i64,)> = tx
        .all(
            "SELECT position FROM delivery WHERE workspace_id = $1 AND outbound_id = $2 AND state = 'queued'
             AND claimed_by = $3 AND claimed_until > $4",
            &[outbound.into(), node.into(), until.into()],
        )
        .await?;
    Ok(found.into_iter().map(|(position,)| position).collect())
}

/// Lets go of a record that a node has taken on, until it is tried again at a time.
pub async fn release(tx: &mut Tx, claimed: &Claimed, node: &str, at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE delivery SET claimed_by = NULL, claimed_until = NULL, next_attempt_at = $5
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND claimed_by = $4 AND state = 'queued'",
        &[(&claimed.outbound).into(), claimed.position.into(), node.into(), at.into()],
    )
    .await?;
    tx.wake(Topic::Queue, None).await
}

/// Keeps what a node works on for longer.
pub async fn renew(tx: &mut SystemTx, node: &str, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE delivery SET claimed_until = $2 WHERE claimed_by = $1 AND state = 'queued'",
        &[node.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// What a node has taken on.
pub async fn claimed_by(tx: &mut SystemTx, node: &str) -> Result<Vec<Claimed>> {
    tx.all(
        &format!(
            "SELECT {} FROM delivery
         WHERE claimed_by = $1 AND state = 'queued'",
            Claimed::COLUMNS
        ),
        &[node.into()],
    )
    .await
}

/// Lets go of everything that nodes of the past worked on, for a store that has one node only: this one.
pub async fn release_all_but(tx: &mut SystemTx, node: &str) -> Result<()> {
    tx.run(
        "UPDATE delivery SET claimed_by = NULL, claimed_until = NULL
         WHERE state = 'queued' AND claimed_by IS NOT NULL AND claimed_by <> $1",
        &[node.into()],
    )
    .await?;
    Ok(())
}

/// What came of one attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What became of the mail for this recipient.
    pub state: RecipientState,
    /// What the other server said.
    pub reply: String,
    /// When to try again, if it stays in the queue.
    pub next_attempt_at: Option<Timestamp>,
}

/// Notes what came of an attempt, unless somebody else has taken the record on since. False then.
pub async fn finish(
    tx: &mut Tx,
    claimed: &Claimed,
    node: &str,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<bool> {
    let finished = (attempt.state != RecipientState::Queued).then_some(now);
    let changed = tx
        .run(
            "UPDATE delivery SET state = $5, reply = $6, next_attempt_at = $7, last_attempt_at = $8, finished_at = $9,
               attempts = attempts + 1, claimed_by = NULL, claimed_until = NULL
             WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND state = 'queued' AND claimed_by = $4
             AND attempts = $10",
            &[
                (&claimed.outbound).into(),
                claimed.position.into(),
                node.into(),
                attempt.state.into(),
                (&attempt.reply).into(),
                attempt.next_attempt_at.into(),
                now.into(),
                finished.into(),
                claimed.attempts.into(),
            ],
        )
        .await?;
    Ok(changed == 1)
}

/// Gives a record that a node has taken on another destination, and lets go of it.
pub async fn redirect(tx: &mut Tx, claimed: &Claimed, node: &str, destination: &str) -> Result<()> {
    tx.run(
        "UPDATE delivery SET destination = $5, claimed_by = NULL, claimed_until = NULL
         WHERE workspace_id = $1 AND outbound_id = $2 AND position = $3 AND claimed_by = $4",
        &[(&claimed.outbound).into(), claimed.position.into(), node.into(), destination.into()],
    )
    .await?;
    tx.wake(Topic::Queue, None).await
}

/// Notes that a destination could not be reached. Mails that fail together count once.
pub async fn rest(tx: &mut SystemTx, destination: &str, now: Timestamp, until: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO destination (name, failures, resting_until) VALUES ($1, 1, $3) ON CONFLICT (name)
         DO UPDATE SET failures = destination.failures + 1, resting_until = excluded.resting_until
         WHERE destination.resting_until <= $2",
        &[destination.into(), now.into(), until.into()],
    )
    .await?;
    Ok(())
}

/// How often a destination could not be reached in a row.
pub async fn failures(tx: &mut SystemTx, destination: &str) -> Result<i64> {
    let found: Option<(i64,)> =
        tx.one("SELECT failures FROM destination WHERE name = $1", &[destination.into()]).await?;
    Ok(found.map_or(0, |(failures,)| failures))
}

/// Notes that a destination could be reached.
pub async fn reached(tx: &mut SystemTx, destination: &str) -> Result<()> {
    tx.run("DELETE FROM destination WHERE name = $1", &[destination.into()]).await?;
    Ok(())
}

/// Mails whose senders have to be told that they failed.
pub async fn due_reports(tx: &mut SystemTx, most: i64) -> Result<Vec<(WorkspaceId, String)>> {
    tx.all("SELECT workspace_id, id FROM outbound WHERE report = 'due' LIMIT $1", &[most.into()]).await
}

/// What waits for one destination.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The domain; empty for mailboxes of this server.
    pub destination: String,
    /// Recipients that wait.
    pub count: i64,
    /// The most attempts that one of them has had.
    pub attempts: i64,
    /// When the next of them is tried.
    pub next_attempt_at: Option<Timestamp>,
    /// Until when the destination is left alone.
    pub resting_until: Option<Timestamp>,
}

row!(Waiting { destination, count, attempts, next_attempt_at, resting_until });

/// What waits in the queue of all workspaces, the longest first.
pub async fn waiting(tx: &mut SystemTx, most: i64) -> Result<Vec<Waiting>> {
    tx.all(
        "SELECT delivery.destination, count(*), max(delivery.attempts), min(delivery.next_attempt_at),
           max(destination.resting_until)
         FROM delivery LEFT JOIN destination ON destination.name = delivery.destination
         WHERE delivery.state = 'queued' GROUP BY delivery.destination ORDER BY count(*) DESC, delivery.destination
         LIMIT $1",
        &[most.into()],
    )
    .await
}
