//! Pools that calls are charged to (credits per month, requests per minute), shared exactly by all nodes.
//!
//! A node charges a small advance to the pool before it spends it in memory, so everything spent is charged: no order
//! of events, no crash and no clock can overdraw a pool or make a call free. `spent` of a pool includes all advances;
//! a node returns what it does not use. Writes record their price in the ledger, in the transaction of their effect,
//! as the proof that they came from the advance.

use std::collections::BTreeMap;

use model::{CreditClass, Day, Timestamp};

use crate::{FromRow, Param, Row, SystemTx, Tx, error::Result, sql::row};

/// How long a node counts as alive after it last adjusted its advance. Nothing is taken from it afterwards; other
/// nodes only stop asking it to return what it does not use.
pub const ALIVE_SECONDS: i64 = 3;

/// A kind of pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Credits of a calendar month.
    Credits,
    /// Requests of a minute.
    Requests,
}

impl PoolKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Credits => "credits",
            Self::Requests => "requests",
        }
    }

    /// How far ahead another node's period may be and still count as ours.
    const fn tolerated_seconds(self) -> i64 {
        match self {
            Self::Credits => 32 * 86_400,
            Self::Requests => 120,
        }
    }

    /// The period that a time lies in.
    pub fn period_of(self, time: Timestamp) -> Timestamp {
        match self {
            Self::Credits => time.month_start(),
            Self::Requests => time.minute(),
        }
    }

    /// Whether a call in `period` counts in `present`, a period slightly ahead of it: another node's clock is ahead
    /// of ours, or ours was set back. A period further ahead would block the pool, and is ended.
    pub fn joins(self, period: Timestamp, present: Timestamp) -> bool {
        period <= present && present <= period.plus_seconds(self.tolerated_seconds())
    }
}

/// What a node has spent and wants charged. The figures count from its first advance in the period.
#[derive(Clone, Debug)]
pub struct Adjustment {
    /// Which pool.
    pub kind: PoolKind,
    /// The period of the figures.
    pub period_start: Timestamp,
    /// The node's clock. The figures can be of a period that ended long ago: the node was stopped, or could not reach
    /// the store.
    pub now: Timestamp,
    /// The size of the pool; `None` when usage is only counted.
    pub limit: Option<i64>,
    /// Spent by reads.
    pub reads: i64,
    /// Spent by writes whose commits the node knows of.
    pub writes: i64,
    /// Reserved for calls in flight.
    pub reserved: i64,
    /// What the next call needs: all or nothing.
    pub needed: i64,
    /// What to charge ahead beyond that, so that the next calls need no adjustment.
    pub ahead: i64,
    /// Whether the node is done with the pool for now: the advance ends. Only without calls in flight.
    pub close: bool,
}

impl Adjustment {
    fn taken(&self) -> i64 {
        self.reads + self.writes + self.reserved
    }
}

/// The state of a pool after an adjustment.
#[derive(Clone, Debug)]
pub struct PoolState {
    /// The period that the pool is in.
    pub period_start: Timestamp,
    /// Charged for this node.
    pub granted: i64,
    /// Spent by writes of this node whose ledger entries were folded.
    pub writes: i64,
    /// Spent in the period by others: charged, less what live nodes have not spent of it.
    pub spent_by_others: i64,
    /// Charged by other live nodes and not spent, as far as they have reported.
    pub unspent_by_others: i64,
    /// Whether the pool had too little left for what was needed.
    pub short: bool,
}

