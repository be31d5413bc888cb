//! How soon a call that waits for a message returns, while a thousand others wait too.
//!
//! Each waiter has a connection and an address of its own. A message is received every 20 ms, by the same code as
//! behind an SMTP session; the time runs from its acknowledgement to the response of the one waiter whose message
//! it is.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    arrivals::receive,
    fill,
    load::Connection,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    report::{Figure, Target},
    service::Service,
    stats::{percentile, spread},
};

const WAITERS: usize = 1000;
const MILLISECONDS: f64 = 20.0;
const MESSAGE_INTERVAL: Duration = Duration::from_millis(20);
/// How long the waiters get to start.
const BEGIN_DELAY: Duration = Duration::from_secs(3);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        for (what, mailboxes) in [("wake-up, 50 mailboxes : 20 ms", 50), ("wake-up, 1 mailbox : 20 ms", 1)] {
            figures.push(measure_mailboxes(*engine, options, what, mailboxes).await);
        }
    }
    figures
}

async fn measure_mailboxes(
    engine: Engine,
    options: &Options,
    what: &'static str,
    mailboxes: usize,
) -> Figure {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let public_ids = fill::add_mailboxes(service.app.db(), &service.workspace, mailboxes).await;
    let address = service.listen().await;
    let (answers, mut answered) = mpsc::channel(WAITERS);
    let waiters = Waiters { address, key: service.key.clone(), public_ids, answers };
    let client = std::thread::Builder::new().name("load-client".to_owned());
    client.spawn(move || waiters.wait()).expect("a thread for the client");
    tokio::time::sleep(BEGIN_DELAY).await;
    let mut latencies = Vec::new();
    let mut halves = Vec::new();
    for n in 0..options.waited_messages() {
        let waiter = n % WAITERS;
        receive(&service.app, recipient(waiter, mailboxes), n, &format!("It is {n}.")).await;
        let acknowledged = Instant::now();
        let answer =
            tokio::time::timeout(ANSWER_TIMEOUT, answered.recv()).await.expect("a waiter answers in time");
        let (who, at) = answer.expect("the waiters are there");
        assert_eq!(who, waiter, "a message wakes the waiter that it is for, and no other");
        latencies.push(at.saturating_duration_since(acknowledged).as_secs_f64() * 1e3);
        if latencies.len() % 50 == 0 {
            let from = latencies.len() - 50;
            halves.push(percentile(&mut latencies[from..].to_vec(), 0.5) / MILLISECONDS);
        }
        tokio::time::sleep(MESSAGE_INTERVAL).await;
    }
    drop(answered);
    store.remove().await;
    let middle = percentile(&mut latencies, 0.5);
    Figure {
        what,
        engine: engine.name(),
        unit: "ms",
        value: middle,
        yardstick: MILLISECONDS,
        ratio: middle / MILLISECONDS,
        spread: spread(&halves),
        target: Some(Target::AtMost(1.0)),
        notes: vec![format!(
            "{WAITERS} waiters, {} messages; 99 % within {:.1} ms",
            latencies.len(),
            percentile(&mut latencies, 0.99)
        )],
    }
}

fn recipient(waiter: usize, mailboxes: usize) -> String {
    format!("bench-{}+waiter{waiter}@agents.test", waiter % mailboxes)
}

/// The waiters, all on one thread.
struct Waiters {
    address: SocketAddr,
    key: String,
    public_ids: Vec<String>,
    answers: mpsc::Sender<(usize, Instant)>,
}

impl Waiters {
    fn wait(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("the client's runtime starts").block_on(async {
            let waiters = Arc::new(self);
            let mut tasks = tokio::task::JoinSet::new();
            for waiter in 0..WAITERS {
                tasks.spawn(waiters.clone().wait_as(waiter));
            }
            while tasks.join_next().await.is_some() {}
        });
    }

    /// Waits for one message after the other, until the measurement ends.
    async fn wait_as(self: Arc<Self>, waiter: usize) {
        let mailboxes = self.public_ids.len();
        let body = format!("{{\"to\":\"{}\",\"timeout_seconds\":120}}", recipient(waiter, mailboxes));
        let request = format!(
            "POST /api/v1/mailboxes/{}/emails/wait HTTP/1.1\r\nHost: {}\r\nX-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.public_ids[waiter % mailboxes],
            self.address,
            self.key,
            body.len()
        );
        let mut connection = Connection::open(self.address).await;
        loop {
            // The store closes as soon as the measurement ends.
            let (status, answer) = tokio::select! {
                answer = connection.ask(&request) => answer,
                () = self.answers.closed() => return,
            };
            let at = Instant::now();
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
            let matched = answer.windows(9).any(|window| window == b"\"matched\"");
            if matched && self.answers.send((waiter, at)).await.is_err() {
                return;
            }
        }
    }
}
