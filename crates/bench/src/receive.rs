//! Messages that are durable when acknowledged, against Postfix alone.
//!
//! Both sides get the same messages: of 10 KB from `smtp-source`, one per connection, or a mix of real sizes over
//! connections that are kept. The real program stores each in a mailbox, scanned, threaded and indexed; Postfix only
//! queues it. Both flush before they reply 250: Postfix a file for each message, the service a commit that concurrent
//! sessions share.

mod client;
mod corpora;
mod kept;
mod made;
mod mix;
mod receiver;

use std::{
    cell::Cell,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use tokio::task::JoinSet;

use self::{
    kept::KeptConnections,
    mix::Mix,
    receiver::{Receiver, WARM_UP, flush_note, messages_in},
};
use crate::{
    flush::{SLOW_FLUSH, SlowDisk},
    measured_store::Engine,
    options::Options,
    postfix::Postfix,
    program,
    report::{Figure, Target},
    turns::alternate,
};

const MESSAGE_BYTES: usize = 10 * 1024;
const SESSIONS: usize = 32;
/// Mailboxes of one workspace.
const MAILBOXES: usize = 32;
/// What is measured on a disk, with its names in the table.
struct Case {
    sessions: usize,
    /// Mailboxes that the sessions are spread over.
    mailboxes: usize,
    what: &'static str,
    /// The least ratios on SQLite and on PostgreSQL.
    at_least: (f64, f64),
}

impl Case {
    fn target(&self, engine: Engine) -> Target {
        Target::AtLeast(if engine == Engine::Sqlite { self.at_least.0 } else { self.at_least.1 })
    }
}

const REAL_DISK_CASES: [Case; 3] = [
    Case {
        sessions: SESSIONS,
        mailboxes: 1,
        what: "messages at 32 sessions : Postfix",
        at_least: (2.0, 0.8),
    },
    Case {
        sessions: SESSIONS,
        mailboxes: MAILBOXES,
        what: "messages at 32 sessions, 32 mailboxes : Postfix",
        at_least: (2.0, 1.0),
    },
    Case { sessions: 1, mailboxes: 1, what: "messages at 1 session : Postfix", at_least: (1.0, 1.0) },
];
const SLOW_DISK_CASES: [Case; 2] = [
    Case {
        sessions: SESSIONS,
        mailboxes: 1,
        what: "messages at 32 sessions : Postfix, flush of 4 ms",
        at_least: (2.0, 2.0),
    },
    Case {
        sessions: 1,
        mailboxes: 1,
        what: "messages at 1 session : Postfix, flush of 4 ms",
        at_least: (1.0, 1.0),
    },
];

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let (postfix, delivering) = (Postfix::start().await, Postfix::delivering().await);
    let mix = if kept::is_wanted(options) { Mix::read() } else { None };
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(measure_disk(*engine, &program, &postfix, options, &REAL_DISK_CASES).await);
        figures.extend(measure_slow_disk(*engine, &program, &postfix, options).await);
        if let Some(mix) = &mix {
            let kept = KeptConnections {
                program: &program,
                postfix: &postfix,
                delivering: &delivering,
                mix,
                options,
            };
            figures.extend(kept.measure(*engine).await);
        }
    }
    figures
}

/// The same on a slow disk, where it can be made slow.
async fn measure_slow_disk(
    engine: Engine,
    program: &Path,
    postfix: &Postfix,
    options: &Options,
) -> Vec<Figure> {
    if !SLOW_DISK_CASES.iter().any(|case| options.wants(case.what)) {
        return Vec::new();
    }
    let Some(slow) = SlowDisk::start(SLOW_FLUSH) else {
        eprintln!("no messages with a flush of 4 ms: only scripts/bench can make the disk slow");
        return Vec::new();
    };
    let measured = measure_disk(engine, program, postfix, options, &SLOW_DISK_CASES).await;
    drop(slow);
    let most = 1.0 / SLOW_FLUSH.as_secs_f64();
    let waits = |figure: &Figure| figure.value <= most && figure.yardstick <= most;
    let at_one = SLOW_DISK_CASES.iter().find(|case| case.sessions == 1).map(|case| case.what);
    let mut at_one = measured.iter().filter(|figure| Some(figure.what) == at_one);
    assert!(at_one.all(waits), "at one session somebody does not wait for the slow disk");
    measured
}