/// Updates one node's advance: what it spent, what it needs, what it returns.
pub async fn adjust(tx: &mut Tx, node: &str, ask: &Adjustment) -> Result<PoolState> {
    // First, because it locks the pool and so serialises all nodes.
    let pool = lock_pool(tx, ask).await?;
    let mut advances = advances(tx, ask.kind, &pool).await?;
    let unfolded = match ask.kind {
        PoolKind::Credits => fold_ledger(tx, node, &pool, &mut advances).await?,
        PoolKind::Requests => 0,
    };
    let own = advances.remove(node).unwrap_or_else(|| Advance {
        // What was spent before the advance ended was charged exactly.
        granted: ask.reads + ask.writes,
        writes: ask.writes,
        ..Advance::default()
    });
    // Writes whose commit the node does not know of.
    let unknown = (own.writes - ask.writes - ask.reserved).max(0);
    let taken = ask.taken() + unknown;
    let (granted, short) = match ask.limit {
        None => (ask.reads + own.writes, false),
        Some(limit) => grant(own.granted + limit - pool.spent, taken, ask),
    };
    let spent = pool.spent + granted - own.granted + overdue(&advances);
    if spent != pool.spent {
        let sql = "UPDATE allowance SET spent = $3 WHERE workspace_id = $1 AND kind = $2";
        tx.pipeline(sql, &[ask.kind.as_str().into(), spent.into()]).await?;
    }
    let own = Advance { granted, reads: ask.reads, ..own };
    if ask.close {
        delete_advance(tx, ask.kind, node).await?;
    } else {
        store_advance(tx, ask.kind, node, pool.period_start, &own).await?;
    }
    let unspent: i64 = advances.values().filter(|other| other.live).map(Advance::unspent).sum();
    // Without a limit, ledger entries were not charged ahead.
    let spent_by_others = spent - granted - unspent + unfolded;
    Ok(PoolState {
        period_start: pool.period_start,
        granted,
        writes: own.writes,
        spent_by_others,
        unspent_by_others: (unspent - unfolded).max(0),
        short,
    })
}

/// How much a node may have charged when the pool has room for `most` in all, and whether that is too little.
fn grant(most: i64, taken: i64, ask: &Adjustment) -> (i64, bool) {
    let needed = taken + ask.needed;
    if ask.needed > 0 && most < needed {
        return (taken, true);
    }
    (needed.max(most.min(needed + ask.ahead)), false)
}

/// What lost nodes spent without an advance, where the pool had no limit.
fn overdue(advances: &BTreeMap<String, Advance>) -> i64 {
    advances.values().map(|advance| advance.overdue).sum()
}

/// A pool's row, locked.
struct Pool {
    period_start: Timestamp,
    spent: i64,
}

row!(Pool { period_start, spent });

/// Locks the pool, and starts a new period when its time has come.
///
/// A node whose clock is slightly behind, or that reports late, still has figures of an earlier period: it joins the
/// present one, which charges nothing for them again. A period further ahead of the node's clock than the tolerance
/// comes from a clock that was set back, and would block the pool: it is ended.
async fn lock_pool(tx: &mut Tx, ask: &Adjustment) -> Result<Pool> {
    let Adjustment { kind, period_start, now, .. } = *ask;
    let sql = "INSERT INTO allowance (workspace_id, kind, period_start, spent) VALUES ($1, $2, $3, 0)
         ON CONFLICT (workspace_id, kind) DO UPDATE SET
         spent = CASE WHEN allowance.period_start BETWEEN excluded.period_start AND $4
                      THEN allowance.spent ELSE 0 END,
         period_start = CASE WHEN allowance.period_start BETWEEN excluded.period_start AND $4
                             THEN allowance.period_start ELSE excluded.period_start END
         RETURNING period_start, spent";
    let latest = period_start.max(kind.period_of(now)).plus_seconds(kind.tolerated_seconds());
    let found = tx.one(sql, &[kind.as_str().into(), period_start.into(), latest.into()]).await?;
    Ok(found.unwrap_or(Pool { period_start, spent: 0 }))
}

/// What one node has charged to a pool.
#[derive(Default)]
struct Advance {
    granted: i64,
    reads: i64,
    writes: i64,
    live: bool,
    /// Spent beyond what was charged; only known of lost nodes.
    overdue: i64,
}

impl Advance {
    fn unspent(&self) -> i64 {
        (self.granted - self.reads - self.writes).max(0)
    }
}

