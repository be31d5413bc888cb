//! What a message costs PostgreSQL: its processor time, what it writes to its log, and what it is asked.

use std::time::{Duration, Instant};

use store::{Db, search::count_marked};

use crate::{
    fill, machine,
    measured_store::{Engine, MeasuredStore, administer},
    options::Options,
    program::{self, Disk, RunningProgram},
    receive,
    report::{Figure, Target},
    search,
    service::Service,
    wire::{Wire, WireTraffic},
};

/// Processor time for a message, in milliseconds: while messages are delivered, and until all of them are indexed.
const DELIVERY_MILLISECONDS: f64 = 0.7;
const INDEXED_MILLISECONDS: f64 = 1.3;
/// What is written to the log for a message, without full-page images, in kilobytes.
const LOG_KILOBYTES: f64 = 35.0;
/// What an imported message took before PostgreSQL was looked at as closely as SQLite.
const STATEMENTS_BEFORE: f64 = 15.3;
const ROUND_TRIPS_BEFORE: f64 = 7.0;
/// How long the index may take.
const INDEX_TIMEOUT: Duration = Duration::from_mins(2);
/// Sessions that deliver messages.
const SESSIONS: usize = 32;
/// Messages that connections, their statements and caches are warmed up with.
const WARM_UP: usize = 100;

/// The rows about a way that messages come in.
struct Rows {
    delivery_cpu: &'static str,
    indexed_cpu: &'static str,
    log: &'static str,
    images: &'static str,
    statements: &'static str,
    round_trips: &'static str,
    /// Whether the limits are meant for these messages.
    has_targets: bool,
}

impl Rows {
    fn are_wanted(&self, options: &Options) -> bool {
        let all =
            [self.delivery_cpu, self.indexed_cpu, self.log, self.images, self.statements, self.round_trips];
        all.iter().any(|row| options.wants(row))
    }
}

const OF_IMPORT: Rows = Rows {
    delivery_cpu: "PostgreSQL's CPU time of an import, a message : 0.7 ms",
    indexed_cpu: "PostgreSQL's CPU time of an import until indexed, a message : 1.3 ms",
    log: "WAL of an imported message without page images : 35 KB",
    images: "page images in the WAL of an imported message : its other WAL",
    statements: "statements of an imported message : 15.3",
    round_trips: "round trips of an imported message : 7",
    has_targets: true,
};

const OF_RECEIVE: Rows = Rows {
    delivery_cpu: "PostgreSQL's CPU time of receiving, a message : 0.7 ms",
    indexed_cpu: "PostgreSQL's CPU time of receiving until indexed, a message : 1.3 ms",
    log: "WAL of a received message without page images : 35 KB",
    images: "page images in the WAL of a received message : its other WAL",
    statements: "statements of a received message : 15.3",
    round_trips: "round trips of a received message : 7",
    // The messages of `smtp-source` consist of few words.
    has_targets: false,
};

/// What imported messages cost PostgreSQL.
pub(crate) async fn measure_import(options: &Options) -> Vec<Figure> {
    let program = &program::path(options);
    if !options.engines.contains(&Engine::Postgres) || !OF_IMPORT.are_wanted(options) {
        return Vec::new();
    }
    let count = options.costed_messages();
    let store = store_with_mailboxes(1).await;
    search::import(program, &store, 0, WARM_UP, None).await;
    let meter = Meter::start().await;
    search::import(program, &store, 1, count, None).await;
    let delivered = meter.so_far().await;
    let running = RunningProgram::start(program, &store, Disk::AsItIs).await;
    wait_until_indexed(&store).await;
    running.stop();
    let indexed = meter.so_far().await;
    store.remove().await;

    let store = store_with_mailboxes(1).await;
    let wire = Wire::start(&store).await;
    search::import(program, &store, 0, WARM_UP, Some(&wire)).await;
    let few = wire.take();
    search::import(program, &store, 1, count + WARM_UP, Some(&wire)).await;
    // The second file has more messages; all else is the same.
    let traffic = wire.take().without(&few);
    store.remove().await;
    figures(&OF_IMPORT, count, (delivered, indexed), &traffic)
}

