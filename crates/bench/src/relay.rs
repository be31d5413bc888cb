//! Sending through a relay with pooled connections, against a connection per message, and against Postfix.
//!
//! The first two also with a distant relay, where connections have their real cost. All of them send messages of 10
//! KB to the same sink. The service gets them through its API at 32 connections and is durable before it responds;
//! Postfix gets them from `smtp-source` at 32 sessions. A turn ends when the sink has them all.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    fill,
    load::{End, Load},
    measured_store::{Engine, MeasuredStore},
    options::Options,
    postfix::Postfix,
    postgres_cost,
    program::{self, Disk, RunningProgram},
    receive,
    report::{Figure, Target},
    send,
    service::Service,
    sink::Sink,
    wire::Wire,
};

const CONNECTIONS: usize = 32;
/// Messages of the warm-up turn.
const WARM_UP: u64 = 200;
/// The round trip to a distant relay.
const FAR_RELAY_DELAY: Duration = Duration::from_millis(20);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let sink = Sink::start();
    let postfix = Postfix::relaying_to(sink.address).await;
    let mut figures = Vec::new();
    for engine in &options.engines {
        if NEAR.iter().any(|row| options.wants(row)) {
            figures.extend(measure_engine(*engine, &program, &postfix, &sink, options).await);
        }
        if options.wants(FAR) {
            figures.push(measure_far(*engine, &program, options).await);
        }
        if *engine == Engine::Postgres && options.wants(postgres_cost::SEND_STATEMENTS) {
            figures.push(count_statements(&program, &sink).await);
        }
    }
    figures
}

const NEAR: [&str; 2] = ["messages to a relay : a connection for each", "messages to a relay : Postfix"];
const FAR: &str = "messages to a relay 20 ms away : a connection for each";
/// Messages whose statements are counted.
const COUNTED: u64 = 100;

/// The statements of a message on PostgreSQL, from the request until it is sent, one message after the other.
async fn count_statements(program: &Path, sink: &Sink) -> Figure {
    let (store, key, mailbox) = prepare(Engine::Postgres).await;
    let wire = Wire::start(&store).await;
    let mut settings = relay_settings(sink);
    settings.push(("DATABASE__URL", wire.url.clone()));
    let running = RunningProgram::start_with(program, &store, Disk::AsItIs, &settings).await;
    let sender = Sender::of(store, running, &key, &mailbox, 1);
    for _ in 0..COUNTED {
        sender.send(sink, 1).await;
    }
    wire.take();
    for _ in 0..COUNTED {
        sender.send(sink, 1).await;
    }
    let traffic = wire.take();
    sender.stop().await;
    postgres_cost::statements_of_send(&traffic, COUNTED)
}

/// The same messages to a distant relay, with pooled connections and with one for each message.
async fn measure_far(engine: Engine, program: &Path, options: &Options) -> Figure {
    let sink = Sink::with_delay(FAR_RELAY_DELAY);
    let pooled = Sender::start(engine, program, &sink, "100").await;
    let single = Sender::start(engine, program, &sink, "1").await;
    let turn = options.turn().as_secs_f64();
    let own = messages_in(pooled.send(&sink, WARM_UP).await, turn);
    let alone = messages_in(single.send(&sink, WARM_UP).await, turn);
    let (mut speeds, mut singles) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        speeds.push(pooled.send(&sink, own).await);
        singles.push(single.send(&sink, alone).await);
    }
    pooled.stop().await;
    single.stop().await;
    figure(FAR, engine, (&speeds, &singles), 2.0)
}

fn figure(what: &'static str, engine: Engine, (speeds, yardstick): (&[f64], &[f64]), least: f64) -> Figure {
    Figure::of_rates(what, engine, (speeds, yardstick), Some(Target::AtLeast(least)))
}

