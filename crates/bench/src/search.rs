//! Full-text search through the whole service, and importing an mbox file with the real command.

use std::{
    io::Write as _,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::{
    fill,
    load::{Connection, End, Load},
    measured_store::{Engine, MeasuredStore},
    messages::{self, Filling},
    options::Options,
    program::{self, Disk},
    report::{Figure, Target},
    service::Service,
    stats::{median, spread},
    turns,
    wire::Wire,
};

const RESULTS: usize = 25;
const MILLISECONDS: f64 = 10.0;
/// Ranks of words that are in many messages, about every third.
const COMMON_RANKS: (u64, u64) = (20, 60);
/// The same for words that are in about 500 messages, however many there are: at 100,000 messages starting with
/// this rank.
const RARE_RANK: usize = 1500;
const MESSAGES_PER_SECOND: f64 = 1000.0;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(measure_engine(*engine, options).await);
    }
    figures
}

async fn measure_engine(engine: Engine, options: &Options) -> [Figure; 2] {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let filling = Filling { indexed: true, ..Filling::new(options.many_messages()) };
    let public_id = messages::fill(&service, filling).await;
    let address = service.listen().await;
    let path = format!("/api/v1/mailboxes/{public_id}/search");
    let rare = (RARE_RANK * options.many_messages() / 100_000) as u64;
    let kinds = [
        ("common and rare word : 10 ms", COMMON_RANKS, (rare, 2 * rare)),
        ("two common words : 10 ms", COMMON_RANKS, COMMON_RANKS),
    ];
    let mut figures = Vec::new();
    for (what, first, second) in kinds {
        let load = searches(address, &service.key, &path, first, second);
        let mut request = Vec::new();
        (load.next_request)(&mut request);
        let request = String::from_utf8(request).expect("a request is text");
        let (status, body) = Connection::open(address).await.ask(&request).await;
        let page: serde_json::Value = serde_json::from_slice(&body).expect("a page is JSON");
        assert_eq!((status, page["emails"].as_array().map(Vec::len)), (200, Some(RESULTS)), "a full page");
        load.run(End::AfterRequests(50)).await;
        let mut figure = turns::within(what, engine, MILLISECONDS, &load, options.turns()).await;
        let (messages, matching) = (options.many_messages(), &page["totalCount"]);
        figure.notes.push(format!("{messages} messages, of which {matching} match the first query"));
        figures.push(figure);
    }
    store.remove().await;
    figures.try_into().unwrap_or_else(|_| unreachable!("two kinds of queries"))
}

/// One connection that searches for two words, different ones each time.
fn searches(address: SocketAddr, key: &str, path: &str, first: (u64, u64), second: (u64, u64)) -> Load {
    let (key, path, state) = (key.to_owned(), path.to_owned(), AtomicU64::new(1));
    let next_request = move |buffer: &mut Vec<u8>| {
        let mut random = state.fetch_add(1, Ordering::Relaxed);
        let mut draw = |(from, to): (u64, u64)| {
            let rank = from + fill::next_random(&mut random) % (to - from);
            messages::word(usize::try_from(rank).unwrap_or_default())
        };
        let (one, other) = (draw(first), draw(second));
        let _ = write!(
            buffer,
            "GET {path}?query={one}+{other}&limit={RESULTS} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\r\n"
        );
    };
    Load {
        address,
        connections: 1,
        next_request: std::sync::Arc::new(next_request),
        expected_status: 200,
        processes: Vec::new(),
    }
}

/// Imports mbox files of 10 KB messages with the real command; on PostgreSQL also against SQLite.
pub(crate) async fn measure_import(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let mut figures = Vec::new();
    for engine in &options.engines {
        if options.wants(IMPORT) || options.wants(IMPORT_AGAINST_SQLITE) {
            figures.extend(measure_import_speed(*engine, options, &program).await);
        }
    }
    figures
}

const IMPORT: &str = "imported messages : 1,000 /s";
const IMPORT_AGAINST_SQLITE: &str = "imported messages : SQLite";

async fn measure_import_speed(engine: Engine, options: &Options, program: &Path) -> Vec<Figure> {
    let store = store_to_import_to(engine).await;
    let other = if engine == Engine::Sqlite { None } else { Some(store_to_import_to(Engine::Sqlite).await) };
    let count = options.imported_messages();
    let (mut speeds, mut of_sqlite) = (Vec::new(), Vec::new());
    for round in 0..options.rounds().min(3) {
        speeds.push(import(program, &store, round, count, None).await);
        if let Some(other) = &other {
            of_sqlite.push(import(program, other, round, count, None).await);
        }
    }
    store.remove().await;
    let (least, most) = spread(&speeds);
    let mut figures = vec![Figure {
        what: IMPORT,
        engine: engine.name(),
        unit: "/s",
        value: median(&speeds),
        yardstick: MESSAGES_PER_SECOND,
        ratio: median(&speeds) / MESSAGES_PER_SECOND,
        spread: (least / MESSAGES_PER_SECOND, most / MESSAGES_PER_SECOND),
        // On PostgreSQL the target is a part of SQLite's speed.
        target: (engine == Engine::Sqlite).then_some(Target::AtLeast(1.0)),
        notes: vec![format!("{count} messages of 10 KB in each file, the start of the program included")],
    }];
    if let Some(other) = other {
        other.remove().await;
        let (rates, target) = ((&speeds[..], &of_sqlite[..]), Some(Target::AtLeast(0.6)));
        figures.push(Figure::of_rates(IMPORT_AGAINST_SQLITE, engine, rates, target));
    }
    figures
}

async fn store_to_import_to(engine: Engine) -> MeasuredStore {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
    service.app.meter().close().await;
    store
}

/// Imports a file of messages, through `wire` if given, and returns the messages per second.
pub(crate) async fn import(
    program: &Path,
    store: &MeasuredStore,
    round: usize,
    count: usize,
    wire: Option<&Wire>,
) -> f64 {
    let file = store.folder().join("messages.mbox");
    write_mbox(&file, round, count).expect("the mbox file can be written");
    let file = std::path::absolute(file).expect("the working directory is known");
    let mut command = program::command(program, store, Disk::AsItIs);
    command.arg("import").arg("bench-0@agents.test").arg(file);
    if let Some(wire) = wire {
        command.env("AGENT_MAILBOX__DATABASE__URL", &wire.url);
    }
    let started = Instant::now();
    let ended = tokio::task::spawn_blocking(move || command.output()).await.expect("the command runs");
    let took = started.elapsed().as_secs_f64();
    let ended = ended.expect("the program is there: build it, or name it with --program");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let count = count as f64;
    count / took
}

fn write_mbox(path: &Path, round: usize, count: usize) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for n in 0..count {
        let text = messages::prose(round * count + n, 10_000);
        write!(
            file,
            "From customer@remote.test Mon Jul 13 10:00:00 2026\nFrom: Customer {n} <customer-{n}@remote.test>\n\
             To: bench-0@agents.test\nSubject: Order {round}.{n}\nMessage-ID: <{round}.{n}@remote.test>\n\
             Date: Mon, 13 Jul 2026 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\n"
        )?;
    }
    file.flush()
}
