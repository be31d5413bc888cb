//! Pools that calls draw from (credits of a month, requests of a minute), shared exactly by all nodes.
//!
//! A node leases a block of a pool, spends it in memory, and settles what it spent in batches. At any moment
//! `spent + all leases ≤ limit` (what stands in the ledger is still part of its node's lease), so no order of events
//! can overdraw a pool. A lease lapses when its
//! node stops renewing it; writes check in their own transaction that their node still holds one.

use model::{Day, Timestamp};

use crate::{FromRow, Row, SystemTx, Tx, error::Result};

/// How long a lease holds without being renewed. Long enough for a slow commit, short enough that a pool is whole
/// again soon after a crash.
pub const LEASE_SECONDS: i64 = 3;

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

    /// How far ahead another node's period may lie and still be the same to us.
    const fn tolerated_seconds(self) -> i64 {
        match self {
            Self::Credits => 32 * 86_400,
            Self::Requests => 120,
        }
    }
}

/// What a node tells and asks about one pool.
#[derive(Clone, Debug)]
pub struct Adjustment {
    /// Which pool.
    pub kind: PoolKind,
    /// The period as the node sees it.
    pub period_start: Timestamp,
    /// The size of the pool; `None` when it only counts.
    pub limit: Option<i64>,
    /// Spent from the lease since the last adjustment.
    pub spent: i64,
    /// Given back unspent.
    pub returned: i64,
    /// How much is needed now; the grant may be larger, so that the next calls need not ask, and is zero when the
    /// pool cannot cover it.
    pub needed: i64,
}

/// The state of a pool after an adjustment.
#[derive(Clone, Debug, Default)]
pub struct Adjusted {
    /// Added to the node's lease.
    pub granted: i64,
    /// Spent in the period by all nodes: what is settled, and what other nodes have in the ledger.
    pub spent: i64,
    /// Moved from the ledger to what is spent, of what this node wrote there.
    pub folded: i64,
    /// Held by other nodes.
    pub held_by_others: i64,
    /// Whether the node's former lease had lapsed: what was left of it is gone.
    pub lost: bool,
}

/// Settles and renews one node's share of a pool.
pub async fn adjust(tx: &mut Tx, node: &str, sole_node: bool, ask: &Adjustment) -> Result<Adjusted> {
    let kind = ask.kind.as_str();
    // First of all, because it locks the pool: every node goes through here one after the other.
    let mut spent = settle(tx, ask, ask.spent).await?;
    let leases = live_leases(tx, kind, ask.period_start).await?;
    let folded = match ask.kind {
        PoolKind::Credits => fold_ledger(tx, node, ask.period_start).await?,
        PoolKind::Requests => Folded::default(),
    };
    if folded.own + folded.orphaned > 0 {
        spent = settle(tx, ask, folded.own + folded.orphaned).await?;
    }
    let Some(limit) = ask.limit else {
        return Ok(Adjusted { spent, folded: folded.own, ..Adjusted::default() });
    };
    let unfolded = if ask.kind == PoolKind::Credits && leases.iter().any(|lease| lease.node != node) {
        sum_ledger(tx, ask.period_start).await?
    } else {
        0
    };
    let own = leases.iter().find(|lease| lease.node == node).map(|lease| lease.amount);
    let held_by_others: i64 =
        leases.iter().filter(|lease| lease.node != node).map(|lease| lease.amount).sum();
    let kept = own.map_or(0, |amount| (amount - ask.spent - ask.returned - folded.own).max(0));
    let available = (limit - spent - held_by_others - kept).max(0);
    let granted = grant(available, ask.needed, sole_node);
    store_lease(tx, node, ask, kept + granted).await?;
    let spent = spent + unfolded;
    Ok(Adjusted { granted, spent, folded: folded.own, held_by_others, lost: own.is_none() })
}

async fn store_lease(tx: &mut Tx, node: &str, ask: &Adjustment, amount: i64) -> Result<()> {
    let sql = format!(
        "INSERT INTO allowance_lease (workspace_id, kind, node_id, period_start, amount, expires_at)
         VALUES ($1, $2, $3, $4, $5, {} + {})
         ON CONFLICT (workspace_id, kind, node_id) DO UPDATE
         SET period_start = excluded.period_start, amount = excluded.amount, expires_at = excluded.expires_at",
        tx.shared_clock(),
        LEASE_SECONDS * 1_000_000
    );
    let params = [ask.kind.as_str().into(), node.into(), ask.period_start.into(), amount.into()];
    tx.run(&sql, &params).await?;
    Ok(())
}

/// A node alone takes all there is. Among several, a block is a small share of what is left, so that none sits on
/// much that another needs.
fn grant(available: i64, needed: i64, sole_node: bool) -> i64 {
    if available < needed || needed == 0 {
        0
    } else if sole_node {
        available
    } else {
        needed.max((available / 16).min(2048))
    }
}