async fn measure_engine(
    engine: Engine,
    program: &Path,
    postfix: &Postfix,
    sink: &Sink,
    options: &Options,
) -> [Figure; 2] {
    let pooled = Sender::start(engine, program, sink, "100").await;
    let single = Sender::start(engine, program, sink, "1").await;
    let turn = options.turn().as_secs_f64();
    let messages = |speed: f64| messages_in(speed, turn);
    let own = messages(pooled.send(sink, WARM_UP).await);
    let alone = messages(single.send(sink, WARM_UP).await);
    let others = messages(send_by_postfix(postfix, sink, WARM_UP).await);
    let (mut speeds, mut singles, mut postfixes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.rounds() {
        // The order alternates, so that no side profits from what another leaves behind.
        for side in 0..3 {
            match (side + round) % 3 {
                0 => speeds.push(pooled.send(sink, own).await),
                1 => singles.push(single.send(sink, alone).await),
                _ => postfixes.push(send_by_postfix(postfix, sink, others).await),
            }
        }
    }
    pooled.stop().await;
    single.stop().await;
    [figure(NEAR[0], engine, (&speeds, &singles), 2.0), figure(NEAR[1], engine, (&speeds, &postfixes), 1.0)]
}

/// The program with the sink as its relay.
struct Sender {
    store: MeasuredStore,
    running: RunningProgram,
    load: Load,
}

impl Sender {
    async fn start(engine: Engine, program: &Path, sink: &Sink, messages_per_connection: &str) -> Self {
        let (store, key, mailbox) = prepare(engine).await;
        let mut settings = relay_settings(sink);
        settings.push(("OUTBOUND__MAILS_PER_CONNECTION", messages_per_connection.to_owned()));
        let running = RunningProgram::start_with(program, &store, Disk::AsItIs, &settings).await;
        running.pause();
        Self::of(store, running, &key, &mailbox, CONNECTIONS)
    }

    /// A program that is running, with so many connections to it.
    fn of(
        store: MeasuredStore,
        running: RunningProgram,
        key: &str,
        mailbox: &str,
        connections: usize,
    ) -> Self {
        let next_request = send::sends(running.address, key, mailbox, "emails", "ann@remote.test", "");
        let load = Load {
            address: running.address,
            connections,
            next_request,
            expected_status: 202,
            processes: Vec::new(),
        };
        Self { store, running, load }
    }

    /// Sends messages and returns how many reached the sink per second. The program runs only meanwhile, so that what it
    /// does afterwards, such as embedding for memory, takes nothing from another side.
    async fn send(&self, sink: &Sink, messages: u64) -> f64 {
        sink.take();
        self.running.resume();
        let started = Instant::now();
        self.load.run(End::AfterRequests(messages)).await;
        let speed = finish(sink, started, messages).await;
        self.running.pause();
        speed
    }

    async fn stop(self) {
        self.running.stop();
        self.store.remove().await;
    }
}

/// A store with a mailbox, a key and the mailbox's public id.
pub(crate) async fn prepare(engine: Engine) -> (MeasuredStore, String, String) {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let mailbox = fill::add_mailboxes(service.app.db(), &service.workspace, 1).await.remove(0);
    service.app.meter().close().await;
    (store, service.key.clone(), mailbox)
}

/// Routes outgoing mail to the sink.
pub(crate) fn relay_settings(sink: &Sink) -> Vec<(&'static str, String)> {
    vec![
        ("OUTBOUND__MODE", "relay".to_owned()),
        ("OUTBOUND__RELAY_URL", format!("smtp://{}", sink.address)),
        ("OUTBOUND__ALLOW_PRIVATE", "true".to_owned()),
    ]
}

async fn send_by_postfix(postfix: &Postfix, sink: &Sink, messages: u64) -> f64 {
    sink.take();
    let started = Instant::now();
    let count = usize::try_from(messages).unwrap_or(usize::MAX);
    receive::send_to(postfix.address, CONNECTIONS, count, "ann@remote.test").await;
    finish(sink, started, messages).await
}

async fn finish(sink: &Sink, started: Instant, messages: u64) -> f64 {
    sink.wait_for(usize::try_from(messages).unwrap_or(usize::MAX)).await;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let messages = messages as f64;
    messages / started.elapsed().as_secs_f64()
}

/// The number of messages that fill a turn at this speed.
fn messages_in(speed: f64, seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    let messages = (speed * seconds) as u64;
    messages.max(CONNECTIONS as u64)
}
