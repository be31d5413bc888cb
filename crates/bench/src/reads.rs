//! Reads of mail at 32 connections in a mailbox whose messages all have their own content: against a bare handler over
//! plain rows, a bare handler that opens the same sealed content, and servers as people make them at home.

mod draw;
mod home_made;
mod plain;

use std::{fmt::Write as _, net::SocketAddr, sync::Arc};

use self::{
    draw::{Draw, Sequence},
    home_made::HomeMade,
    plain::PlainFile,
};
use crate::{
    bare::{BareHandler, PAGE_SIZE},
    load::{Connection, Load, Outcome},
    measured_store::{Engine, MeasuredStore},
    messages::{self, Filling},
    options::{Options, ReadSide},
    report::{Figure, Target},
    service::{self, Service},
    stats::{median, spread},
    turns::{self, Side},
};

const CONNECTIONS: usize = 32;
const THREAD_SIZE: usize = 3;
const HITS: usize = 20;
/// Words that are in about every third message, by rank.
const COMMON_RANKS: (u64, u64) = (20, 60);
/// Words that are in about every two hundredth.
const RARE_RANKS: (u64, u64) = (1500, 3000);
/// How much wider the latencies may spread than those of the bare handler.
const SPREAD_TARGET: Target = Target::AtMost(1.5);

/// What a request is about.
#[derive(Clone, Copy)]
enum Kind {
    Folders,
    Page,
    Message(Draw),
    Thread(Draw),
    Search((u64, u64)),
}

/// A kind of request, with its names in the table and its targets against each yardstick.
struct Case {
    kind: Kind,
    what: [&'static str; 4],
    plain: f64,
    /// Whether the sealed content is opened, so that the handler that only does this is a yardstick.
    opens: bool,
    home_made: f64,
}

const fn case(kind: Kind, what: [&'static str; 4], plain: f64, opens: bool, home_made: f64) -> Case {
    Case { kind, what, plain, opens, home_made }
}

/// The names of a case against plain rows, opened contents and home-made servers, and of its spread.
macro_rules! names {
    ($name:literal) => {
        [
            concat!($name, " : plain rows"),
            concat!($name, " : opened contents"),
            concat!($name, " : home-made"),
            concat!($name, ", p99 / p50 : plain rows"),
        ]
    };
}

const CASES: [Case; 8] = [
    case(Kind::Folders, names!("small keyed read"), 0.6, false, 1.0),
    case(Kind::Page, names!("page of 50, by bytes"), 0.8, false, 1.0),
    case(Kind::Message(Draw::Uniform), names!("one message"), 0.35, true, 1.0),
    case(Kind::Message(Draw::Zipf), names!("one message, Zipf"), 0.5, true, 1.0),
    case(Kind::Thread(Draw::Uniform), names!("thread of three"), 0.35, true, 1.0),
    case(Kind::Thread(Draw::Zipf), names!("thread of three, Zipf"), 0.5, true, 1.0),
    case(Kind::Search(RARE_RANKS), names!("search, rare word"), 0.2, false, 1.5),
    case(Kind::Search(COMMON_RANKS), names!("search, common word"), 0.2, false, 1.5),
];

/// The service must reach this share of a handler that opens the same content.
const OPENED_TARGET: f64 = 0.8;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let stage = Stage::new(*engine, options.many_messages()).await;
        for case in CASES.iter().filter(|case| options.wants(case.what[0])) {
            match options.only {
                Some(side) => stage.show_alone(case, side, options).await,
                None => figures.extend(stage.compare(case, options).await),
            }
        }
        stage.store.remove().await;
    }
    figures
}

/// The same mailbox behind every kind of server.
struct Stage {
    engine: Engine,
    store: MeasuredStore,
    service: Service,
    address: SocketAddr,
    opened: SocketAddr,
    /// Only beside SQLite: its yardsticks are files of SQLite too.
    plain: Option<SocketAddr>,
    home_made: Vec<HomeMade>,
    mailbox: String,
    messages: usize,
}

impl Stage {
    async fn new(engine: Engine, messages: usize) -> Self {
        let store = MeasuredStore::new(engine).await;
        let service = Service::open(&store).await;
        let filling = Filling { messages, indexed: true, distinct: true, thread_size: THREAD_SIZE };
        let mailbox = messages::fill(&service, filling).await;
        let address = service.listen().await;
        let workspace = service.workspace.clone();
        let key = service.app.data_key(&workspace).await.expect("the workspace has a key");
        let bare = BareHandler { db: service.app.db().clone(), key, workspace, cursor: String::new() };
        let opened = service::listen(bare.router()).await;
        let (mut plain, mut home_made) = (None, Vec::new());
        if engine == Engine::Sqlite {
            let file = PlainFile(store.folder().join("plain.db"));
            file.fill(&service.key, &mailbox, messages, THREAD_SIZE);
            home_made = HomeMade::start_all(&file).await;
            plain = Some(service::listen(file.router()).await);
        }
        Self { engine, store, service, address, opened, plain, home_made, mailbox, messages }
    }

    /// The requests of a kind to a server.
    fn load(&self, address: SocketAddr, kind: Kind) -> Load {
        let (key, count, sequence) = (self.service.key.clone(), self.messages, Sequence::new());
        let mailbox = format!("/api/v1/mailboxes/{}", self.mailbox);
        let next_request = move |buffer: &mut Vec<u8>| {
            let mut path = mailbox.clone();
            let random = sequence.next();
            let _ = match kind {
                Kind::Folders => write!(path, "/folders"),
                Kind::Page => write!(path, "/emails?limit={PAGE_SIZE}"),
                Kind::Message(draw) => {
                    write!(path, "/emails/{}", messages::email_id(draw.number(random, count)))
                }
                Kind::Thread(draw) => {
                    let number = draw.number(random, count);
                    write!(path, "/threads/{}", messages::thread_id(number, THREAD_SIZE))
                }
                Kind::Search((from, to)) => {
                    let rank = usize::try_from(from + random % (to - from)).unwrap_or_default();
                    write!(path, "/search?query={}&limit={HITS}", messages::word(rank))
                }
            };
            let head = "Accept: application/json\r\nX-API-Key:";
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{head} {key}\r\n\r\n");
            buffer.extend_from_slice(request.as_bytes());
        };
        Load {
            address,
            connections: CONNECTIONS,
            next_request: Arc::new(next_request),
            expected_status: 200,
            processes: Vec::new(),
        }
    }