/// What messages over SMTP cost PostgreSQL.
pub(crate) async fn measure_receive(options: &Options) -> Vec<Figure> {
    let program = &program::path(options);
    if !options.engines.contains(&Engine::Postgres) || !OF_RECEIVE.are_wanted(options) {
        return Vec::new();
    }
    let count = options.costed_messages();
    let send = async |running: &RunningProgram, messages: usize| {
        receive::send_to(running.smtp, SESSIONS, messages, "bench-0@agents.test").await;
    };
    let store = store_with_mailboxes(1).await;
    let running = RunningProgram::start(program, &store, Disk::AsItIs).await;
    send(&running, WARM_UP).await;
    wait_until_indexed(&store).await;
    let meter = Meter::start().await;
    send(&running, count).await;
    let delivered = meter.so_far().await;
    wait_until_indexed(&store).await;
    let indexed = meter.so_far().await;
    running.stop();
    store.remove().await;

    let store = store_with_mailboxes(1).await;
    let wire = Wire::start(&store).await;
    let through_wire = [("DATABASE__URL", wire.url.clone())];
    let running = RunningProgram::start_with(program, &store, Disk::AsItIs, &through_wire).await;
    send(&running, WARM_UP).await;
    wait_until_indexed(&store).await;
    wire.take();
    send(&running, count).await;
    let traffic = wire.take();
    running.stop();
    store.remove().await;
    figures(&OF_RECEIVE, count, (delivered, indexed), &traffic)
}

async fn store_with_mailboxes(count: usize) -> MeasuredStore {
    let store = MeasuredStore::new(Engine::Postgres).await;
    let service = Service::open(&store).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, count).await;
    service.app.meter().close().await;
    store
}