struct NodeAdvance {
    node: String,
    period_start: Timestamp,
    advance: Advance,
}

impl FromRow for NodeAdvance {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (node, period_start) = (row.next()?, row.next()?);
        let (granted, reads, writes) = (row.next()?, row.next()?, row.next()?);
        let live = row.next::<i64>()? == 1;
        Ok(Self { node, period_start, advance: Advance { granted, reads, writes, live, overdue: 0 } })
    }
}

/// The advances on a pool by node; those of another period are deleted.
///
/// The pool's row is locked by now, so no two nodes do this at once.
async fn advances(tx: &mut Tx, kind: PoolKind, pool: &Pool) -> Result<BTreeMap<String, Advance>> {
    let clock = tx.shared_clock();
    let kind = kind.as_str();
    let sql = format!(
        "SELECT node_id, period_start, granted, reads, writes, CASE WHEN expires_at >= {clock} THEN 1 ELSE 0 END
         FROM allowance_advance WHERE workspace_id = $1 AND kind = $2"
    );
    let found: Vec<NodeAdvance> = tx.all(&sql, &[kind.into()]).await?;
    let (present, past): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| found.period_start == pool.period_start);
    if !past.is_empty() {
        let sql =
            "DELETE FROM allowance_advance WHERE workspace_id = $1 AND kind = $2 AND period_start <> $3";
        tx.pipeline(sql, &[kind.into(), pool.period_start.into()]).await?;
    }
    Ok(present.into_iter().map(|found| (found.node, found.advance)).collect())
}

async fn store_advance(
    tx: &mut Tx,
    kind: PoolKind,
    node: &str,
    period_start: Timestamp,
    advance: &Advance,
) -> Result<()> {
    let sql = format!(
        "INSERT INTO allowance_advance
            (workspace_id, kind, node_id, period_start, granted, reads, writes, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, {} + {})
         ON CONFLICT (workspace_id, kind, node_id) DO UPDATE
         SET period_start = excluded.period_start, granted = excluded.granted, reads = excluded.reads,
             writes = excluded.writes, expires_at = excluded.expires_at",
        tx.shared_clock(),
        ALIVE_SECONDS * 1_000_000
    );
    let params = [
        kind.as_str().into(),
        node.into(),
        period_start.into(),
        advance.granted.into(),
        advance.reads.into(),
        advance.writes.into(),
    ];
    tx.pipeline(&sql, &params).await
}

async fn delete_advance(tx: &mut Tx, kind: PoolKind, node: &str) -> Result<()> {
    let sql = "DELETE FROM allowance_advance WHERE workspace_id = $1 AND kind = $2 AND node_id = $3";
    tx.pipeline(sql, &[kind.as_str().into(), node.into()]).await
}

/// Whether a node has an advance on any pool of the workspace.
pub async fn has_advance(tx: &mut Tx, node: &str) -> Result<bool> {
    let sql = "SELECT granted FROM allowance_advance WHERE workspace_id = $1 AND node_id = $2 LIMIT 1";
    Ok(tx.one::<(i64,)>(sql, &[node.into()]).await?.is_some())
}

struct Entry {
    node: String,
    period_start: Timestamp,
    day: Day,
    class: String,
    amount: i64,
}

impl FromRow for Entry {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            node: row.next()?,
            period_start: row.next()?,
            day: Day::from_number(row.next()?),
            class: row.next()?,
            amount: row.next()?,
        })
    }
}

