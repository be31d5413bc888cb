//! Counters that the messages of a workspace share and that no lock of theirs protects: sent messages by mailbox and
//! month, and by day.
//!
//! On PostgreSQL a message only inserts what it adds, so that it waits for no other, and a worker adds that to the
//! counters: one transaction deletes what it adds, so each addition counts once whatever happens. Until then readers
//! add it themselves. SQLite has one writer, which adds directly.

use std::collections::BTreeMap;

use model::{Day, MailboxId, WorkspaceId};

use crate::{SystemTx, Tx, error::Result, mailboxes, metering, sql::row};

/// Additions that are folded in one transaction.
const MAX_FOLDED: i64 = 5000;
/// Workspaces that are looked up at once.
const MAX_WORKSPACES: i64 = 100;

/// The name of the figure of sent messages of a day.
const MAILS_OUT: &str = "mails_out";

/// The name of a mailbox's counter of the messages it sent in a month.
pub fn sent_in(month: &str) -> String {
    format!("sent.{month}")
}

/// A sent message to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent<'a> {
    /// The mailbox that sent it.
    pub mailbox: &'a MailboxId,
    /// When.
    pub day: Day,
    /// The month, as in the counter's name.
    pub month: &'a str,
}

/// Counts sent messages. The transaction that reads the counter for a limit sees all that were counted before.
pub async fn count_sent(tx: &mut Tx, messages: &[Sent<'_>]) -> Result<()> {
    if !tx.is_postgres() {
        for sent in messages {
            mailboxes::add_now(tx, sent.mailbox, &sent_in(sent.month), 1).await?;
            metering::add_usage_now(tx, sent.day, MAILS_OUT, 1).await?;
        }
        return Ok(());
    }
    let mut sums = Sums::default();
    for sent in messages {
        let mailbox = sent.mailbox.as_str().to_owned();
        *sums.0.entry((mailbox, sent_in(sent.month), 0)).or_default() += 1;
        *sums.0.entry((String::new(), MAILS_OUT.to_owned(), sent.day.number())).or_default() += 1;
    }
    let sums = sums.0.iter();
    let rows = sums.map(|((mailbox, name, day), amount)| {
        vec![name.into(), mailbox.into(), (*day).into(), (*amount).into()]
    });
    let sql = "INSERT INTO counter_addition (workspace_id, name, mailbox_id, day, amount) VALUES ($1, $2, $3, $4, $5)";
    tx.pipeline_rows(sql, rows.collect()).await
}

/// An addition that is not in its counter yet.
struct Addition {
    name: String,
    mailbox: String,
    day: i64,
    amount: i64,
}

row!(Addition { name, mailbox, day, amount });

/// What additions amount to, in the order in which their counters are locked.
#[derive(Default)]
struct Sums(BTreeMap<(String, String, i64), i64>);

impl Sums {
    fn of(additions: Vec<Addition>) -> Self {
        let mut sums = Self::default();
        for Addition { name, mailbox, day, amount } in additions {
            *sums.0.entry((mailbox, name, day)).or_default() += amount;
        }
        sums
    }
}

/// Adds what was inserted to the counters, of some workspaces after the given one. Returns how many additions that
/// were, and the last workspace if there may be more.
///
/// Counters are locked in the order of a send by a node of an earlier version: those of mailboxes, then those of days.
pub async fn fold(tx: &mut SystemTx, after: &str) -> Result<(usize, Option<WorkspaceId>)> {
    let workspaces: Vec<(WorkspaceId,)> = tx
        .all(
            "WITH RECURSIVE present (id) AS (
               SELECT (SELECT workspace_id FROM counter_addition WHERE workspace_id > $1 ORDER BY workspace_id LIMIT 1)
               UNION ALL SELECT (SELECT workspace_id FROM counter_addition WHERE workspace_id > present.id
                 ORDER BY workspace_id LIMIT 1) FROM present WHERE present.id IS NOT NULL)
             SELECT id FROM present WHERE id IS NOT NULL LIMIT $2",
            &[after.into(), MAX_WORKSPACES.into()],
        )
        .await?;
    let mut folded = 0;
    for (workspace,) in &workspaces {
        let lock = tx.skip_locked();
        folded += fold_workspace(tx.enter(workspace), lock).await?;
    }
    let is_full = i64::try_from(workspaces.len()).is_ok_and(|found| found >= MAX_WORKSPACES);
    Ok((folded, workspaces.into_iter().next_back().map(|(last,)| last).filter(|_| is_full)))
}

async fn fold_workspace(tx: &mut Tx, lock: &str) -> Result<usize> {
    let sql = format!(
        "WITH chosen AS (SELECT name, mailbox_id, day, id FROM counter_addition WHERE workspace_id = $1
           ORDER BY name, mailbox_id, day, id LIMIT $2{lock})
         DELETE FROM counter_addition WHERE workspace_id = $1
           AND (name, mailbox_id, day, id) IN (SELECT name, mailbox_id, day, id FROM chosen)
         RETURNING name, mailbox_id, day, amount"
    );
    let additions: Vec<Addition> = tx.all(&sql, &[MAX_FOLDED.into()]).await?;
    let (count, sums) = (additions.len(), Sums::of(additions));
    for ((mailbox, name, _), amount) in sums.0.iter().filter(|((mailbox, ..), _)| !mailbox.is_empty()) {
        let mailbox = MailboxId::from(mailbox.as_str());
        // A deleted mailbox has no counters.
        if mailboxes::keep(tx, &mailbox).await? {
            mailboxes::add_now(tx, &mailbox, name, *amount).await?;
        }
    }
    for ((_, name, day), amount) in sums.0.iter().filter(|((mailbox, ..), _)| mailbox.is_empty()) {
        metering::add_usage_now(tx, Day::from_number(*day), name, *amount).await?;
    }
    Ok(count)
}

/// Whether anything is left to be added.
pub async fn has_additions(tx: &mut SystemTx) -> Result<bool> {
    let found: Option<(i64,)> = tx.one("SELECT amount FROM counter_addition LIMIT 1", &[]).await?;
    Ok(found.is_some())
}
