//! A workspace's share of its pools on this node, in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
    time::Duration,
};

use metrics::{Counter, counter};
use model::{CreditClass, Day, Timestamp, WorkspaceId};
use store::{
    metering::{Adjustment, LedgerEntry, PoolKind, PoolState},
    spend_log::{PeriodSpend, Slot, WorkspaceSpend},
};

use tokio::time::Instant;

use super::pool::{Attempt, Pool, Purpose, Terms};

/// How often usage is committed while no advance runs out. Every commit makes the readers of SQLite drop what they have
/// cached, so that reads must not cause many; until then, spending is in the log. With several nodes it is longer than
/// a node keeps an unused advance: a workspace that made one call is committed once, when its advance is returned.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
const COMMIT_INTERVAL_OF_SEVERAL_NODES: Duration = Duration::from_millis(1250);

/// Credits charged, by class. Static, so that calls do not look the counter up.
static CHARGED: LazyLock<[Counter; CreditClass::ALL.len()]> = LazyLock::new(|| {
    CreditClass::ALL.map(|class| counter!("credits_charged_total", "class" => class.as_str()))
});

pub(super) struct Account {
    pub(super) workspace: WorkspaceId,
    /// Locked while the store is asked, so that only one call does it.
    pub(super) asking: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    credits: Pool,
    requests: Pool,
    usage: BTreeMap<(Day, &'static str), i64>,
    dirty: bool,
    last_commit: Instant,
    last_call: Timestamp,
    log: Option<Slot>,
    /// Whether something was spent that is not in the log yet.
    unlogged: bool,
    /// The periods that are in the log.
    logged: [Timestamp; 2],
    /// Whether the last commit was on disk when it was acknowledged.
    is_durable: bool,
}

impl State {
    fn pool(&mut self, kind: PoolKind) -> &mut Pool {
        match kind {
            PoolKind::Credits => &mut self.credits,
            PoolKind::Requests => &mut self.requests,
        }
    }

