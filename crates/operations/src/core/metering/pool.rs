//! What one node has charged to a pool and spent from it, in memory.

use model::Timestamp;
use store::{
    metering::{Adjustment, PoolKind, PoolState},
    spend_log::PeriodSpend,
};

/// Why the store is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To store what was spent, and to get an advance before it is needed.
    Commit,
    /// Another node needs the unused advance.
    Return,
    /// The workspace is idle: no advance is kept.
    Close,
}

/// A pool, its period and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) kind: PoolKind,
    pub(super) period_start: Timestamp,
    pub(super) limit: Option<i64>,
}

impl Terms {
    /// The pool of the period that contains a time.
    pub(super) fn at(time: Timestamp, kind: PoolKind, limit: Option<i64>) -> Self {
        Self { kind, period_start: kind.period_of(time), limit }
    }
}

pub(super) enum Attempt {
    /// Reserved, in this period.
    Reserved(Timestamp),
    /// The pool is known to be empty.
    Refused,
    /// The store must be asked.
    AskStore,
}

/// How long a refusal of credits is cached. Credits can come back when a call fails, so not for long; but calls
/// against an empty pool must not all go to the store.
const REFUSAL_TTL_MICROS: i64 = 50_000;
/// The time whose spending an advance covers at most.
const MAX_ADVANCE_MICROS: i64 = 1_000_000;
/// The share of an advance that is left when the next one is charged, as a divisor.
const RENEWAL_DIVISOR: i64 = 8;
/// The share of a pool that an advance covers at most, as a divisor.
const MAX_ADVANCE_DIVISOR: i64 = 100;

/// What this node has charged to one pool. The figures count from its first advance in the period.
pub(super) struct Pool {
    kind: PoolKind,
    terms: Option<Terms>,
    /// Whether no other node uses it and it may be lost in a power cut, so that the store is not asked.
    local: bool,
    /// Charged in the store.
    granted: i64,
    /// Spent without a ledger entry.
    reads: i64,
    /// Spent with one.
    writes: i64,
    /// Reserved for calls in flight.
    reserved: i64,
    /// Spent in the period by other nodes, as the store last said.
    others: i64,
    /// Whether the store has answered for this period.
    known: bool,
    /// Whether something was spent or refunded since the last commit.
    changed: bool,
    /// The last refusal, while asking again cannot give another answer.
    refused: Option<Refusal>,
    /// What a call is about to need; asked for together with something else.
    expected: i64,
    pace: Pace,
}

/// The pool had less than this amount left.
#[derive(Clone, Copy)]
struct Refusal {
    amount: i64,
    at: Timestamp,
}

impl Pool {
    /// A pool that the store keeps.
    pub(super) fn shared(kind: PoolKind) -> Self {
        Self {
            kind,
            terms: None,
            local: false,
            granted: 0,
            reads: 0,
            writes: 0,
            reserved: 0,
            others: 0,
            known: false,
            changed: false,
            refused: None,
            expected: 0,
            pace: Pace::default(),
        }
    }

    /// The request window of a sole node: kept in memory and in the log, continuing an earlier process's count.
    pub(super) fn window(before: PeriodSpend) -> Self {
        let terms = Terms { kind: PoolKind::Requests, period_start: before.period_start, limit: None };
        let terms = (before.reads > 0).then_some(terms);
        Self { local: true, known: true, terms, reads: before.reads, ..Self::shared(PoolKind::Requests) }
    }

    /// Begins the period of the terms, unless it is the current one.
    pub(super) fn adopt(&mut self, terms: &Terms) {
        if !self.is_in(terms.period_start) {
            let fresh =
                if self.local { Self::window(PeriodSpend::default()) } else { Self::shared(self.kind) };
            *self = Self { terms: Some(*terms), ..fresh };
        }
        let period_start = self.period_start().unwrap_or(terms.period_start);
        let present = Terms { period_start, ..*terms };
        if self.terms != Some(present) {
            // The plan has changed: a larger pool may have room again, a smaller one must not be overspent from an
            // advance of the larger.
            self.refused = None;
            self.terms = Some(present);
            self.surrender();
        }
    }

