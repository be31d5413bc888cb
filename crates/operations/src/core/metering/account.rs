//! One workspace's share of its pools on this node, in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

use metrics::{Counter, counter};
use model::{CreditClass, Day, Timestamp, WorkspaceId};
use store::{
    metering::{Adjusted, Adjustment, LedgerEntry, PoolKind},
    spend_log::{Figures, Slot, Spent},
};

use super::pool::{Attempt, Pool, Purpose, Terms};

/// What was charged, by class. Kept, because every call would look its counter up.
static CHARGED: LazyLock<[Counter; CreditClass::ALL.len()]> = LazyLock::new(|| {
    CreditClass::ALL.map(|class| counter!("credits_charged_total", "class" => class.as_str()))
});

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
    last_call: Timestamp,
    log: Option<Slot>,
    /// Whether something was spent that the log does not know.
    unlogged: bool,
    /// The periods that the log knows.
    logged: [Timestamp; 2],
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

/// What the store said about a pool.
#[derive(Clone, Copy, Default)]
pub(super) struct PoolReply {
    /// How much of it other nodes have charged ahead.
    pub(super) unspent_by_others: i64,
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
    /// An account whose requests are counted in the given pool.
    pub(super) fn new(workspace: WorkspaceId, requests: Pool, log: Option<Slot>, now: Timestamp) -> Self {
        let state = State {
            credits: Pool::shared(PoolKind::Credits),
            requests,
            usage: BTreeMap::new(),
            dirty: false,
            last_call: now,
            log,
            unlogged: false,
            logged: [Spent::NOTHING.period_start; 2],
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

    /// Notes that a pool has not enough left.
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

    pub(super) fn become_dirty(&self) -> bool {
        !std::mem::replace(&mut self.state().dirty, true)
    }

    pub(super) fn become_clean(&self) {
        self.state().dirty = false;
    }

    /// Microseconds since the last call. A clock that was set back makes it small, which does no harm.
    pub(super) fn idle_micros(&self, now: Timestamp) -> i64 {
        now.as_micros() - self.state().last_call.as_micros()
    }

    /// Whether there is something that another node may need.
    pub(super) fn has_unspent(&self) -> bool {
        self.state().pools().iter().any(|pool| pool.has_unspent())
    }

    /// Whether nothing of it is left in memory that the store does not know.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.state();
        state.pools().iter().all(|pool| pool.is_closed()) && state.usage.is_empty()
    }

    /// Has the log know the periods that the pools are in.
    pub(super) fn log_periods(&self) {
        let mut state = self.state();
        state.unlogged |= state.logged != state.pools().map(|pool| pool.spent().period_start);
        drop(state);
        self.write_log();
    }

    /// Writes what was spent to the log, before the call that spent it is answered.
    pub(super) fn write_log(&self) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.unlogged, false) {
            return;
        }
        let figures = Figures { credits: state.credits.spent(), requests: state.requests.spent() };
        state.logged = [figures.credits.period_start, figures.requests.period_start];
        if let Some(slot) = &state.log {
            // Under the lock, so that no older figures are written after newer ones.
            slot.write(figures);
        }
    }

    /// Ends its place in the log.
    pub(super) fn leave_log(&self) {
        if let Some(slot) = self.state().log.take() {
            slot.release();
        }
    }

    /// What to settle now. Credits come first, so that all nodes lock the pools in one order.
    pub(super) fn plan_settlement(
        &self,
        need: Option<(Terms, i64)>,
        purpose: Purpose,
        now: Timestamp,
    ) -> Settlement {
        let mut state = self.state();
        let mut adjustments = Vec::new();
        for kind in [PoolKind::Credits, PoolKind::Requests] {
            let wanted = need.filter(|(terms, _)| terms.kind == kind).map(|(_, amount)| amount);
            adjustments.extend(state.pool(kind).plan(wanted, purpose, now));
        }
        let usage = std::mem::take(&mut state.usage);
        Settlement { adjustments, usage }
    }

    /// Takes over what the store answered, and tells what it said about the asked-for pool.
    pub(super) fn apply(
        &self,
        plan: &Settlement,
        adjusted: &[Adjusted],
        asked: Option<PoolKind>,
    ) -> PoolReply {
        let mut state = self.state();
        let mut told = PoolReply::default();
        for (ask, answer) in plan.adjustments.iter().zip(adjusted) {
            if asked == Some(ask.kind) {
                told = PoolReply { unspent_by_others: answer.unspent_by_others, short: answer.short };
            }
            state.pool(ask.kind).apply(ask, answer);
        }
        told
    }

    /// Puts back what could not be settled. The pools still have theirs; only the figures were taken out.
    pub(super) fn undo(&self, plan: Settlement) {
        let mut state = self.state();
        for ask in &plan.adjustments {
            state.pool(ask.kind).keep_changed();
        }
        for (key, amount) in plan.usage {
            *state.usage.entry(key).or_default() += amount;
        }
    }

    fn release(&self, terms: &Terms, amount: i64, end: End) {
        let mut state = self.state();
        let pool = state.pool(terms.kind);
        if !pool.is_in(terms.period_start) {
            return;
        }
        match end {
            End::Spent => {
                pool.spend(amount);
                state.unlogged = true;
            }
            End::Ledgered => pool.note_written(amount),
            End::Refunded => pool.refund(amount),
        }
    }
}

#[derive(Clone, Copy)]
enum End {
    Spent,
    Ledgered,
    Refunded,
}

/// Credits set aside for one call. Dropped without more ado, they go back.
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
        // Only the ledger needs the node's name, and only credits go there.
        let node = if class.is_some() { node.to_owned() } else { String::new() };
        Self { account, terms: Some(terms), amount, class, node }
    }

    /// For a call that is answered although nothing is left.
    pub(super) fn nothing(account: Arc<Account>, class: CreditClass, now: Timestamp) -> Self {
        Self { account, terms: None, amount: 0, class: Some((class, now)), node: String::new() }
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
        self.count_charge();
        self.end(End::Spent);
        // What a call paid with is in the log before its answer leaves; requests are logged with it.
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

    /// Notes that the ledger entry is durable.
    pub fn ledgered(mut self) {
        self.count_charge();
        self.end(End::Ledgered);
    }

    fn count_charge(&self) {
        if let (Some((class, _)), Ok(amount @ 1..)) = (self.class, u64::try_from(self.amount)) {
            CHARGED[class as usize].increment(amount);
        }
    }

    fn end(&mut self, end: End) {
        if let Some(terms) = self.terms.take() {
            self.account.release(&terms, self.amount, end);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(End::Refunded);
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