    fn pools(&self) -> [&Pool; 2] {
        [&self.credits, &self.requests]
    }
}

/// The store's reply about a pool.
#[derive(Clone, Copy, Default)]
pub(super) struct PoolReply {
    /// How much of it other nodes hold as advances.
    pub(super) unspent_by_others: i64,
    /// Whether it had not enough left. If false, another call may already have spent what was granted.
    pub(super) short: bool,
}

/// What is about to be committed.
#[derive(Clone)]
pub(super) struct CommitPlan {
    pub(super) adjustments: Vec<Adjustment>,
    pub(super) usage: BTreeMap<(Day, &'static str), i64>,
    /// Whether it charges something, which must be on disk before it is spent.
    pub(super) charges: bool,
}

impl CommitPlan {
    pub(super) fn is_empty(&self) -> bool {
        self.adjustments.is_empty() && self.usage.is_empty()
    }
}

impl Account {
    /// An account whose requests are counted in the given pool.
    pub(super) fn new(workspace: WorkspaceId, requests: Pool, log: Option<Slot>, now: Timestamp) -> Self {
        let state = State {
            credits: Pool::shared(PoolKind::Credits),
            requests,
            usage: BTreeMap::new(),
            dirty: false,
            last_commit: Instant::now(),
            last_call: now,
            log,
            unlogged: false,
            logged: [PeriodSpend::NOTHING.period_start; 2],
            is_durable: true,
        };
        Self { workspace, asking: tokio::sync::Mutex::new(()), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        crate::core::lock::lock(&self.state)
    }

    pub(super) fn attempt(&self, terms: Terms, amount: i64, now: Timestamp) -> Attempt {
        let mut state = self.state();
        state.last_call = now;
        state.pool(terms.kind).attempt(&terms, amount, now)
    }

    /// Records that a pool has not enough left.
    pub(super) fn refuse(&self, kind: PoolKind, amount: i64, now: Timestamp) {
        self.state().pool(kind).refuse(amount, now);
    }

    pub(super) fn adopt(&self, terms: &Terms) {
        self.state().pool(terms.kind).adopt(terms);
    }

    pub(super) fn knows(&self, terms: &Terms) -> bool {
        let mut state = self.state();
        let pool = state.pool(terms.kind);
        pool.is_known() && pool.is_in(terms.period_start)
    }

    pub(super) fn used(&self, kind: PoolKind, period_start: Timestamp) -> i64 {
        let mut state = self.state();
        let pool = state.pool(kind);
        if pool.is_in(period_start) { pool.used() } else { 0 }
    }

    pub(super) fn count_usage(&self, day: Day, metric: &'static str, amount: i64) {
        *self.state().usage.entry((day, metric)).or_default() += amount;
    }

    pub(super) fn set_dirty(&self) -> bool {
        !std::mem::replace(&mut self.state().dirty, true)
    }

    pub(super) fn set_clean(&self) {
        self.state().dirty = false;
    }

    /// Announces a call that will need this much of a pool.
    pub(super) fn expect(&self, terms: &Terms, amount: i64, now: Timestamp) {
        self.state().pool(terms.kind).expect(terms, amount, now);
    }

    /// Whether it is time to commit: the last commit is a while ago, or an advance runs out.
    pub(super) fn is_due(&self, now: Timestamp, is_sole_node: bool) -> bool {
        let state = self.state();
        let interval = if is_sole_node { COMMIT_INTERVAL } else { COMMIT_INTERVAL_OF_SEVERAL_NODES };
        state.last_commit.elapsed() >= interval || state.pools().iter().any(|pool| pool.is_running_out(now))
    }

    /// Microseconds since the last call; small after the clock was set back, which is harmless.
    pub(super) fn idle_micros(&self, now: Timestamp) -> i64 {
        now.as_micros() - self.state().last_call.as_micros()
    }

    /// Whether there is an advance that another node may need.
    pub(super) fn has_unspent(&self) -> bool {
        self.state().pools().iter().any(|pool| pool.has_unspent())
    }

    /// Whether the store has everything that is in memory.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.state();
        state.pools().iter().all(|pool| pool.is_closed()) && state.usage.is_empty()
    }

    /// Whether the last commit is on disk.
    pub(super) fn is_durable(&self) -> bool {
        self.state().is_durable
    }

    /// After the store was seen to have the last commit, or to have lost it: then the next one repeats it.
    pub(super) fn set_durable(&self, is_lost: bool) {
        let mut state = self.state();
        state.is_durable = true;
        if is_lost {
            state.credits.keep_changed();
            state.requests.keep_changed();
        }
    }

    /// Logs the current periods of the pools.
    pub(super) fn log_periods(&self) {
        let mut state = self.state();
        state.unlogged |= state.logged != state.pools().map(|pool| pool.spent().period_start);
        drop(state);
        self.write_log();
    }

    /// Writes spending to the log, before the call that spent it is answered.
    pub(super) fn write_log(&self) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.unlogged, false) {
            return;
        }
        let figures = WorkspaceSpend { credits: state.credits.spent(), requests: state.requests.spent() };
        state.logged = [figures.credits.period_start, figures.requests.period_start];
        if let Some(slot) = &state.log {
            // Under the lock, so that older figures never overwrite newer ones.
            slot.write(figures);
        }
    }

    /// Releases its slot in the log.
    pub(super) fn release_log_slot(&self) {
        if let Some(slot) = self.state().log.take() {
            slot.release();
        }
    }

    /// What to commit now. Credits come first, so that all nodes lock the pools in the same order.
    pub(super) fn plan_commit(
        &self,
        need: Option<(Terms, i64)>,
        purpose: Purpose,
        now: Timestamp,
    ) -> CommitPlan {
        let mut state = self.state();
        state.last_commit = Instant::now();
        let mut adjustments = Vec::new();
        for kind in [PoolKind::Credits, PoolKind::Requests] {
            let wanted = need.filter(|(terms, _)| terms.kind == kind).map(|(_, amount)| amount);
            adjustments.extend(state.pool(kind).plan(wanted, purpose, now));
        }
        let usage = std::mem::take(&mut state.usage);
        let charges = adjustments.iter().any(|ask| state.pool(ask.kind).is_charged_by(ask));
        CommitPlan { adjustments, usage, charges }
    }