    fn period_start(&self) -> Option<Timestamp> {
        self.terms.map(|terms| terms.period_start)
    }

    /// Whether a call in this period counts in the current one.
    pub(super) fn is_in(&self, period_start: Timestamp) -> bool {
        self.period_start().is_some_and(|present| self.kind.joins(period_start, present))
    }

    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    fn drawn(&self) -> i64 {
        self.reads + self.writes + self.reserved
    }

    pub(super) fn used(&self) -> i64 {
        self.others + self.drawn()
    }

    /// The figures for the log.
    pub(super) fn spent(&self) -> PeriodSpend {
        PeriodSpend {
            period_start: self.period_start().unwrap_or(PeriodSpend::NOTHING.period_start),
            reads: self.reads,
        }
    }

    pub(super) fn has_unspent(&self) -> bool {
        !self.local && self.granted > self.drawn()
    }

    /// Whether the next advance should be charged, so that no call waits for it.
    pub(super) fn is_running_out(&self, now: Timestamp) -> bool {
        let Some(limit) = self.terms.filter(|_| !self.local && self.known).and_then(|terms| terms.limit)
        else {
            return false;
        };
        // Of a workspace that calls now and then, no call finds an advance from the one before.
        self.pace.is_busy(now)
            && !self.is_refused(1, now)
            && (self.granted - self.drawn()) * RENEWAL_DIVISOR < self.ahead(limit, now)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.local || self.terms.is_none() || (!self.known && self.reserved == 0 && !self.changed)
    }

    /// Nothing more is spent from the advance until the store was asked.
    fn surrender(&mut self) {
        if !self.local {
            self.granted = self.granted.min(self.drawn());
            self.known = false;
        }
    }

    pub(super) fn attempt(&mut self, terms: &Terms, amount: i64, now: Timestamp) -> Attempt {
        self.adopt(terms);
        if self.is_refused(amount, now) {
            return Attempt::Refused;
        }
        let room = match terms.limit {
            Some(limit) if self.local => limit - self.drawn() >= amount,
            Some(_) => self.granted - self.drawn() >= amount,
            None => true,
        };
        if !room && self.local {
            return Attempt::Refused;
        }
        if !room || !self.known {
            return Attempt::AskStore;
        }
        self.reserved += amount;
        self.pace.add(amount, now);
        Attempt::Reserved(self.period_start().unwrap_or(terms.period_start))
    }

    /// Announces a call: the next commit asks for what it needs, if that is not there.
    pub(super) fn expect(&mut self, terms: &Terms, amount: i64, now: Timestamp) {
        self.adopt(terms);
        let has_room = terms.limit.is_none() || self.granted - self.drawn() >= amount;
        let is_there = self.known && has_room;
        if !self.local && !is_there && !self.is_refused(amount, now) {
            self.expected = amount;
            self.changed = true;
        }
    }

    /// Records that there is not enough left. A request window then stays closed to its end.
    pub(super) fn refuse(&mut self, amount: i64, now: Timestamp) {
        self.refused = Some(Refusal { amount, at: now });
    }

    fn is_refused(&self, amount: i64, now: Timestamp) -> bool {
        let since = |at: Timestamp| now.as_micros() - at.as_micros();
        self.refused.is_some_and(|refusal| {
            amount >= refusal.amount
                && (self.kind == PoolKind::Requests || (0..REFUSAL_TTL_MICROS).contains(&since(refusal.at)))
        })
    }

    pub(super) fn spend(&mut self, amount: i64) {
        self.reserved -= amount;
        self.reads += amount;
        self.changed = true;
    }

    pub(super) fn spend_ledgered(&mut self, amount: i64) {
        self.reserved -= amount;
        self.writes += amount;
        self.changed = true;
    }

    pub(super) fn refund(&mut self, amount: i64) {
        self.reserved -= amount;
        self.refused = None;
        self.changed = true;
    }