/// Adds to what is spent, starting a new period when one has begun, and tells the sum.
///
/// A node whose clock is a little behind still sees the former period: it joins the present one. A period that lies
/// further ahead than any clock should be comes from a clock that was set back, and would block the pool: it ends.
async fn settle(tx: &mut Tx, ask: &Adjustment, added: i64) -> Result<i64> {
    let sql = "INSERT INTO allowance (workspace_id, kind, period_start, spent) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, kind) DO UPDATE SET
         spent = CASE WHEN allowance.period_start BETWEEN excluded.period_start AND $5
                      THEN allowance.spent + excluded.spent ELSE excluded.spent END,
         period_start = CASE WHEN allowance.period_start BETWEEN excluded.period_start AND $5
                             THEN allowance.period_start ELSE excluded.period_start END
         RETURNING spent";
    let ahead = ask.period_start.plus_seconds(ask.kind.tolerated_seconds());
    let params = [ask.kind.as_str().into(), ask.period_start.into(), added.into(), ahead.into()];
    let found: Option<(i64,)> = tx.one(sql, &params).await?;
    Ok(found.map_or(0, |(spent,)| spent))
}

struct Lease {
    node: String,
    amount: i64,
}

impl FromRow for Lease {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { node: row.next()?, amount: row.next()? })
    }
}

/// The leases of a pool that hold; lapsed ones and those of a former period are removed.
///
/// The pool's own row is locked by now, so no two nodes do this at once.
async fn live_leases(tx: &mut Tx, kind: &str, period_start: Timestamp) -> Result<Vec<Lease>> {
    let clock = tx.shared_clock();
    let sql = format!(
        "DELETE FROM allowance_lease WHERE workspace_id = $1 AND kind = $2 AND (period_start < $3 OR expires_at < {clock})"
    );
    tx.run(&sql, &[kind.into(), period_start.into()]).await?;
    tx.all(
        "SELECT node_id, amount FROM allowance_lease WHERE workspace_id = $1 AND kind = $2",
        &[kind.into()],
    )
    .await
}

/// What was moved out of the ledger.
#[derive(Default)]
struct Folded {
    /// Spent from this node's lease.
    own: i64,
    /// Spent by nodes that hold no lease any more, or without a limit.
    orphaned: i64,
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

/// Moves the ledger into the daily figures and tells what of it belongs to the period.
///
/// What another node spent from a lease that holds is left to that node: until it settles, its lease stands for it.
async fn fold_ledger(tx: &mut Tx, node: &str, period_start: Timestamp) -> Result<Folded> {
    let sql = "DELETE FROM credit_ledger WHERE workspace_id = $1 AND (node_id = $2 OR node_id NOT IN
            (SELECT node_id FROM allowance_lease WHERE workspace_id = $1 AND kind = 'credits'))
        RETURNING node_id, period_start, day, class, amount";
    let entries: Vec<Entry> = tx.all(sql, &[node.into()]).await?;
    let mut days: std::collections::BTreeMap<(Day, &str), i64> = std::collections::BTreeMap::new();
    let mut folded = Folded::default();
    for entry in &entries {
        *days.entry((entry.day, entry.class.as_str())).or_default() += entry.amount;
        if entry.period_start == period_start {
            let sum = if entry.node == node { &mut folded.own } else { &mut folded.orphaned };
            *sum += entry.amount;
        }
    }
    for ((day, class), amount) in days {
        add_usage(tx, day, &format!("credits.{class}"), amount).await?;
    }
    Ok(folded)
}

/// What stands in the ledger for a period.
async fn sum_ledger(tx: &mut Tx, period_start: Timestamp) -> Result<i64> {
    let sql = "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM credit_ledger
        WHERE workspace_id = $1 AND period_start = $2";
    let found = tx.one(sql, &[period_start.into()]).await?;
    Ok(found.map_or(0, |(sum,)| sum))
}

/// Adds to a figure of a day.
pub async fn add_usage(tx: &mut Tx, day: Day, metric: &str, amount: i64) -> Result<()> {
    tx.add_at_end(
        "INSERT INTO usage_day (workspace_id, day, metric, amount) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, day, metric) DO UPDATE SET amount = usage_day.amount + excluded.amount",
        &[day.number().into(), metric.into()],
        &[amount],
    )
    .await
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
    /// The node whose lease it comes from; `None` when the pool has no limit.
    pub lease_of: Option<String>,
}

/// Adds a charge. False when the node's lease has lapsed, so that nothing may be spent from it.
pub async fn insert_ledger(tx: &mut Tx, entry: &LedgerEntry) -> Result<bool> {
    let (period_start, day) = (entry.period_start, entry.day.number());
    let columns = "INSERT INTO credit_ledger (workspace_id, id, period_start, day, class, amount, node_id)";
    let node = entry.lease_of.as_deref().unwrap_or_default();
    let params = [
        (&entry.id).into(),
        period_start.into(),
        day.into(),
        entry.class.into(),
        entry.amount.into(),
        node.into(),
    ];
    let added = if entry.lease_of.is_some() {
        let sql = format!(
            "{columns} SELECT $1, $2, CAST($3 AS BIGINT), CAST($4 AS BIGINT), $5, CAST($6 AS BIGINT), $7
             FROM allowance_lease
             WHERE workspace_id = $1 AND kind = 'credits' AND node_id = $7 AND period_start = $3{}",
            tx.for_key_share()
        );
        tx.run(&sql, &params).await?
    } else {
        tx.run(&format!("{columns} VALUES ($1, $2, $3, $4, $5, $6, $7)"), &params).await?
    };
    Ok(added == 1)
}

/// Forgets all leases. Only for a store that one process serves, at its start: what a crashed run had leased and not
/// spent is available again at once.
pub async fn forget_leases(tx: &mut SystemTx) -> Result<()> {
    tx.run("DELETE FROM allowance_lease", &[]).await?;
    Ok(())
}
