//! What a message costs PostgreSQL when there are many nodes: statements, and connections.
//!
//! Twenty mailboxes take turns to get a message. It arrives at one node, and a call at the next one waits for it, so that
//! with several nodes every message has to wake another one.

use std::{collections::HashMap, net::SocketAddr, path::Path, time::Duration};

use crate::{
    fill,
    load::Connection,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    program::{self, Disk, RunningProgram},
    receive,
    report::{Figure, Target},
    service::Service,
    wire::{Wire, WireTraffic},
};

/// Mailboxes, each with a sender and a waiter.
const LANES: usize = 20;
/// Messages of each mailbox that warm up connections and caches.
const WARM_UP: usize = 5;
/// Connections of a node: twenty nodes must fit into PostgreSQL's default of 100.
const POOL: &str = "3";
/// How long nodes that nobody uses are watched.
const IDLE: Duration = Duration::from_secs(20);
/// How long nodes that have just come need until they know of each other and are at rest.
const SETTLE: Duration = Duration::from_secs(30);
/// How long a call waits for its message.
const WAIT_SECONDS: u64 = 60;

const OF_TWO: &str = "statements of a message at 2 nodes : at 1";
const OF_TWENTY: &str = "statements of a message at 20 nodes : at 1";
const IDLE_OF_TWENTY: &str = "statements a second of an idle node among 20 : of 1";
const CONNECTIONS: &str = "connections of a node among 20 : of 1";
/// Two nodes may cost a message so much more than one, and twenty so much more at rest.
const MAX_RATIO: f64 = 1.3;

/// Statements that are shown of what more nodes send.
const MAX_SHOWN_STATEMENTS: usize = 12;
/// Characters that are shown of a statement.
const MAX_SHOWN_CHARACTERS: usize = 110;

/// What so many nodes did.
struct Observed {
    nodes: usize,
    /// Statements of a message, from its arrival until its waiter has it.
    statements: f64,
    round_trips: f64,
    /// Statements a second of each node at rest.
    idle: f64,
    /// Connections of each node, with the one that listens.
    connections: f64,
    /// How often each statement was sent for a message, by its text.
    texts: HashMap<String, f64>,
}

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    if !options.engines.contains(&Engine::Postgres) {
        return Vec::new();
    }
    let program = program::path(options);
    let one = observe(&program, 1, options).await;
    let two = observe(&program, 2, options).await;
    let twenty = observe(&program, LANES, options).await;
    let target = Some(Target::AtMost(MAX_RATIO));
    let mut all = vec![
        Figure::single(OF_TWO, ("", two.statements, one.statements), target),
        // None: each of them gets a call of the workspace about once a second, which is metered on its own.
        Figure::single(OF_TWENTY, ("", twenty.statements, one.statements), None),
        Figure::single(IDLE_OF_TWENTY, ("/s", twenty.idle, one.idle), target),
        Figure::single(CONNECTIONS, ("", twenty.connections, one.connections), None),
    ];
    for (figure, observed) in all.iter_mut().zip([&two, &twenty, &one]) {
        figure.notes.push(observed.describe());
    }
    all[1].notes.extend(twenty.describe_more_than(&one));
    all
}

impl Observed {
    fn describe(&self) -> String {
        format!(
            "{} nodes: {:.1} statements and {:.1} round trips a message, {:.2} statements a second and {:.1} connections a \
             node at rest",
            self.nodes, self.statements, self.round_trips, self.idle, self.connections
        )
    }

    /// The statements that it has most of beyond another's, with how many of each for a message.
    fn describe_more_than(&self, other: &Self) -> Vec<String> {
        let more =
            |(sql, count): (&String, &f64)| (count - other.texts.get(sql).unwrap_or(&0.0), sql.clone());
        let mut differences: Vec<(f64, String)> = self.texts.iter().map(more).collect();
        differences.sort_by(|one, other| other.0.total_cmp(&one.0));
        let shown = differences.into_iter().take(MAX_SHOWN_STATEMENTS);
        shown.map(|(count, sql)| format!("{count:+.2} a message: {}", shorten(&sql))).collect()
    }
}

/// A statement in one line.
fn shorten(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_SHOWN_CHARACTERS).collect()
}