/// The wanted cases of one disk, on a fresh store.
async fn measure_disk(
    engine: Engine,
    program: &Path,
    postfix: &Postfix,
    options: &Options,
    cases: &[Case],
) -> Vec<Figure> {
    let cases: Vec<&Case> = cases.iter().filter(|case| options.wants(case.what)).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let receiver = Receiver::start(engine, program, MAILBOXES).await;
    let flush = flush_note(engine);
    let mut sent = 0;
    let mut figures = Vec::new();
    for case in cases {
        let turns = Turns { service: receiver.running.smtp, postfix, case, sent: Cell::new(0) };
        let mut figure = turns.run(engine, options).await;
        figure.notes.push(flush.clone());
        sent += turns.sent.get();
        figures.push(figure);
    }
    receiver.finish(sent).await;
    figures
}

/// Both sides of a case.
struct Turns<'a> {
    service: SocketAddr,
    postfix: &'a Postfix,
    case: &'a Case,
    /// Messages sent to the service.
    sent: Cell<usize>,
}

impl Turns<'_> {
    async fn run(&self, engine: Engine, options: &Options) -> Figure {
        let seconds = options.turn().as_secs_f64();
        let own = messages_in(self.send_to_service(WARM_UP).await, seconds);
        let others = messages_in(self.send_to_postfix(WARM_UP).await, seconds);
        let (service, postfix) = alternate(
            options.rounds(),
            async || self.send_to_service(own).await,
            async || self.send_to_postfix(others).await,
        )
        .await;
        Figure::of_rates(self.case.what, engine, (&service, &postfix), Some(self.case.target(engine)))
    }

    async fn send_to_service(&self, messages: usize) -> f64 {
        self.sent.update(|sent| sent + messages);
        send(self.service, self.case, messages).await
    }

    async fn send_to_postfix(&self, messages: usize) -> f64 {
        let speed = send(self.postfix.address, self.case, messages).await;
        assert_eq!(self.postfix.empty(), messages, "Postfix queued every message that it acknowledged");
        speed
    }
}

/// Sends messages to the mailboxes of a case and returns the messages per second. With several mailboxes each has a
/// client of its own.
async fn send(to: SocketAddr, case: &Case, messages: usize) -> f64 {
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for mailbox in 0..case.mailboxes {
        // The first ones send what does not divide.
        let share = (messages + case.mailboxes - 1 - mailbox) / case.mailboxes;
        let sessions = case.sessions / case.mailboxes;
        clients.spawn(
            async move { send_to(to, sessions, share, &format!("bench-{mailbox}@agents.test")).await },
        );
    }
    clients.join_all().await;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let messages = messages as f64;
    messages / started.elapsed().as_secs_f64()
}

/// The same for any recipient.
pub(crate) async fn send_to(to: SocketAddr, sessions: usize, messages: usize, recipient: &str) -> f64 {
    let mut client = Command::new("/usr/sbin/smtp-source");
    client.args(["-s", &sessions.to_string(), "-l", &MESSAGE_BYTES.to_string(), "-m", &messages.to_string()]);
    client.args(["-f", "sender@remote.test", "-t", recipient, &to.to_string()]);
    client.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let ended = tokio::task::spawn_blocking(move || client.output()).await.expect("the client runs");
    let took = started.elapsed().as_secs_f64();
    let ended = ended.expect("smtp-source is installed: run scripts/bench");
    assert!(ended.status.success(), "smtp-source to {to}: {}", String::from_utf8_lossy(&ended.stderr));
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let messages = messages as f64;
    messages / took
}