/// Waits until the search index has all words.
async fn wait_until_indexed(store: &MeasuredStore) {
    let (db, started) = (Db::open(&store.location).await.expect("the store opens"), Instant::now());
    while db.system_read(async |tx| count_marked(tx, 1).await).await.expect("marks can be counted") > 0 {
        assert!(started.elapsed() < INDEX_TIMEOUT, "the search index is behind after {INDEX_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn figures(
    rows: &Rows,
    count: usize,
    (delivered, indexed): (Work, Work),
    traffic: &WireTraffic,
) -> Vec<Figure> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let (messages, each) = (count as f64, |number: u64| number as f64 / count as f64);
    let milliseconds = |work: &Work| work.cpu.as_secs_f64() * 1e3 / messages;
    let (log, images) = (indexed.log_bytes / messages / 1e3, indexed.image_bytes / messages / 1e3);
    let target = rows.has_targets.then_some(Target::AtMost(1.0));
    let mut all = vec![
        Figure::single(rows.delivery_cpu, ("ms", milliseconds(&delivered), DELIVERY_MILLISECONDS), target),
        Figure::single(rows.indexed_cpu, ("ms", milliseconds(&indexed), INDEXED_MILLISECONDS), target),
        Figure::single(rows.log, ("KB", log - images, LOG_KILOBYTES), target),
        Figure::single(rows.images, ("KB", images, log - images), None),
        Figure::single(rows.statements, ("", each(traffic.statements), STATEMENTS_BEFORE), None),
        Figure::single(rows.round_trips, ("", each(traffic.round_trips), ROUND_TRIPS_BEFORE), None),
    ];
    all[4].notes.push(format!(
        "and {:.1} that begin or end a transaction or a savepoint; those of background work are counted",
        each(traffic.brackets)
    ));
    all[2].notes.push(format!(
        "tables and indexes grow by {:.1} KB a message, with the room that PostgreSQL leaves free",
        indexed.stored_bytes / messages / 1e3
    ));
    if indexed.has_unknown_images {
        all[3].notes.push("each image is taken for a whole page: pg_walinspect is not installed".to_owned());
    }
    all
}

impl WireTraffic {
    fn without(self, other: &Self) -> Self {
        Self {
            statements: self.statements.saturating_sub(other.statements),
            brackets: self.brackets.saturating_sub(other.brackets),
            round_trips: self.round_trips.saturating_sub(other.round_trips),
            texts: self.texts,
        }
    }
}

/// What PostgreSQL has done.
struct Work {
    cpu: Duration,
    log_bytes: f64,
    image_bytes: f64,
    has_unknown_images: bool,
    /// By how much tables and indexes have grown.
    stored_bytes: f64,
}

/// Measures what PostgreSQL does, from its start on.
struct Meter {
    postmaster: u32,
    cpu: Duration,
    log_position: String,
    images: f64,
    can_inspect: bool,
    stored_bytes: f64,
}

const STORED: &str = "SELECT sum(pg_database_size(oid)) FROM pg_database";

/// A page, of which an image holds at most all.
const PAGE_BYTES: f64 = 8192.0;

impl Meter {
    async fn start() -> Self {
        let inspects = administer("CREATE EXTENSION IF NOT EXISTS pg_walinspect").await;
        // The first change of a page after a checkpoint writes an image of it, so every run begins with one.
        administer("CHECKPOINT").await.expect("the administrator may write a checkpoint");
        let helper = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let helper = text(helper).await.parse().expect("the number of a process");
        let postmaster = machine::parent_of(helper).expect("the server's processes are on this machine");
        Self {
            postmaster,
            cpu: machine::cpu_of_family(postmaster),
            log_position: text("SELECT pg_current_wal_flush_lsn()").await,
            images: number("SELECT wal_fpi FROM pg_stat_wal").await,
            can_inspect: inspects.is_ok(),
            stored_bytes: number(STORED).await,
        }
    }

    async fn so_far(&self) -> Work {
        let cpu = machine::cpu_of_family(self.postmaster).saturating_sub(self.cpu);
        let (from, now) = (&self.log_position, text("SELECT pg_current_wal_flush_lsn()").await);
        let log_bytes = number(&format!("SELECT pg_wal_lsn_diff('{now}', '{from}')")).await;
        let inspect = format!("SELECT coalesce(sum(fpi_size), 0) FROM pg_get_wal_stats('{from}', '{now}')");
        let inspected = if self.can_inspect { administer(&inspect).await.ok().flatten() } else { None };
        let image_bytes = match inspected.and_then(|bytes| bytes.parse().ok()) {
            Some(bytes) => bytes,
            None => (number("SELECT wal_fpi FROM pg_stat_wal").await - self.images) * PAGE_BYTES,
        };
        let stored_bytes = number(STORED).await - self.stored_bytes;
        Work { cpu, log_bytes, image_bytes, has_unknown_images: !self.can_inspect, stored_bytes }
    }
}

async fn text(sql: &str) -> String {
    administer(sql).await.expect("the server answers").expect("a value")
}

async fn number(sql: &str) -> f64 {
    text(sql).await.parse().expect("a number")
}

/// The row about statements of a message to a recipient elsewhere.
pub(crate) const SEND_STATEMENTS: &str = "statements of a message to one recipient elsewhere : 35";
/// The limit of them.
const MAX_SEND_STATEMENTS: f64 = 35.0;

/// The statements of messages to a recipient elsewhere.
pub(crate) fn statements_of_send(traffic: &WireTraffic, messages: u64) -> Figure {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let each = |number: u64| number as f64 / messages as f64;
    let values = ("", each(traffic.statements), MAX_SEND_STATEMENTS);
    let mut figure = Figure::single(SEND_STATEMENTS, values, Some(Target::AtMost(1.0)));
    figure.notes.push(format!(
        "{:.1} round trips, and {:.1} statements that begin or end a transaction; one message after the other",
        each(traffic.round_trips),
        each(traffic.brackets)
    ));
    figure
}
