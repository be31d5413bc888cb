//! What the index of a workspace costs a node: the first recall, which reads it from the store, and its memory; beside the
//! recalls after it, and beside a statement that looks at all rows of the workspace, which is the least that a recall
//! without an index at the node would cost.

use std::{
    io::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use operations::knowledge;
use store::memory as stored;

use super::drawn::{DrawnEmbedder, of_json, request};
use crate::{
    fill,
    load::{Connection, End, Load},
    machine,
    measured_store::{Engine, MeasuredStore},
    messages,
    options::Options,
    program::{self, Disk, RunningProgram},
    report::Figure,
    service::Service,
    stats::{as_float, median, percentile, spread},
    turns,
};

const AMONG_ALL: &str = "recall without the embedding : 15 ms";
const MILLISECONDS: f64 = 15.0;
/// Characters of a document that snippets are cut from. A document may have 2,000 snippets.
const DOCUMENT_CHARS: usize = 900_000;
/// Characters that each snippet adds: ten lines, of which the next one repeats two.
const SNIPPET_CHARS: usize = 520;
/// Recalls after the first one, and those that warm up.
const WARM_RECALLS: u64 = 1000;
const WARM_UP: u64 = 20;
/// How often the statement is sent.
const LOOKS: usize = 20;
/// How often the program is started to see its memory, and how long it rests before that.
const STARTS: usize = 3;
const REST: Duration = Duration::from_secs(4);
/// What a node assumes that a passage takes, in megabytes.
const PASSAGE_MEGABYTES: f64 = 0.0008;

/// How many snippets a workspace has, and the names of the rows about it.
struct Size {
    snippets: usize,
    first: &'static str,
    look: &'static str,
    memory: &'static str,
}

impl Size {
    fn is_wanted(&self, options: &Options) -> bool {
        let mut rows = [self.first, self.look, self.memory, AMONG_ALL].into_iter();
        self.snippets <= options.snippets() && rows.any(|row| options.wants(row))
    }
}

const SIZES: [Size; 3] = [
    Size {
        snippets: 1_000,
        first: "first recall at a node : later ones, 1,000 snippets",
        look: "look at 1,000 rows : recall with an index",
        memory: "memory of an index : 0.8 KB each, 1,000 snippets",
    },
    Size {
        snippets: 10_000,
        first: "first recall at a node : later ones, 10,000 snippets",
        look: "look at 10,000 rows : recall with an index",
        memory: "memory of an index : 0.8 KB each, 10,000 snippets",
    },
    Size {
        snippets: 100_000,
        first: "first recall at a node : later ones, 100,000 snippets",
        look: "look at 100,000 rows : recall with an index",
        memory: "memory of an index : 0.8 KB each, 100,000 snippets",
    },
];

pub(super) async fn measure(engine: Engine, options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for size in SIZES.iter().filter(|size| size.is_wanted(options)) {
        figures.extend(measure_size(engine, size, options).await);
    }
    figures
}

async fn measure_size(engine: Engine, size: &Size, options: &Options) -> Vec<Figure> {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open_with(&store, Arc::new(DrawnEmbedder)).await;
    let (address, serving) = service.serve().await;
    let snippets = fill(&service, address, size.snippets).await;
    let load = recalls(address, &service.key, 1);
    load.run(End::AfterRequests(WARM_UP)).await;
    let mut figures = Vec::new();
    if size.snippets == options.snippets() {
        let mut figure = turns::within(AMONG_ALL, engine, MILLISECONDS, &load, options.turns()).await;
        figure.notes.push(format!("{snippets} snippets"));
        figures.push(figure);
    }
    let later = Recalls::later(&store, &load).await;
    let first = Recalls::first(&store, &service, options.cold_recalls()).await;
    let mut figure = figure(size.first, engine, &first.latencies, later.median());
    figure.notes.extend([first.describe("the first one"), later.describe("later ones")]);
    figures.push(figure);
    figures.push(look(engine, size, &service, later.median()).await);
    serving.abort();
    let key = service.key.clone();
    service.app.meter().close().await;
    drop((service, load));
    figures.push(memory(engine, size, snippets, &store, &key, options).await);
    store.remove().await;
    figures
}

/// Milliseconds against those of a recall with an index.
fn figure(what: &'static str, engine: Engine, milliseconds: &[f64], yardstick: f64) -> Figure {
    let (least, most) = spread(milliseconds);
    Figure {
        what,
        engine: engine.name(),
        unit: "ms",
        value: median(milliseconds),
        yardstick,
        ratio: median(milliseconds) / yardstick,
        spread: (least / yardstick, most / yardstick),
        target: None,
        notes: Vec::new(),
    }
}

/// What recalls cost.
struct Recalls {
    /// Milliseconds of the first ones; of later ones their median.
    latencies: Vec<f64>,
    p99: f64,
    /// CPU time of each in milliseconds: of the node, and of PostgreSQL.
    node_cpu: f64,
    store_cpu: f64,
}

impl Recalls {
    /// Each at another node, which has connections and the key but no index.
    async fn first(store: &MeasuredStore, service: &Service, count: usize) -> Self {
        let (mut latencies, mut node_cpu, mut store_cpu) = (Vec::new(), 0.0, 0.0);
        for number in 0..count {
            let node = service.another_node(store, Arc::new(DrawnEmbedder)).await;
            let (address, serving) = node.serve().await;
            let documents = format!(
                "GET /api/v1/rag/documents?limit=1 HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\n\r\n",
                node.key
            );
            of_json(&Connection::open(address).await.ask(&documents).await);
            let processes = store.server_processes().await;
            let before = cpu_milliseconds(&processes);
            let load = recalls(address, &node.key, 1 + number as u64);
            let outcome = load.run(End::AfterRequests(1)).await;
            store_cpu += cpu_milliseconds(&processes) - before;
            node_cpu += outcome.server_cpu / 1e3;
            latencies.push(outcome.median_latency);
            // What it has read is freed with it.
            serving.abort();
        }
        let p99 = percentile(&mut latencies, 0.99);
        let each = as_float(count);
        Self { latencies, p99, node_cpu: node_cpu / each, store_cpu: store_cpu / each }
    }

    async fn later(store: &MeasuredStore, load: &Load) -> Self {
        let processes = store.server_processes().await;
        let before = cpu_milliseconds(&processes);
        let outcome = load.run(End::AfterRequests(WARM_RECALLS)).await;
        let store_cpu = (cpu_milliseconds(&processes) - before) / outcome.requests;
        Self {
            latencies: vec![outcome.median_latency],
            p99: outcome.p99_latency,
            node_cpu: outcome.server_cpu / 1e3,
            store_cpu,
        }
    }

    fn median(&self) -> f64 {
        median(&self.latencies)
    }

    fn describe(&self, which: &str) -> String {
        format!(
            "{which}: {:.1} ms, 99 % within {:.1} ms; CPU {:.1} ms of the node, {:.1} ms of PostgreSQL",
            self.median(),
            self.p99,
            self.node_cpu,
            self.store_cpu
        )
    }
}

fn cpu_milliseconds(processes: &[u32]) -> f64 {
    processes.iter().map(|process| machine::cpu_of(*process).as_secs_f64() * 1e3).sum()
}

/// A statement that reads the vector of each passage of the workspace and returns one number.
async fn look(engine: Engine, size: &Size, service: &Service, with_index: f64) -> Figure {
    let mut milliseconds = Vec::new();
    for _ in 0..LOOKS {
        let started = Instant::now();
        let look = async |tx: &mut store::Tx| stored::count_codes_without(tx, 0).await;
        let found = service.app.db().read(&service.workspace, look).await.expect("rows can be read");
        assert!(found > 0, "there are rows");
        milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
    }
    figure(size.look, engine, &milliseconds, with_index)
}

/// What the program takes more after its first recall than before it. Its model has been loaded by then.
async fn memory(
    engine: Engine,
    size: &Size,
    snippets: usize,
    store: &MeasuredStore,
    key: &str,
    options: &Options,
) -> Figure {
    let (mut megabytes, mut milliseconds) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        let running = RunningProgram::start(&program::path(options), store, Disk::AsItIs).await;
        let body = format!("{{\"text\":\"The text number {number} loads the model.\"}}");
        let mut connection = Connection::open(running.address).await;
        let memory = request(running.address, key, "/api/v1/rag/remember", &body);
        of_json(&connection.ask(&memory).await);
        tokio::time::sleep(REST).await;
        let before = running.anonymous_megabytes();
        let load = recalls(running.address, key, 1);
        let outcome = load.run(End::AfterRequests(1)).await;
        milliseconds.push(outcome.median_latency);
        load.run(End::AfterRequests(WARM_UP)).await;
        tokio::time::sleep(REST).await;
        megabytes.push(running.anonymous_megabytes() - before);
        running.stop();
    }
    let assumed = as_float(snippets) * PASSAGE_MEGABYTES;
    let (least, most) = spread(&megabytes);
    Figure {
        what: size.memory,
        engine: engine.name(),
        unit: "MB",
        value: median(&megabytes),
        yardstick: assumed,
        ratio: median(&megabytes) / assumed,
        spread: (least / assumed, most / assumed),
        target: None,
        notes: vec![format!(
            "{snippets} snippets; the first recall of the program, with the embedding, took {:.1} ms",
            median(&milliseconds)
        )],
    }
}

