//! One workspace's share of its pools on this node, in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use model::{CreditClass, Day, Timestamp, WorkspaceId};
use store::metering::{Adjusted, Adjustment, LedgerEntry, PoolKind};
use tokio::time::Instant;

/// Which pool, which period, how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) kind: PoolKind,
    pub(super) period_start: Timestamp,
    pub(super) limit: Option<i64>,
}

pub(super) enum Attempt {
    /// Taken from the lease of this generation.
    Taken(u64),
    /// The pool is known to be empty for the rest of its period.
    Refused,
    /// The store must be asked.
    MustAsk,
}

pub(super) struct Account {
    pub(super) workspace: WorkspaceId,
    /// Held while the store is asked, so that only one call does it.
    pub(super) asking: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    credits: Pool,
    requests: Pool,
    usage: BTreeMap<(Day, &'static str), i64>,
    dirty: bool,
    last_call: Instant,
}

/// What this node holds of one pool.
#[derive(Default)]
struct Pool {
    terms: Option<Terms>,
    /// Leased and not spent.
    free: i64,
    /// Taken out of the lease, and still to be given back to the store.
    returning: i64,
    /// Set aside for calls in flight.
    reserved: i64,
    /// Spent and not settled.
    spent: i64,
    /// In the ledger and not settled. Below zero for the moment in which the store has settled an entry whose call
    /// has not come back yet.
    ledgered: i64,
    /// Settled by all nodes, as the store last said.
    settled: i64,
    /// Whether the store has said anything yet about this period.
    known: bool,
    /// When the lease lapses; `None` when it does not.
    expiry: Option<Instant>,
    /// Counts leases, so that what was taken from a lost one is not put back into its successor.
    generation: u64,
    /// What was refused, as long as asking again cannot give another answer.
    refused: Option<Refusal>,
}

/// A pool was asked for an amount and had not that much left.
#[derive(Clone, Copy)]
struct Refusal {
    amount: i64,
    until: Option<Instant>,
}

/// How long a refusal of credits is believed. They can come back when a call fails, so not for long; but calls that
/// hammer at an empty pool must not all go to the store.
const REFUSED_FOR: Duration = Duration::from_millis(50);

impl Pool {
    fn adopt(&mut self, terms: &Terms) {
        let same_period = self.terms.is_some_and(|present| present.period_start == terms.period_start);
        if !same_period {
            *self = Self { generation: self.generation + 1, ..Self::default() };
        }
        if self.terms != Some(*terms) {
            // The plan has changed: a larger pool may have room again, a smaller one must not be spent from a lease
            // of the larger.
            self.refused = None;
            self.terms = Some(*terms);
            self.surrender();
        }
    }

    /// Puts what is left of the lease on its way back.
    fn surrender(&mut self) {
        self.returning += std::mem::take(&mut self.free);
    }

    /// What to lease before it is missed, so that a busy workspace's calls do not wait for it: four times what was
    /// spent since the last settlement.
    fn ahead(&self, give_back: bool) -> i64 {
        if give_back || self.is_refused(1) { 0 } else { (4 * self.spent - self.free).max(0) }
    }

    fn is_refused(&self, amount: i64) -> bool {
        self.refused.is_some_and(|refusal| {
            amount >= refusal.amount && refusal.until.is_none_or(|until| Instant::now() < until)
        })
    }

    fn is_lapsed(&self) -> bool {
        self.expiry.is_some_and(|expiry| Instant::now() >= expiry)
    }

    fn used(&self) -> i64 {
        self.settled + self.spent + self.ledgered + self.reserved
    }
}

impl State {
    fn pool(&mut self, kind: PoolKind) -> &mut Pool {
        match kind {
            PoolKind::Credits => &mut self.credits,
            PoolKind::Requests => &mut self.requests,
        }
    }
}

/// What the store said about a pool.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    /// How much of it other nodes hold.
    pub(super) held_by_others: i64,
    /// Whether it had not enough left. Otherwise what was granted may be gone again, to another call that was quicker.
    pub(super) short: bool,
}