/// Folds the ledger into the daily figures and the advances it came from, and gives what live nodes still have in it:
/// those fold their own entries.
async fn fold_ledger(
    tx: &mut Tx,
    node: &str,
    pool: &Pool,
    advances: &mut BTreeMap<String, Advance>,
) -> Result<i64> {
    let has_live_others = advances.iter().any(|(other, advance)| other != node && advance.live);
    let clock = tx.shared_clock();
    let sql = format!(
        "DELETE FROM credit_ledger WHERE workspace_id = $1 AND (node_id = $2 OR node_id NOT IN
            (SELECT node_id FROM allowance_advance
             WHERE workspace_id = $1 AND kind = 'credits' AND expires_at >= {clock}))
         RETURNING node_id, period_start, day, class, amount"
    );
    let entries: Vec<Entry> = tx.all(&sql, &[node.into()]).await?;
    let mut days: BTreeMap<(Day, &str), i64> = BTreeMap::new();
    for entry in &entries {
        *days.entry((entry.day, entry.class.as_str())).or_default() += entry.amount;
        if entry.period_start == pool.period_start
            && let Some(advance) = advances.get_mut(&entry.node)
        {
            advance.writes += entry.amount;
        }
    }
    for ((day, class), amount) in days {
        add_usage(tx, day, &format!("credits.{class}"), amount).await?;
    }
    for (other, advance) in advances.iter_mut().filter(|(other, advance)| *other != node && !advance.live) {
        if entries.iter().any(|entry| entry.node == *other) {
            advance.overdue = (advance.reads + advance.writes - advance.granted).max(0);
            advance.granted += advance.overdue;
            update_lost(tx, other, advance).await?;
        }
    }
    if has_live_others { sum_ledger_of_others(tx, node, pool.period_start).await } else { Ok(0) }
}

/// Records the state of a lost node's advance, in case the node returns.
async fn update_lost(tx: &mut Tx, node: &str, advance: &Advance) -> Result<()> {
    let sql = "UPDATE allowance_advance SET granted = $3, writes = $4
         WHERE workspace_id = $1 AND kind = 'credits' AND node_id = $2";
    tx.run(sql, &[node.into(), advance.granted.into(), advance.writes.into()]).await?;
    Ok(())
}

/// What other nodes have in the ledger for a period. The node's own entries were folded, and those that were committed
/// since are none of what the others still have.
async fn sum_ledger_of_others(tx: &mut Tx, node: &str, period_start: Timestamp) -> Result<i64> {
    let sql = "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM credit_ledger
        WHERE workspace_id = $1 AND period_start = $2 AND node_id <> $3";
    let found = tx.one(sql, &[period_start.into(), node.into()]).await?;
    Ok(found.map_or(0, |(sum,)| sum))
}

/// Ends the advance of a lost node, which had spent this much by reads: the unused rest returns to the pool.
///
/// Does nothing when the advance was deleted, or is of another period.
pub async fn recover(
    tx: &mut Tx,
    node: &str,
    kind: PoolKind,
    period_start: Timestamp,
    reads: i64,
    day: Day,
) -> Result<()> {
    let sql = "SELECT period_start, reads FROM allowance_advance
         WHERE workspace_id = $1 AND kind = $2 AND node_id = $3";
    let found: Option<(Timestamp, i64)> = tx.one(sql, &[kind.as_str().into(), node.into()]).await?;
    let Some((present, reported)) = found else { return Ok(()) };
    // A figure below the reported one is older: the node's log was not the last one written.
    if present != period_start || reads < reported {
        return Ok(());
    }
    let sql = format!(
        "SELECT period_start, spent FROM allowance WHERE workspace_id = $1 AND kind = $2{}",
        tx.for_update()
    );
    let pool: Option<Pool> = tx.one(&sql, &[kind.as_str().into()]).await?;
    let Some(pool) = pool.filter(|pool| pool.period_start == period_start) else { return Ok(()) };
    let mut advances = advances(tx, kind, &pool).await?;
    if kind == PoolKind::Credits {
        fold_ledger(tx, node, &pool, &mut advances).await?;
        // Their classes were lost with the node; nearly everything charged without a ledger entry is a read.
        add_usage(tx, day, "credits.read", reads - reported).await?;
    }
    let Some(own) = advances.get(node) else { return Ok(()) };
    let spent = pool.spent - own.granted + reads + own.writes + overdue(&advances);
    let sql = "UPDATE allowance SET spent = $3 WHERE workspace_id = $1 AND kind = $2";
    tx.run(sql, &[kind.as_str().into(), spent.into()]).await?;
    delete_advance(tx, kind, node).await
}