async fn observe(program: &Path, nodes: usize, options: &Options) -> Observed {
    let store = MeasuredStore::new(Engine::Postgres).await;
    let service = Service::open(&store).await;
    let mailboxes = fill::add_mailboxes(service.app.db(), &service.workspace, LANES).await;
    let key = service.key.clone();
    service.app.meter().close().await;
    drop(service);
    let wire = Wire::start(&store).await;
    let settings = [("DATABASE__URL", wire.url.clone()), ("DATABASE__POOL", POOL.to_owned())];
    let mut running = Vec::new();
    for _ in 0..nodes {
        running.push(RunningProgram::start_with(program, &store, Disk::AsItIs, &settings).await);
    }
    let mut lanes: Vec<Lane> = Vec::new();
    for (lane, mailbox) in mailboxes.iter().enumerate() {
        let (receiver, waiter) = (&running[lane % nodes], &running[(lane + 1) % nodes]);
        lanes.push(Lane::new(lane, mailbox, &key, receiver, waiter).await);
    }
    run(&mut lanes, WARM_UP).await;
    tokio::time::sleep(SETTLE).await;
    wire.take();
    tokio::time::sleep(IDLE).await;
    let at_rest = wire.take();
    let idle = each(&at_rest, IDLE.as_secs_f64());
    let started = tokio::time::Instant::now();
    let messages = options.costed_messages() / LANES;
    run(&mut lanes, messages).await;
    let (traffic, seconds) = (wire.take(), started.elapsed().as_secs_f64());
    let connections = store.server_processes().await.len();
    running.into_iter().for_each(RunningProgram::stop);
    store.remove().await;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let (all, nodes_f, connections) = ((messages * LANES) as f64, nodes as f64, connections as f64);
    let (statements, round_trips) = each(&traffic, all);
    // What nodes at rest would have asked in that time is not the messages' part.
    let rest = |sql: &str| count(&at_rest, sql) / IDLE.as_secs_f64() * seconds;
    let of_a_message = |sql: &String| (sql.clone(), (count(&traffic, sql) - rest(sql)) / all);
    let texts = traffic.texts.keys().map(of_a_message).collect();
    Observed {
        nodes,
        statements: statements - idle.0 * seconds / all,
        round_trips: round_trips - idle.1 * seconds / all,
        idle: idle.0 / nodes_f,
        connections: connections / nodes_f,
        texts,
    }
}

/// How often a statement was sent.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn count(traffic: &WireTraffic, sql: &str) -> f64 {
    traffic.texts.get(sql).copied().unwrap_or_default() as f64
}

/// Statements and round trips, divided.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn each(traffic: &WireTraffic, by: f64) -> (f64, f64) {
    (traffic.statements as f64 / by, traffic.round_trips as f64 / by)
}

/// A mailbox whose messages arrive at one node, while calls at another one wait for them.
struct Lane {
    recipient: String,
    smtp: SocketAddr,
    connection: Connection,
    /// The request up to its Content-Length.
    head: String,
    /// Where the next wait goes on, so that no message comes before it.
    cursor: String,
}

impl Lane {
    async fn new(
        lane: usize,
        mailbox: &str,
        key: &str,
        receiver: &RunningProgram,
        waiter: &RunningProgram,
    ) -> Self {
        let head = format!(
            "POST /api/v1/mailboxes/{mailbox}/emails/wait HTTP/1.1\r\nHost: {}\r\nX-API-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length:",
            waiter.address
        );
        let connection = Connection::open(waiter.address).await;
        let (recipient, smtp) = (format!("bench-{lane}@agents.test"), receiver.smtp);
        let mut lane = Self { recipient, smtp, connection, head, cursor: String::new() };
        lane.wait(serde_json::json!({ "timeout_seconds": 1 })).await;
        lane
    }

    /// Sends a message while a call waits for it, and returns when the call has it.
    async fn deliver_one(&mut self) {
        let (smtp, recipient) = (self.smtp, self.recipient.clone());
        let sent = tokio::spawn(async move { receive::send_to(smtp, 1, 1, &recipient).await });
        let wait = serde_json::json!({ "timeout_seconds": WAIT_SECONDS, "after": self.cursor });
        assert!(self.wait(wait).await, "the waiter gets its message");
        sent.await.expect("the message is sent");
    }

    /// Waits at most so long, and returns whether a message came.
    async fn wait(&mut self, input: serde_json::Value) -> bool {
        let body = input.to_string();
        let request = format!("{} {}\r\n\r\n{body}", self.head, body.len());
        let (status, answer) = self.connection.ask(&request).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        answer["cursor"].as_str().expect("an answer has a cursor").clone_into(&mut self.cursor);
        answer["outcome"] == "matched"
    }
}

/// Lets the lanes take turns until each has delivered so many messages. One message comes after the other: several at
/// once would share statements where they arrive at the same node, and not where each arrives at another one.
async fn run(lanes: &mut [Lane], messages: usize) {
    for _ in 0..messages {
        for lane in &mut *lanes {
            lane.deliver_one().await;
        }
    }
}