/// What is about to be settled.
#[derive(Clone)]
pub(super) struct Settlement {
    pub(super) adjustments: Vec<Adjustment>,
    pub(super) usage: BTreeMap<(Day, &'static str), i64>,
}

impl Settlement {
    pub(super) fn is_empty(&self) -> bool {
        self.adjustments.is_empty() && self.usage.is_empty()
    }
}

impl Account {
    pub(super) fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            asking: tokio::sync::Mutex::new(()),
            state: Mutex::new(State {
                credits: Pool::default(),
                requests: Pool::default(),
                usage: BTreeMap::new(),
                dirty: false,
                last_call: Instant::now(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }

    pub(super) fn attempt(&self, terms: Terms, amount: i64) -> Attempt {
        let mut state = self.state();
        state.last_call = Instant::now();
        let pool = state.pool(terms.kind);
        pool.adopt(&terms);
        if pool.is_refused(amount) {
            return Attempt::Refused;
        }
        if terms.limit.is_some() && (pool.free < amount || pool.is_lapsed()) {
            return Attempt::MustAsk;
        }
        if terms.limit.is_some() {
            pool.free -= amount;
        } else if !pool.known {
            return Attempt::MustAsk;
        }
        pool.reserved += amount;
        Attempt::Taken(pool.generation)
    }

    /// Notes that a pool has not enough left. A window of requests then stays shut to its end.
    pub(super) fn refuse(&self, kind: PoolKind, amount: i64) {
        let until = (kind == PoolKind::Credits).then(|| Instant::now() + REFUSED_FOR);
        self.state().pool(kind).refused = Some(Refusal { amount, until });
    }

    pub(super) fn adopt(&self, terms: &Terms) {
        self.state().pool(terms.kind).adopt(terms);
    }

    pub(super) fn knows(&self, terms: &Terms) -> bool {
        let mut state = self.state();
        let pool = state.pool(terms.kind);
        pool.known && pool.terms.is_some_and(|present| present.period_start == terms.period_start)
    }

    pub(super) fn used(&self, kind: PoolKind, period_start: Timestamp) -> i64 {
        let mut state = self.state();
        let pool = state.pool(kind);
        if pool.terms.is_some_and(|terms| terms.period_start == period_start) { pool.used() } else { 0 }
    }

    pub(super) fn count_usage(&self, day: Day, metric: &'static str, amount: i64) {
        *self.state().usage.entry((day, metric)).or_default() += amount;
    }

    pub(super) fn become_dirty(&self) -> bool {
        !std::mem::replace(&mut self.state().dirty, true)
    }

    pub(super) fn become_clean(&self) {
        self.state().dirty = false;
    }

    pub(super) fn idle_for(&self) -> Duration {
        self.state().last_call.elapsed()
    }

    pub(super) fn is_in_use(&self) -> bool {
        let state = self.state();
        let pools = [&state.credits, &state.requests];
        pools.iter().any(|pool| pool.reserved + pool.spent + pool.ledgered > 0) || !state.usage.is_empty()
    }

    pub(super) fn has_more_to_do(&self, sole_node: bool) -> bool {
        let state = self.state();
        let pools = [&state.credits, &state.requests];
        !sole_node && pools.iter().any(|pool| pool.free > 0 && !pool.is_lapsed())
    }

    /// What to settle now. Credits come first, so that all nodes lock the pools in one order.
    pub(super) fn plan_settlement(&self, need: Option<(Terms, i64)>, give_back: bool) -> Settlement {
        let mut state = self.state();
        let mut adjustments = Vec::new();
        for kind in [PoolKind::Credits, PoolKind::Requests] {
            let pool = state.pool(kind);
            let wanted = need.filter(|(terms, _)| terms.kind == kind).map(|(_, amount)| amount);
            let Some(terms) = pool.terms else { continue };
            if give_back || pool.is_lapsed() {
                pool.surrender();
            }
            if wanted.is_none() && pool.spent == 0 && pool.ledgered == 0 && pool.returning == 0 {
                continue;
            }
            adjustments.push(Adjustment {
                kind,
                period_start: terms.period_start,
                limit: terms.limit,
                spent: pool.spent,
                returned: pool.returning,
                needed: wanted.map_or_else(|| pool.ahead(give_back), |amount| (amount - pool.free).max(0)),
            });
        }
        let usage = std::mem::take(&mut state.usage);
        Settlement { adjustments, usage }
    }

    /// Takes over what the store answered, and tells what it said about the asked-for pool.
    pub(super) fn apply(
        &self,
        plan: &Settlement,
        adjusted: &[Adjusted],
        expiry: Option<Instant>,
        asked: Option<PoolKind>,
    ) -> Told {
        let mut state = self.state();
        let mut told = Told::default();
        for (ask, answer) in plan.adjustments.iter().zip(adjusted) {
            if asked == Some(ask.kind) {
                told = Told {
                    held_by_others: answer.held_by_others,
                    short: ask.needed > 0 && answer.granted == 0,
                };
            }
            let pool = state.pool(ask.kind);
            if pool.terms.is_none_or(|terms| terms.period_start != ask.period_start) {
                continue;
            }
            pool.spent -= ask.spent;
            // Without a limit there are no leases, and whichever node settles first folds the entries of all.
            pool.ledgered = if ask.limit.is_some() { pool.ledgered - answer.folded } else { 0 };
            pool.returning -= ask.returned;
            pool.settled = answer.spent;
            pool.known = true;
            pool.expiry = expiry;
            if answer.lost {
                pool.free = 0;
                pool.ledgered = 0;
                pool.generation += 1;
            }
            pool.free += answer.granted;
        }
        told
    }

    /// Puts back what could not be settled. The pools still hold theirs; only the figures were taken out.
    pub(super) fn undo(&self, plan: Settlement) {
        let mut state = self.state();
        for (key, amount) in plan.usage {
            *state.usage.entry(key).or_default() += amount;
        }
    }

    fn release(&self, terms: &Terms, generation: u64, amount: i64, end: End) {
        let mut state = self.state();
        let pool = state.pool(terms.kind);
        if pool.terms.is_none_or(|present| present.period_start != terms.period_start) {
            return;
        }
        pool.reserved -= amount;
        if matches!(end, End::GivenBack) {
            pool.refused = None;
        }
        match end {
            End::Spent => pool.spent += amount,
            // What came from a lease that is lost is settled by whoever took it over.
            End::Ledgered if pool.generation == generation => pool.ledgered += amount,
            End::GivenBack if pool.generation == generation && terms.limit.is_some() => pool.free += amount,
            End::Ledgered | End::GivenBack => {}
        }
    }
}

#[derive(Clone, Copy)]
enum End {
    Spent,
    Ledgered,
    GivenBack,
}

/// Credits set aside for one call. Dropped without more ado, they go back.
pub struct Reservation {
    account: Arc<Account>,
    terms: Option<Terms>,
    amount: i64,
    generation: u64,
    class: Option<(CreditClass, Timestamp)>,
    node: String,
}

impl Reservation {
    pub(super) fn new(
        account: Arc<Account>,
        terms: Terms,
        amount: i64,
        generation: u64,
        class: Option<(CreditClass, Timestamp)>,
        node: &str,
    ) -> Self {
        // Only the ledger needs the node's name, and only credits go there.
        let node = if class.is_some() { node.to_owned() } else { String::new() };
        Self { account, terms: Some(terms), amount, generation, class, node }
    }

    /// For a call that is answered although nothing is left.
    pub(super) fn nothing(account: Arc<Account>, class: CreditClass, now: Timestamp) -> Self {
        let node = String::new();
        Self { account, terms: None, amount: 0, generation: 0, class: Some((class, now)), node }
    }

    /// The credits set aside.
    pub fn amount(&self) -> i64 {
        self.amount
    }

    /// Spends them: the call succeeded.
    pub fn keep(mut self) {
        if let (Some((class, at)), true) = (self.class, self.amount > 0) {
            self.account.count_usage(at.day(), metric(class), self.amount);
        }
        self.end(End::Spent);
    }

    /// The ledger entry that must be stored with the effect of the call.
    pub fn ledger_entry(&self, id: String) -> Option<LedgerEntry> {
        let (class, at) = self.class?;
        let terms = self.terms?;
        Some(LedgerEntry {
            id,
            period_start: terms.period_start,
            day: at.day(),
            class: class.as_str(),
            amount: self.amount,
            lease_of: terms.limit.map(|_| self.node.clone()),
        })
    }

    /// Notes that the ledger entry is durable.
    pub fn ledgered(mut self) {
        self.end(End::Ledgered);
    }

    fn end(&mut self, end: End) {
        if let Some(terms) = self.terms.take() {
            self.account.release(&terms, self.generation, self.amount, end);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(End::GivenBack);
    }
}

const fn metric(class: CreditClass) -> &'static str {
    match class {
        CreditClass::Read => "credits.read",
        CreditClass::Write => "credits.write",
        CreditClass::EmailSend => "credits.email_send",
        CreditClass::Provision => "credits.provision",
        CreditClass::AiLight => "credits.ai_light",
        CreditClass::AiHeavy => "credits.ai_heavy",
    }
}