    /// The advance to ask for before it is needed, so that calls of a busy workspace do not wait: what it spends in a
    /// second, and a hundredth of the pool at most.
    fn ahead(&self, limit: i64, now: Timestamp) -> i64 {
        self.pace.per_second(now).min(limit / MAX_ADVANCE_DIVISOR).max(1)
    }

    /// The adjustment for the store; `None` where it would change nothing.
    pub(super) fn plan(
        &mut self,
        wanted: Option<i64>,
        purpose: Purpose,
        now: Timestamp,
    ) -> Option<Adjustment> {
        let terms = self.terms.filter(|_| !self.local)?;
        let ahead = match (terms.limit, purpose) {
            (Some(limit), Purpose::Commit) if !self.is_refused(1, now) => {
                self.ahead(limit, now).max(self.expected)
            }
            _ => 0,
        };
        let close = purpose == Purpose::Close && self.reserved == 0;
        let due = match purpose {
            Purpose::Commit => self.changed,
            Purpose::Return => self.changed || self.has_unspent(),
            Purpose::Close => self.changed || self.known,
        };
        if wanted.is_none() && !due {
            return None;
        }
        if purpose != Purpose::Commit {
            // From now on, so that no call spends what is being returned.
            self.granted = self.granted.min(self.drawn());
            self.known &= !close;
        }
        self.changed = false;
        self.expected = 0;
        Some(Adjustment {
            kind: self.kind,
            period_start: terms.period_start,
            now,
            limit: terms.limit,
            reads: self.reads,
            writes: self.writes,
            reserved: self.reserved,
            needed: wanted.unwrap_or(0),
            ahead,
            close,
        })
    }

    /// Applies the store's answer.
    pub(super) fn apply(&mut self, ask: &Adjustment, answer: &PoolState) {
        if !self.is_in(ask.period_start) {
            return;
        }
        if let Some(terms) = &mut self.terms {
            terms.period_start = answer.period_start;
        }
        self.granted = answer.granted;
        self.others = answer.spent_by_others;
        // A write whose commit was not reported is no longer reserved, but was done.
        self.writes = self.writes.max(answer.writes - self.reserved);
        self.known = !ask.close;
        if self.terms.is_some_and(|terms| terms.limit != ask.limit) {
            // The plan changed while the store was asked.
            self.changed = true;
            self.surrender();
        }
    }

    /// Whether an adjustment charges more than is charged already. One that only returns or reports something can be
    /// repeated: its figures are totals.
    pub(super) fn is_charged_by(&self, ask: &Adjustment) -> bool {
        let taken = ask.reads + ask.writes + ask.reserved;
        ask.limit.is_some() && taken + ask.needed + ask.ahead > self.granted
    }

    /// The store could not be asked: the next commit includes it.
    pub(super) fn keep_changed(&mut self) {
        self.changed = true;
    }
}

/// How fast a pool is spent: the calls and amounts of this second and of the one before.
#[derive(Default)]
struct Pace {
    second: i64,
    now: Spending,
    before: Spending,
}

#[derive(Clone, Copy, Default)]
struct Spending {
    calls: i64,
    amount: i64,
}

impl Pace {
    fn add(&mut self, amount: i64, now: Timestamp) {
        let second = now.as_micros() / MAX_ADVANCE_MICROS;
        if second != self.second {
            self.before = if second == self.second + 1 { self.now } else { Spending::default() };
            self.now = Spending::default();
            self.second = second;
        }
        self.now.calls += 1;
        self.now.amount += amount;
    }

    fn per_second(&self, now: Timestamp) -> i64 {
        match now.as_micros() / MAX_ADVANCE_MICROS - self.second {
            0 => self.now.amount.max(self.before.amount),
            1 => self.now.amount,
            _ => 0,
        }
    }

    /// Whether calls follow one another.
    fn is_busy(&self, now: Timestamp) -> bool {
        match now.as_micros() / MAX_ADVANCE_MICROS - self.second {
            0 => self.now.calls + self.before.calls > 1,
            1 => self.now.calls > 1,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