    /// The first answer to a kind of request.
    async fn first_answer(&self, address: SocketAddr, kind: Kind) -> serde_json::Value {
        let mut request = Vec::new();
        (self.load(address, kind).next_request)(&mut request);
        let request = String::from_utf8(request).expect("a request is text");
        let (status, body) = Connection::open(address).await.ask(&request).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("an answer is JSON")
    }

    /// One side of a case, for a profiler.
    async fn show_alone(&self, case: &Case, side: ReadSide, options: &Options) {
        let address = if side == ReadSide::Service { Some(self.address) } else { self.plain };
        turns::show_alone(&self.load(address.unwrap_or(self.opened), case.kind), options.requests).await;
    }

    /// A case against all its yardsticks, which take turns with the service.
    async fn compare(&self, case: &Case, options: &Options) -> Vec<Figure> {
        self.check(case).await;
        let own = self.load(self.address, case.kind);
        let mut others: Vec<(usize, &'static str, Option<Target>, Load)> = Vec::new();
        if let Some(plain) = self.plain {
            others.push((0, "plain", Some(Target::AtLeast(case.plain)), self.load(plain, case.kind)));
        }
        if case.opens {
            others.push((
                1,
                "opened",
                Some(Target::AtLeast(OPENED_TARGET)),
                self.load(self.opened, case.kind),
            ));
        }
        for server in &self.home_made {
            let load = Load { processes: server.processes(), ..self.load(server.address, case.kind) };
            others.push((2, server.name, Some(Target::AtLeast(case.home_made)), load));
        }
        let sides: Vec<Side<'_>> = std::iter::once(Side { name: "service", load: &own })
            .chain(others.iter().map(|(_, name, _, load)| Side { name, load }))
            .collect();
        let mut outcomes = turns::take_turns(&sides, options).await;
        let measured = outcomes.remove(0);
        let by_bytes = matches!(case.kind, Kind::Page);
        let mut figures = Vec::new();
        for ((index, name, target, _), outcomes) in others.iter().zip(&outcomes) {
            let comparison = Rates { what: case.what[*index], by_bytes, target: *target };
            figures.push(comparison.figure(self.engine, (&measured, "service"), (outcomes, name)));
            if *index == 0 {
                figures.push(spread_figure(case.what[3], self.engine, &measured, outcomes));
            }
        }
        figures
    }

    /// Both answers are about the same messages.
    async fn check(&self, case: &Case) {
        let ours = self.first_answer(self.address, case.kind).await;
        if case.opens {
            assert_eq!(ours, self.first_answer(self.opened, case.kind).await, "the same answer");
        }
        let ids = |answer: &serde_json::Value| -> Vec<serde_json::Value> {
            let all = answer.get("emails").unwrap_or(answer);
            let all = all.as_array().cloned().unwrap_or_else(|| vec![all.clone()]);
            all.iter().map(|one| one["id"].clone()).collect()
        };
        let servers = self.plain.into_iter().chain(self.home_made.iter().map(|server| server.address));
        for server in servers {
            let theirs = self.first_answer(server, case.kind).await;
            if !matches!(case.kind, Kind::Folders) {
                assert_eq!(ids(&ours), ids(&theirs), "the same messages");
            }
        }
        if matches!(case.kind, Kind::Search(_)) {
            assert_eq!(ids(&ours).len(), HITS, "a full page");
            let passages = &ours["emails"][0]["highlights"];
            assert!(passages.to_string().contains("**"), "with passages: {passages}");
        }
    }
}

/// How rates are compared.
struct Rates {
    what: &'static str,
    by_bytes: bool,
    target: Option<Target>,
}

impl Rates {
    fn figure(
        &self,
        engine: Engine,
        (own, own_name): (&[Outcome], &str),
        (others, name): (&[Outcome], &str),
    ) -> Figure {
        let rate = |outcome: &Outcome| {
            if self.by_bytes { outcome.bytes_per_second / 1e6 } else { outcome.requests_per_second }
        };
        let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| rate(own) / rate(other)).collect();
        Figure {
            what: self.what,
            engine: engine.name(),
            unit: if self.by_bytes { "MB/s" } else { "/s" },
            value: turns::median_of(own, rate),
            yardstick: turns::median_of(others, rate),
            ratio: median(&ratios),
            spread: spread(&ratios),
            target: self.target,
            notes: vec![turns::describe(own_name, own), turns::describe(name, others)],
        }
    }
}

/// How far the slowest requests are from the usual ones, against the same of a yardstick.
fn spread_figure(what: &'static str, engine: Engine, own: &[Outcome], others: &[Outcome]) -> Figure {
    let width = |outcome: &Outcome| outcome.p99_latency / outcome.median_latency;
    let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| width(own) / width(other)).collect();
    Figure {
        what,
        engine: engine.name(),
        unit: "×",
        value: turns::median_of(own, width),
        yardstick: turns::median_of(others, width),
        ratio: median(&ratios),
        spread: spread(&ratios),
        target: Some(SPREAD_TARGET),
        notes: Vec::new(),
    }
}
