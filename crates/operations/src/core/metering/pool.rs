//! What one node has charged to a pool and spent of it, in memory.

use model::Timestamp;
use store::{
    metering::{Adjusted, Adjustment, PoolKind},
    spend_log::Spent,
};

/// Why the store is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To store what was spent, and to have more before it is missed.
    Settle,
    /// Another node needs what is not used here.
    Return,
    /// The workspace is left alone: nothing stays charged ahead.
    Close,
}

/// Which pool, which period, how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) kind: PoolKind,
    pub(super) period_start: Timestamp,
    pub(super) limit: Option<i64>,
}

impl Terms {
    /// The pool of the period that a time lies in.
    pub(super) fn at(time: Timestamp, kind: PoolKind, limit: Option<i64>) -> Self {
        Self { kind, period_start: kind.period_of(time), limit }
    }
}

pub(super) enum Attempt {
    /// Taken, in this period.
    Taken(Timestamp),
    /// The pool is known to be empty.
    Refused,
    /// The store must be asked.
    MustAsk,
}

/// How long a refusal of credits is believed. They can come back when a call fails, so not for long; but calls that
/// hammer at an empty pool must not all go to the store.
const REFUSED_FOR_MICROS: i64 = 50_000;
/// The time whose spending is charged ahead at most.
const AHEAD_MICROS: i64 = 1_000_000;
/// The part of a pool that is charged ahead at most.
const AHEAD_PART: i64 = 100;

/// What this node has charged to one pool. The figures count from its first advance in the period.
pub(super) struct Pool {
    kind: PoolKind,
    terms: Option<Terms>,
    /// Whether no other node draws from it and it need not survive a power cut, so that the store is not asked.
    local: bool,
    /// Charged in the store.
    granted: i64,
    /// Spent without a ledger entry.
    reads: i64,
    /// Spent with one.
    writes: i64,
    /// Set aside for calls in flight.
    reserved: i64,
    /// Spent in the period by others, as the store last said.
    others: i64,
    /// Whether the store has said anything yet about this period.
    known: bool,
    /// Whether something was spent or ended since the store was last told.
    changed: bool,
    /// What was refused, as long as asking again cannot give another answer.
    refused: Option<Refusal>,
    pace: Pace,
}

