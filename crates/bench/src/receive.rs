//! Messages that are durable when acknowledged, against Postfix alone.
//!
//! Both sides get the same messages of 10 KB from the same client, `smtp-source`, one message per connection. The
//! real program stores each in a mailbox, scanned, threaded and indexed; Postfix only queues it. Both flush before
//! they reply 250: Postfix a file for each message, the service a commit that concurrent sessions share.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use model::{MailboxId, WorkspaceId};
use store::{Db, emails};

use crate::{
    fill,
    flush::{self, SLOW_FLUSH, SlowDisk},
    measured_store::{Engine, MeasuredStore},
    options::Options,
    postfix::Postfix,
    program::{self, Disk, RunningProgram},
    report::{Figure, Target},
    service::Service,
    stats::{median, spread},
};

const MESSAGE_BYTES: usize = 10 * 1024;
const SESSIONS: usize = 32;
/// Messages of the warm-up turn.
const WARM_UP: usize = 300;

/// What is measured on a disk, with its names in the table.
struct Case {
    sessions: usize,
    what: &'static str,
    target: Target,
}

const REAL_DISK_CASES: [Case; 2] = [
    Case { sessions: SESSIONS, what: "messages at 32 sessions : Postfix", target: Target::AtLeast(2.0) },
    Case { sessions: 1, what: "messages at 1 session : Postfix", target: Target::AtLeast(1.0) },
];
const SLOW_DISK_CASES: [Case; 2] = [
    Case {
        sessions: SESSIONS,
        what: "messages at 32 sessions : Postfix, flush of 4 ms",
        target: Target::AtLeast(2.0),
    },
    Case {
        sessions: 1,
        what: "messages at 1 session : Postfix, flush of 4 ms",
        target: Target::AtLeast(1.0),
    },
];

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let postfix = Postfix::start().await;
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(measure_disk(*engine, &program, &postfix, options, &REAL_DISK_CASES).await);
        if let Some(slow) = SlowDisk::start(SLOW_FLUSH) {
            let measured = measure_disk(*engine, &program, &postfix, options, &SLOW_DISK_CASES).await;
            drop(slow);
            let most = 1.0 / SLOW_FLUSH.as_secs_f64();
            let waits = |figure: &Figure| figure.value <= most && figure.yardstick <= most;
            assert!(waits(&measured[1]), "at one session somebody does not wait for the slow disk");
            figures.extend(measured);
        } else {
            eprintln!("no messages with a flush of 4 ms: only scripts/bench can make the disk slow");
        }
    }
    figures
}

/// All cases of one disk, on a fresh store.
async fn measure_disk(
    engine: Engine,
    program: &Path,
    postfix: &Postfix,
    options: &Options,
    cases: &[Case],
) -> Vec<Figure> {
    let store = MeasuredStore::new(engine).await;
    let workspace = fill_store(&store).await;
    let running = RunningProgram::start(program, &store, Disk::Slowable).await;
    let flush = flush::time_flush(engine);
    let mut sent = 0;
    let mut figures = Vec::new();
    for case in cases {
        let mut turns = Turns { service: running.smtp, postfix, case, sent: 0 };
        let mut figure = turns.run(engine, options).await;
        figure.notes.push(format!("a flush takes {:.2} ms", flush.as_secs_f64() * 1e3));
        sent += turns.sent;
        figures.push(figure);
    }
    running.stop();
    assert_eq!(stored(&store, &workspace).await, sent, "every acknowledged message is stored");
    store.remove().await;
    figures
}

/// Creates the store with one mailbox, and returns its workspace.
async fn fill_store(store: &MeasuredStore) -> WorkspaceId {
    let service = Service::open(store).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
    service.app.meter().close().await;
    service.workspace
}

/// The number of messages in the mailbox.
async fn stored(store: &MeasuredStore, workspace: &WorkspaceId) -> usize {
    let db = Db::open(&store.location).await.expect("the store opens");
    let count = async |tx: &mut store::Tx| {
        let filter =
            emails::EmailFilter { date_start: Some(model::Timestamp::from_micros(0)), ..Default::default() };
        emails::count(tx, &MailboxId::from(format!("mbx_{:026}", 0)), &filter).await
    };
    let counted: Result<i64, store::Error> = db.read(workspace, count).await;
    usize::try_from(counted.expect("messages can be counted")).unwrap_or_default()
}

/// Both sides of a case.
struct Turns<'a> {
    service: SocketAddr,
    postfix: &'a Postfix,
    case: &'a Case,
    /// Messages sent to the service.
    sent: usize,
}

impl Turns<'_> {
    async fn run(&mut self, engine: Engine, options: &Options) -> Figure {
        let seconds = options.turn().as_secs_f64();
        let own = messages_in(self.send_to_service(WARM_UP).await, seconds);
        let others = messages_in(self.send_to_postfix(WARM_UP).await, seconds);
        let (mut service, mut postfix) = (Vec::new(), Vec::new());
        for round in 0..options.rounds() {
            // The order alternates, so that neither side profits from what the other leaves behind.
            if round % 2 == 0 {
                service.push(self.send_to_service(own).await);
                postfix.push(self.send_to_postfix(others).await);
            } else {
                postfix.push(self.send_to_postfix(others).await);
                service.push(self.send_to_service(own).await);
            }
        }
        let ratios: Vec<f64> = service.iter().zip(&postfix).map(|(own, other)| own / other).collect();
        Figure {
            what: self.case.what,
            engine: engine.name(),
            unit: "/s",
            value: median(&service),
            yardstick: median(&postfix),
            ratio: median(&ratios),
            spread: spread(&ratios),
            target: Some(self.case.target),
            notes: Vec::new(),
        }
    }

    async fn send_to_service(&mut self, messages: usize) -> f64 {
        self.sent += messages;
        send(self.service, self.case.sessions, messages).await
    }

    async fn send_to_postfix(&self, messages: usize) -> f64 {
        let speed = send(self.postfix.address, self.case.sessions, messages).await;
        assert_eq!(self.postfix.empty(), messages, "Postfix queued every message that it acknowledged");
        speed
    }
}

/// The number of messages that fill a turn at this speed.
fn messages_in(speed: f64, seconds: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    let messages = (speed * seconds) as usize;
    messages.max(SESSIONS)
}

/// Sends messages to the mailbox and returns the messages per second.
async fn send(to: SocketAddr, sessions: usize, messages: usize) -> f64 {
    send_to(to, sessions, messages, "bench-0@agents.test").await
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