/// Adds documents until the workspace has so many snippets, and returns how many it has.
async fn fill(service: &Service, address: SocketAddr, wanted: usize) -> usize {
    let mut connection = Connection::open(address).await;
    let (mut snippets, mut round) = (0, 0);
    while snippets < wanted {
        let text = messages::prose(round, DOCUMENT_CHARS.min((wanted - snippets) * SNIPPET_CHARS));
        let body =
            serde_json::json!({ "name": format!("book {round}"), "type": "text", "text": text }).to_string();
        let added = connection.ask(&request(address, &service.key, "/api/v1/rag/documents", &body)).await;
        let id = of_json(&added)["id"].as_str().expect("a document has an id").to_owned();
        while knowledge::worker::index_next(&service.app).await.expect("documents are indexed") {}
        let asked = format!(
            "GET /api/v1/rag/documents/{id} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\n\r\n",
            service.key
        );
        let document = of_json(&connection.ask(&asked).await);
        assert_eq!(document["status"], "ready", "the document is indexed: {document}");
        let cut = document["chunk_count"].as_u64().expect("a document has a number of chunks");
        snippets += usize::try_from(cut).expect("a small number");
        round += 1;
        eprintln!("{snippets} snippets");
    }
    snippets
}

/// One connection that recalls, with five other words each time.
fn recalls(address: SocketAddr, key: &str, first: u64) -> Load {
    let (key, state) = (key.to_owned(), AtomicU64::new(first));
    let next_request = move |buffer: &mut Vec<u8>| {
        let mut random = state.fetch_add(1, Ordering::Relaxed);
        let mut word = || {
            let rank = 20 + fill::next_random(&mut random) % 3000;
            messages::word(usize::try_from(rank).unwrap_or_default())
        };
        let query: Vec<String> = (0..5).map(|_| word().clone()).collect();
        let body = format!("{{\"query\":\"{}\"}}", query.join(" "));
        let _ = write!(buffer, "{}", request(address, &key, "/api/v1/rag/recall", &body));
    };
    Load {
        address,
        connections: 1,
        next_request: Arc::new(next_request),
        expected_status: 200,
        processes: Vec::new(),
    }
}
