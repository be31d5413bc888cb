//! What one workspace may be answered: a model of its pools, as simple as the rules themselves.

use model::{Plan, Plans, Timestamp};
use testkit::Answer;

/// How far a period may lie ahead of the clock and go on: a clock that was set back.
const MONTH_AHEAD_SECONDS: i64 = 32 * 86_400;
const MINUTE_AHEAD_SECONDS: i64 = 120;

/// A pool as the rules have it.
struct Pool {
    start: Timestamp,
    used: i64,
    /// What may have been used beyond that, by calls that were never answered.
    doubt: i64,
}

impl Pool {
    /// Begins the period, unless it goes on.
    fn turn_to(&mut self, start: Timestamp, ahead_seconds: i64) {
        if !(start <= self.start && self.start <= start.plus_seconds(ahead_seconds)) {
            *self = Self { start, used: 0, doubt: 0 };
        }
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered with success.
    Answered,
    /// It was refused, and changed nothing.
    Refused,
    /// The process died under it.
    Unknown,
}

/// The books of one workspace.
pub(super) struct Books {
    plans: Plans,
    plan: Plan,
    credits: Pool,
    requests: Pool,
    /// Nodes that cannot be asked to return what they have charged ahead.
    pub(super) frozen_nodes: i64,
    /// Until when it is open which window a request counts in, after a clock was set back.
    unsure_until: Timestamp,
}

impl Books {
    pub(super) fn new(plans: Plans, plan: Plan, now: Timestamp) -> Self {
        let pool = |start| Pool { start, used: 0, doubt: 0 };
        let (credits, requests) = (pool(now.month_start()), pool(now.minute()));
        Self { plans, plan, credits, requests, frozen_nodes: 0, unsure_until: now }
    }

    /// Counts all credits of the period but some as used, and says how many that are.
    pub(super) fn spend_all_but(&mut self, left: i64) -> i64 {
        self.credits.used = self.credit_limit().map_or(0, |limit| (limit - left).max(0));
        self.credits.used
    }

    fn credit_limit(&self) -> Option<i64> {
        self.plans.of(self.plan).credits_per_period.get().map(|limit| i64::try_from(limit).unwrap())
    }

    fn request_limit(&self) -> Option<i64> {
        self.plans.of(self.plan).rpm.get().map(|limit| i64::try_from(limit).unwrap())
    }

    /// What a call adds to the window: without a limit nothing is counted.
    fn one_request(&self) -> i64 {
        i64::from(self.request_limit().is_some())
    }

    pub(super) fn change_plan(&mut self, plan: Plan) {
        self.plan = plan;
    }

    pub(super) fn plan(&self) -> Plan {
        self.plan
    }

    /// The most that frozen nodes may have charged ahead of a pool: each a hundredth, and at least a call.
    fn out_of_reach(&self, limit: Option<i64>) -> i64 {
        limit.map_or(0, |limit| self.frozen_nodes * (limit / 100).max(1))
    }

    fn turn(&mut self, now: Timestamp) {
        self.credits.turn_to(now.month_start(), MONTH_AHEAD_SECONDS);
        self.requests.turn_to(now.minute(), MINUTE_AHEAD_SECONDS);
    }

    /// Compares the answers to calls that were made at once, each with its price, with what the rules allow.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        answers: &[(i64, &Answer)],
        node_died: bool,
    ) -> Vec<Outcome> {
        self.turn(now);
        let (credits, requests) = (self.credits.used, self.requests.used);
        let mut outcomes = Vec::new();
        let (mut too_many, mut too_dear) = (false, None);
        for (price, answer) in answers {
            let outcome = match answer.status {
                429 => {
                    too_many = true;
                    outcomes.push(Outcome::Refused);
                    continue;
                }
                402 => {
                    too_dear = Some(too_dear.unwrap_or(*price).min(*price));
                    Outcome::Refused
                }
                500..=599 => {
                    assert!(node_died, "{}: {}", answer.status, answer.text());
                    self.credits.doubt += price;
                    self.requests.doubt += self.one_request();
                    outcomes.push(Outcome::Unknown);
                    continue;
                }
                // It was done, and paid for, before.
                200..=299 if answer.header("idempotent-replayed") == "true" => Outcome::Answered,
                200..=299 => {
                    self.credits.used += price;
                    Outcome::Answered
                }
                status => panic!("{status}: {}", answer.text()),
            };
            self.requests.used += self.one_request();
            outcomes.push(outcome);
        }
        // No pool is ever over its limit, unless the plan shrank under it; then nothing more is answered.
        let over = |used: i64, limit: Option<i64>| limit.is_some_and(|limit| used > limit);
        let (more_credits, more_requests) = (self.credits.used > credits, self.requests.used > requests);
        let sure = now >= self.unsure_until;
        assert!(
            !sure || !more_requests || !over(self.requests.used, self.request_limit()),
            "requests: {}",
            self.requests.used
        );
        assert!(
            !more_credits || !over(self.credits.used, self.credit_limit()),
            "credits: {}",
            self.credits.used
        );
        if too_many && sure {
            let most = self.requests.used + self.requests.doubt + self.out_of_reach(self.request_limit());
            assert!(
                self.request_limit().is_some_and(|limit| most >= limit),
                "429 with room for requests: {most}"
            );
        }
        if let Some(price) = too_dear {
            let most = self.credits.used + self.credits.doubt + self.out_of_reach(self.credit_limit());
            let full = self.credit_limit().is_some_and(|limit| most + price > limit);
            assert!(full, "402 for {price} with room for credits: {most} of {:?}", self.credit_limit());
        }
        outcomes
    }

    /// Compares what the service says was used with what was answered. Doubts end here.
    pub(super) fn reconcile(&mut self, now: Timestamp, told: i64) {
        self.turn(now);
        let Pool { used, doubt, .. } = self.credits;
        assert!(
            (used..=used + doubt).contains(&told),
            "the ledger says {told}, answered were {used}, in doubt {doubt}"
        );
        self.credits.used = told;
        self.credits.doubt = 0;
    }

    /// A call that was refused after it was counted.
    pub(super) fn count_request(&mut self, now: Timestamp) {
        self.turn(now);
        self.requests.used += self.one_request();
    }

    /// The clock was set back, by less than two minutes.
    pub(super) fn clock_was_set_back(&mut self, now: Timestamp) {
        self.unsure_until = now.plus_seconds(300);
    }
}