/// A pool was asked for an amount and had not that much left.
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
            pace: Pace::default(),
        }
    }

    /// The window of a sole node, which nobody else counts in: it is kept in memory and in the log, and goes on with
    /// what a former process had counted.
    pub(super) fn window(before: Spent) -> Self {
        let terms = Terms { kind: PoolKind::Requests, period_start: before.period_start, limit: None };
        let terms = (before.reads > 0).then_some(terms);
        Self { local: true, known: true, terms, reads: before.reads, ..Self::shared(PoolKind::Requests) }
    }

    /// Begins the period of the terms, unless it goes on.
    pub(super) fn adopt(&mut self, terms: &Terms) {
        if !self.is_in(terms.period_start) {
            let fresh = if self.local { Self::window(Spent::default()) } else { Self::shared(self.kind) };
            *self = Self { terms: Some(*terms), ..fresh };
        }
        let period_start = self.period_start().unwrap_or(terms.period_start);
        let present = Terms { period_start, ..*terms };
        if self.terms != Some(present) {
            // The plan has changed: a larger pool may have room again, a smaller one must not be spent from what was
            // charged to the larger.
            self.refused = None;
            self.terms = Some(present);
            self.surrender();
        }
    }

    fn period_start(&self) -> Option<Timestamp> {
        self.terms.map(|terms| terms.period_start)
    }

    /// Whether a call in this period counts in the present one.
    pub(super) fn is_in(&self, period_start: Timestamp) -> bool {
        self.period_start().is_some_and(|present| self.kind.joins(period_start, present))
    }

    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    fn taken(&self) -> i64 {
        self.reads + self.writes + self.reserved
    }

    pub(super) fn used(&self) -> i64 {
        self.others + self.taken()
    }

    /// What the log keeps.
    pub(super) fn spent(&self) -> Spent {
        Spent { period_start: self.period_start().unwrap_or(Spent::NOTHING.period_start), reads: self.reads }
    }

    pub(super) fn has_unspent(&self) -> bool {
        !self.local && self.granted > self.taken()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.local || self.terms.is_none() || (!self.known && self.reserved == 0 && !self.changed)
    }

    /// Nothing more is spent from what is charged ahead until the store was asked.
    fn surrender(&mut self) {
        if !self.local {
            self.granted = self.granted.min(self.taken());
            self.known = false;
        }
    }

    pub(super) fn attempt(&mut self, terms: &Terms, amount: i64, now: Timestamp) -> Attempt {
        self.adopt(terms);
        if self.is_refused(amount, now) {
            return Attempt::Refused;
        }
        let room = match terms.limit {
            Some(limit) if self.local => limit - self.taken() >= amount,
            Some(_) => self.granted - self.taken() >= amount,
            None => true,
        };
        if !room && self.local {
            return Attempt::Refused;
        }
        if !room || !self.known {
            return Attempt::MustAsk;
        }
        self.reserved += amount;
        self.pace.add(amount, now);
        Attempt::Taken(self.period_start().unwrap_or(terms.period_start))
    }

    /// Notes that there is not enough left. A window of requests then stays shut to its end.
    pub(super) fn refuse(&mut self, amount: i64, now: Timestamp) {
        self.refused = Some(Refusal { amount, at: now });
    }

    fn is_refused(&self, amount: i64, now: Timestamp) -> bool {
        let since = |at: Timestamp| now.as_micros() - at.as_micros();
        self.refused.is_some_and(|refusal| {
            amount >= refusal.amount
                && (self.kind == PoolKind::Requests || (0..REFUSED_FOR_MICROS).contains(&since(refusal.at)))
        })
    }

    pub(super) fn spend(&mut self, amount: i64) {
        self.reserved -= amount;
        self.reads += amount;
        self.changed = true;
    }

    pub(super) fn note_written(&mut self, amount: i64) {
        self.reserved -= amount;
        self.writes += amount;
        self.changed = true;
    }

    pub(super) fn refund(&mut self, amount: i64) {
        self.reserved -= amount;
        self.refused = None;
        self.changed = true;
    }

    /// What to have charged before it is missed, so that a busy workspace's calls do not wait for it: what it spends in
    /// a second, and a hundredth of the pool at most.
    fn ahead(&self, limit: i64, now: Timestamp) -> i64 {
        self.pace.of_a_second(now).min(limit / AHEAD_PART).max(1)
    }

    /// What to tell the store and to ask of it; nothing where that would change nothing.
    pub(super) fn plan(
        &mut self,
        wanted: Option<i64>,
        purpose: Purpose,
        now: Timestamp,
    ) -> Option<Adjustment> {
        let terms = self.terms.filter(|_| !self.local)?;
        let ahead = match (terms.limit, purpose) {
            (Some(limit), Purpose::Settle) if !self.is_refused(1, now) => self.ahead(limit, now),
            _ => 0,
        };
        let close = purpose == Purpose::Close && self.reserved == 0;
        let due = match purpose {
            Purpose::Settle => self.changed,
            Purpose::Return => self.changed || self.has_unspent(),
            Purpose::Close => self.changed || self.known,
        };
        if wanted.is_none() && !due {
            return None;
        }
        if purpose != Purpose::Settle {
            // From now on, so that no call takes what is on its way back.
            self.granted = self.granted.min(self.taken());
            self.known &= !close;
        }
        self.changed = false;
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

    /// Takes over what the store said.
    pub(super) fn apply(&mut self, ask: &Adjustment, answer: &Adjusted) {
        if !self.is_in(ask.period_start) {
            return;
        }
        if let Some(terms) = &mut self.terms {
            terms.period_start = answer.period_start;
        }
        self.granted = answer.granted;
        self.others = answer.spent_by_others;
        // A write whose commit was not told of is no longer set aside, and was done all the same.
        self.writes = self.writes.max(answer.writes - self.reserved);
        self.known = !ask.close;
        if self.terms.is_some_and(|terms| terms.limit != ask.limit) {
            // The plan changed while the store was asked.
            self.changed = true;
            self.surrender();
        }
    }

    /// The store could not be asked: it is told with the next try.
    pub(super) fn keep_changed(&mut self) {
        self.changed = true;
    }
}

/// How fast a pool is spent: what was taken in this second and in the one before.
#[derive(Default)]
struct Pace {
    second: i64,
    now: i64,
    before: i64,
}

impl Pace {
    fn add(&mut self, amount: i64, now: Timestamp) {
        let second = now.as_micros() / AHEAD_MICROS;
        if second != self.second {
            self.before = if second == self.second + 1 { self.now } else { 0 };
            self.now = 0;
            self.second = second;
        }
        self.now += amount;
    }

    fn of_a_second(&self, now: Timestamp) -> i64 {
        match now.as_micros() / AHEAD_MICROS - self.second {
            0 => self.now.max(self.before),
            1 => self.now,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
