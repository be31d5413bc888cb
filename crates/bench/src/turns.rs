//! Two loads that take turns, and their comparison.

use std::time::Duration;

use crate::{
    load::{End, Load, Outcome},
    measured_store::Engine,
    options::Options,
    report::{Figure, Target},
    stats::{median, spread},
};

/// A load with a name for the notes.
pub(crate) struct Side<'a> {
    pub(crate) name: &'static str,
    pub(crate) load: &'a Load,
}

/// What is compared.
pub(crate) struct Comparison<'a> {
    pub(crate) what: &'static str,
    pub(crate) engine: Engine,
    pub(crate) target: Option<Target>,
    pub(crate) measured: Side<'a>,
    pub(crate) yardstick: Side<'a>,
}

impl Comparison<'_> {
    /// Runs both sides in turns; the ratio is the median of the ratios of the rounds.
    pub(crate) async fn run(self, options: &Options) -> Figure {
        let names = (self.measured.name, self.yardstick.name);
        let mut outcomes = take_turns(&[self.measured, self.yardstick], options).await;
        let (others, own) = (outcomes.pop().unwrap_or_default(), outcomes.pop().unwrap_or_default());
        compare(self.what, self.engine, self.target, [(names.0, &own), (names.1, &others)])
    }
}

/// The rates of two sides, with a note about each.
pub(crate) fn compare(
    what: &'static str,
    engine: Engine,
    target: Option<Target>,
    [own, other]: [(&str, &[Outcome]); 2],
) -> Figure {
    let rates = |outcomes: &[Outcome]| -> Vec<f64> {
        outcomes.iter().map(|outcome| outcome.requests_per_second).collect()
    };
    let mut figure = Figure::of_rates(what, engine, (&rates(own.1), &rates(other.1)), target);
    figure.notes = [own, other].map(|(name, outcomes)| describe(name, outcomes)).to_vec();
    figure
}

/// Lets two sides take turns, and returns the results of each.
pub(crate) async fn alternate<T>(
    rounds: usize,
    mut own: impl AsyncFnMut() -> T,
    mut other: impl AsyncFnMut() -> T,
) -> (Vec<T>, Vec<T>) {
    let (mut of_own, mut of_other) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // The order alternates, so that neither side profits from what the other leaves behind.
        if round % 2 == 0 {
            of_own.push(own().await);
            of_other.push(other().await);
        } else {
            of_other.push(other().await);
            of_own.push(own().await);
        }
    }
    (of_own, of_other)
}

/// Warms all sides up, and runs them in turns. Returns the outcomes of each side.
pub(crate) async fn take_turns(sides: &[Side<'_>], options: &Options) -> Vec<Vec<Outcome>> {
    for side in sides {
        side.load.run(End::After(Duration::from_millis(500))).await;
    }
    let mut outcomes: Vec<Vec<Outcome>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds() {
        let mut turns: Vec<(&Side<'_>, &mut Vec<Outcome>)> = sides.iter().zip(&mut outcomes).collect();
        // The order alternates, so that no side profits from what another leaves behind.
        if round % 2 == 1 {
            turns.reverse();
        }
        for (side, outcomes) in turns {
            outcomes.push(side.load.run(End::After(options.turn())).await);
        }
    }
    outcomes
}

/// Loads one side alone, for a profiler.
pub(crate) async fn show_alone(load: &Load, requests: Option<u64>) {
    let (connections, end) = match requests {
        Some(requests) => (1, End::AfterRequests(requests)),
        None => (load.connections, End::After(Duration::from_secs(30))),
    };
    let outcome = Load { connections, ..load.clone() }.run(end).await;
    eprintln!("{}", describe("alone", &[outcome]));
}

pub(crate) fn median_of(outcomes: &[Outcome], pick: impl Fn(&Outcome) -> f64) -> f64 {
    median(&outcomes.iter().map(pick).collect::<Vec<_>>())
}

/// A summary of several turns.
pub(crate) fn describe(name: &str, outcomes: &[Outcome]) -> String {
    format!(
        "{name}: {:.0} /s, latency {:.2} ms, 99 % within {:.2} ms; CPU of the server {:.1} µs each, of the client {:.1} µs",
        median_of(outcomes, |outcome| outcome.requests_per_second),
        median_of(outcomes, |outcome| outcome.median_latency),
        median_of(outcomes, |outcome| outcome.p99_latency),
        median_of(outcomes, |outcome| outcome.server_cpu),
        median_of(outcomes, |outcome| outcome.client_cpu),
    )
}

/// The median time of a call against a limit in milliseconds. The load should be warmed up.
pub(crate) async fn within(
    what: &'static str,
    engine: Engine,
    milliseconds: f64,
    load: &Load,
    (rounds, turn): (usize, End),
) -> Figure {
    let (mut latencies, mut slowest) = (Vec::new(), 0.0_f64);
    for _ in 0..rounds {
        let outcome = load.run(turn).await;
        latencies.push(outcome.median_latency);
        slowest = slowest.max(outcome.p99_latency);
    }
    let mut figure = Figure::within(what, engine, &latencies, milliseconds);
    figure.notes.push(format!("99 % of a turn within {slowest:.1} ms"));
    figure
}

/// The median time of reads while other work runs, against that before.
pub(crate) fn meanwhile(what: &'static str, engine: Engine, calm: &Outcome, busy: &[Outcome]) -> Figure {
    let latencies: Vec<f64> = busy.iter().map(|outcome| outcome.median_latency).collect();
    let ratios: Vec<f64> = latencies.iter().map(|latency| latency / calm.median_latency).collect();
    Figure {
        what,
        engine: engine.name(),
        unit: "ms",
        value: median(&latencies),
        yardstick: calm.median_latency,
        ratio: median(&ratios),
        spread: spread(&ratios),
        target: Some(Target::AtMost(2.0)),
        notes: Vec::new(),
    }
}