/// Takes back what was charged for a call that had no effect in the end. What was charged in an earlier period stays there:
/// that pool is gone.
pub async fn refund(
    tx: &mut Tx,
    class: CreditClass,
    credits: i64,
    charged_at: Option<Timestamp>,
) -> Result<()> {
    let Some(at) = charged_at.filter(|_| credits > 0) else { return Ok(()) };
    let (kind, period) = (PoolKind::Credits.as_str(), PoolKind::Credits.period_of(at));
    // The pool comes before the figures of the day, as where a node settles with it.
    let lock = tx.for_update();
    let sql = format!(
        "SELECT period_start, spent FROM allowance WHERE workspace_id = $1 AND kind = $2 AND period_start = $3{lock}"
    );
    let pool = tx.one::<Pool>(&sql, &[kind.into(), period.into()]).await?;
    add_usage(tx, at.day(), &format!("credits.{}", class.as_str()), -credits).await?;
    let Some(pool) = pool else { return Ok(()) };
    let taken = pool.spent.min(credits);
    let sql = "UPDATE allowance SET spent = $3 WHERE workspace_id = $1 AND kind = $2";
    tx.run(sql, &[kind.into(), (pool.spent - taken).into()]).await?;
    if taken < credits {
        // Without a limit a write counts when its ledger entry is folded: so much less is added then.
        let sql = "UPDATE allowance_advance SET granted = granted + $4 WHERE workspace_id = $1 AND kind = $2
             AND period_start = $3 AND node_id = (SELECT min(node_id) FROM allowance_advance
               WHERE workspace_id = $1 AND kind = $2 AND period_start = $3)";
        tx.run(sql, &[kind.into(), period.into(), (credits - taken).into()]).await?;
    }
    Ok(())
}

const ADD_USAGE: &str = "INSERT INTO usage_day (workspace_id, day, metric, amount) VALUES ($1, $2, $3, $4)
     ON CONFLICT (workspace_id, day, metric) DO UPDATE SET amount = usage_day.amount + excluded.amount";

/// Adds to a figure of a day.
pub async fn add_usage(tx: &mut Tx, day: Day, metric: &str, amount: i64) -> Result<()> {
    tx.add_at_commit(ADD_USAGE, &[day.number().into(), metric.into()], &[amount]).await
}

/// The same, visible to the next statement.
pub(crate) async fn add_usage_now(tx: &mut Tx, day: Day, metric: &str, amount: i64) -> Result<()> {
    tx.pipeline(ADD_USAGE, &[day.number().into(), metric.into(), amount.into()]).await
}

/// The charge of a write, to be stored with its effect.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    /// A time-ordered id.
    pub id: String,
    /// The period it counts in.
    pub period_start: Timestamp,
    /// The day it counts in.
    pub day: Day,
    /// The credit class.
    pub class: &'static str,
    /// The credits.
    pub amount: i64,
    /// The node whose advance it comes from.
    pub node: String,
}

impl LedgerEntry {
    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.id).into(),
            self.period_start.into(),
            self.day.number().into(),
            self.class.into(),
            self.amount.into(),
            (&self.node).into(),
        ]
    }
}

/// Adds charges, covered by their node's advance.
pub async fn insert_ledger(tx: &mut Tx, entries: &[&LedgerEntry]) -> Result<()> {
    let sql = "INSERT INTO credit_ledger (workspace_id, id, period_start, day, class, amount, node_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    tx.pipeline_rows(sql, entries.iter().map(|entry| entry.params()).collect()).await
}

/// Deletes the advances of nodes that did not return. Only for a store with a single process, at its start; what they
/// had charged stays charged.
pub async fn forget_advances(tx: &mut SystemTx) -> Result<()> {
    tx.run("DELETE FROM allowance_advance", &[]).await?;
    Ok(())
}