    /// Applies the store's answer, and returns its reply about the requested pool.
    pub(super) fn apply(
        &self,
        plan: &CommitPlan,
        adjusted: &[PoolState],
        asked: Option<PoolKind>,
    ) -> PoolReply {
        let mut state = self.state();
        state.is_durable = plan.charges;
        let mut reply = PoolReply::default();
        for (ask, answer) in plan.adjustments.iter().zip(adjusted) {
            if asked == Some(ask.kind) {
                reply = PoolReply { unspent_by_others: answer.unspent_by_others, short: answer.short };
            }
            state.pool(ask.kind).apply(ask, answer);
        }
        reply
    }

    /// Puts back usage figures that could not be committed. The pools are unchanged.
    pub(super) fn undo(&self, plan: CommitPlan) {
        let mut state = self.state();
        for ask in &plan.adjustments {
            state.pool(ask.kind).keep_changed();
        }
        for (key, amount) in plan.usage {
            *state.usage.entry(key).or_default() += amount;
        }
    }

    fn release(&self, terms: &Terms, amount: i64, outcome: ReservationOutcome) {
        let mut state = self.state();
        let pool = state.pool(terms.kind);
        if !pool.is_in(terms.period_start) {
            return;
        }
        match outcome {
            ReservationOutcome::Spent => {
                pool.spend(amount);
                state.unlogged = true;
            }
            ReservationOutcome::Ledgered => pool.spend_ledgered(amount),
            ReservationOutcome::Refunded => pool.refund(amount),
        }
    }
}

#[derive(Clone, Copy)]
enum ReservationOutcome {
    Spent,
    Ledgered,
    Refunded,
}

/// Credits reserved for one call. Dropping it refunds them.
pub struct Reservation {
    account: Arc<Account>,
    terms: Option<Terms>,
    amount: i64,
    class: Option<(CreditClass, Timestamp)>,
    node: String,
}

impl Reservation {
    pub(super) fn new(
        account: Arc<Account>,
        terms: Terms,
        amount: i64,
        class: Option<(CreditClass, Timestamp)>,
        node: &str,
    ) -> Self {
        // Only the ledger needs the node's name, and only credits are in the ledger.
        let node = if class.is_some() { node.to_owned() } else { String::new() };
        Self { account, terms: Some(terms), amount, class, node }
    }

    /// For a call that is answered although no credits are left.
    pub(super) fn nothing(account: Arc<Account>, class: CreditClass, now: Timestamp) -> Self {
        Self { account, terms: None, amount: 0, class: Some((class, now)), node: String::new() }
    }

    /// The reserved credits.
    pub fn amount(&self) -> i64 {
        self.amount
    }

    /// Commits them: the call succeeded.
    pub fn commit(mut self) {
        if let (Some((class, at)), true) = (self.class, self.amount > 0) {
            self.account.count_usage(at.day(), metric(class), self.amount);
        }
        self.count_charge();
        self.finish(ReservationOutcome::Spent);
        // A charge is in the log before the answer is sent; requests are logged with it.
        if self.class.is_some() {
            self.account.write_log();
        }
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
            node: self.node.clone(),
        })
    }

    /// Records that the ledger entry is durable.
    pub fn commit_ledgered(mut self) {
        self.count_charge();
        self.finish(ReservationOutcome::Ledgered);
    }

    fn count_charge(&self) {
        if let (Some((class, _)), Ok(amount @ 1..)) = (self.class, u64::try_from(self.amount)) {
            CHARGED[class as usize].increment(amount);
        }
    }

    fn finish(&mut self, outcome: ReservationOutcome) {
        if let Some(terms) = self.terms.take() {
            self.account.release(&terms, self.amount, outcome);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.finish(ReservationOutcome::Refunded);
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
