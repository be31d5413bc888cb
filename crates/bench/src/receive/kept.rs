//! A mix of real sizes over connections that are kept, as between large mail servers.
//!
//! In a round both sides get the same messages, so that neither happens to get the larger ones. While Postfix has its
//! turn the service is paused: what it puts off, above all embedding messages for memory, would slow Postfix down, and
//! is part of its own turns.

use std::{
    cell::Cell,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    client::Sending,
    mix::Mix,
    receiver::{Receiver, WARM_UP, flush_note, messages_in},
};
use crate::{
    load::Outcome,
    measured_store::Engine,
    options::Options,
    postfix::Postfix,
    report::{Figure, Target},
    turns,
};

/// A number of sessions, with its names in the table.
struct Case {
    sessions: usize,
    what: &'static str,
    target: Target,
    /// The row about the service's CPU time.
    cpu: Option<&'static str>,
    /// Whether Postfix delivers the messages too, as the service does, and does not only queue them.
    delivers: bool,
}

const CASES: [Case; 6] = [
    Case {
        sessions: 1,
        what: "real mix over 1 kept session : Postfix",
        target: Target::AtLeast(1.2),
        cpu: None,
        delivers: false,
    },
    Case {
        sessions: 16,
        what: "real mix over 16 kept sessions : Postfix",
        target: Target::AtLeast(1.5),
        cpu: Some("CPU time of a message, real mix over 16 kept sessions : 1 ms"),
        delivers: false,
    },
    Case {
        sessions: 64,
        what: "real mix over 64 kept sessions : Postfix",
        target: Target::AtLeast(2.0),
        cpu: None,
        delivers: false,
    },
    Case {
        sessions: 1,
        what: "real mix over 1 kept session : Postfix to a Maildir",
        target: Target::AtLeast(1.2),
        cpu: None,
        delivers: true,
    },
    Case {
        sessions: 16,
        what: "real mix over 16 kept sessions : Postfix to a Maildir",
        target: Target::AtLeast(1.5),
        cpu: None,
        delivers: true,
    },
    Case {
        sessions: 64,
        what: "real mix over 64 kept sessions : Postfix to a Maildir",
        target: Target::AtLeast(2.0),
        cpu: None,
        delivers: true,
    },
];
/// The limit of the service's CPU time for a message.
const CPU_MILLISECONDS: f64 = 1.0;

impl Case {
    fn is_wanted(&self, options: &Options) -> bool {
        options.wants(self.what) || self.cpu.is_some_and(|cpu| options.wants(cpu))
    }
}

/// Whether any of these rows is to be measured.
pub(super) fn is_wanted(options: &Options) -> bool {
    CASES.iter().any(|case| case.is_wanted(options))
}

/// What all cases need.
pub(super) struct KeptConnections<'a> {
    pub(super) program: &'a Path,
    pub(super) postfix: &'a Postfix,
    /// One that delivers what it has queued.
    pub(super) delivering: &'a Postfix,
    pub(super) mix: &'a Arc<Mix>,
    pub(super) options: &'a Options,
}

impl KeptConnections<'_> {
    /// The wanted cases, each on a fresh store.
    pub(super) async fn measure(&self, engine: Engine) -> Vec<Figure> {
        let mut figures = Vec::new();
        for case in CASES.iter().filter(|case| case.is_wanted(self.options)) {
            let receiver = Receiver::start(engine, self.program, 1).await;
            let flush = flush_note(engine);
            let sent = Cell::new(0);
            let (own, others) = self.take_turns(case, &receiver, &sent).await;
            let embedding = embedding_note(&receiver, sent.get());
            receiver.finish(sent.get()).await;
            let sides = [("service", own.as_slice()), ("Postfix", others.as_slice())];
            let mut figure = turns::compare(case.what, engine, Some(case.target), sides);
            let cpu = case.cpu.map(|what| cpu_figure(what, engine, &own, &embedding));
            figure.notes.extend([embedding, self.mix.describe(), flush]);
            figures
                .extend([Some(figure), cpu].into_iter().flatten().filter(|one| self.options.wants(one.what)));
        }
        figures
    }

    /// The turns of the service and of Postfix.
    async fn take_turns(
        &self,
        case: &Case,
        receiver: &Receiver,
        sent: &Cell<usize>,
    ) -> (Vec<Outcome>, Vec<Outcome>) {
        let sessions = case.sessions;
        let other = if case.delivers { self.delivering } else { self.postfix };
        let sent_to_postfix = Cell::new(0);
        let service = async |messages| {
            let (address, cpu) = (receiver.running.smtp, || receiver.running.cpu());
            receiver.running.resume();
            let outcome = self.take_turn(address, sessions, messages, sent, cpu).await;
            receiver.running.pause();
            outcome
        };
        let postfix = async |messages| {
            let before = other.cpu();
            // The CPU time comes afterwards, when all is delivered.
            let cpu = || Duration::ZERO;
            let outcome = self.take_turn(other.address, sessions, messages, &sent_to_postfix, cpu).await;
            let acknowledged = Instant::now();
            other.wait_until_stored(messages).await;
            let outcome = outcome.with_delay(acknowledged.elapsed());
            let outcome = outcome.with_server_cpu(other.cpu().saturating_sub(before));
            assert_eq!(other.empty(), messages, "Postfix stored every message that it acknowledged");
            outcome
        };
        let warm_up = [service(WARM_UP).await, postfix(WARM_UP).await];
        let speed = warm_up.iter().map(|outcome| outcome.requests_per_second).sum::<f64>() / 2.0;
        let messages = messages_in(speed, self.options.turn().as_secs_f64());
        turns::alternate(
            self.options.rounds(),
            async || service(messages).await,
            async || postfix(messages).await,
        )
        .await
    }

    /// Sends the next messages to one side.
    async fn take_turn(
        &self,
        address: SocketAddr,
        sessions: usize,
        messages: usize,
        sent: &Cell<usize>,
        cpu: impl Fn() -> Duration,
    ) -> Outcome {
        let before = cpu();
        let sending = Sending { address, sessions, mix: self.mix.clone(), first: sent.get(), messages };
        let outcome = sending.run().await;
        sent.update(|sent| sent + messages);
        outcome.with_server_cpu(cpu().saturating_sub(before))
    }
}

/// How much of the service's CPU time is no part of receiving. It is a share of what the machine had left, not what
/// embedding all messages takes.
fn embedding_note(receiver: &Receiver, messages: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let each = receiver.running.embedding_cpu().as_secs_f64() / messages as f64 * 1e6;
    format!("{each:.1} µs of the service's CPU time each went to embedding, which lags behind")
}

/// The service's CPU time for a message, which is without that of PostgreSQL.
fn cpu_figure(what: &'static str, engine: Engine, outcomes: &[Outcome], embedding: &str) -> Figure {
    let milliseconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.server_cpu / 1e3).collect();
    let mut figure = Figure::within(what, engine, &milliseconds, CPU_MILLISECONDS);
    figure.notes.push(embedding.to_owned());
    if engine == Engine::Postgres {
        figure.notes.push("without the CPU time of PostgreSQL".to_owned());
    }
    figure
}
