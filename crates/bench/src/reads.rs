//! Reads of mail at 32 connections in a mailbox whose messages all have their own content: against a bare handler over
//! plain rows, a bare handler that opens the same sealed content, and servers as people make them at home.

mod draw;
mod growth;
mod home_made;
mod mailbox;
mod plain;

use std::net::SocketAddr;

use self::{
    draw::Draw,
    home_made::HomeMade,
    mailbox::{COMMON_RANKS, FilledMailbox, HITS, Kind, RARE_RANKS, THREAD_SIZE},
    plain::PlainFile,
};
use crate::{
    bare::BareHandler,
    load::{Connection, Load, Outcome},
    measured_store::Engine,
    options::{Options, ReadSide},
    report::{Figure, Target},
    service,
    stats::{median, spread},
    turns::{self, Side},
};

/// How much wider the latencies may spread than those of the bare handler.
const SPREAD_TARGET: Target = Target::AtMost(1.5);

/// A kind of request, with its names in the table and its targets against each yardstick.
struct Case {
    kind: Kind,
    what: [&'static str; 5],
    plain: f64,
    /// Whether the sealed content is opened, so that the handler that only does this is a yardstick.
    opens: bool,
    home_made: f64,
}

const fn case(kind: Kind, what: [&'static str; 5], plain: f64, opens: bool, home_made: f64) -> Case {
    Case { kind, what, plain, opens, home_made }
}

/// The names of a case against plain rows, opened contents and home-made servers, of its spread, and of a search against
/// home-made servers that show passages too.
macro_rules! names {
    ($name:literal) => {
        [
            concat!($name, " : plain rows"),
            concat!($name, " : opened contents"),
            concat!($name, " : home-made"),
            concat!($name, ", p99 / p50 : plain rows"),
            concat!($name, " : home-made with passages"),
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
        figures.extend(compare_all(*engine, options).await);
        figures.extend(growth::measure(*engine, options).await);
    }
    figures
}

/// The wanted cases against their yardsticks.
async fn compare_all(engine: Engine, options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    let wanted: Vec<&Case> = CASES.iter().filter(|case| options.wants(case.what[0])).collect();
    if wanted.is_empty() {
        return figures;
    }
    let stage = Stage::new(engine, options.many_messages()).await;
    for case in wanted {
        match options.only {
            Some(side) => stage.show_alone(case, side, options).await,
            None => figures.extend(stage.compare(case, options).await),
        }
    }
    stage.filled.store.remove().await;
    figures
}

/// The same mailbox behind every kind of server.
struct Stage {
    engine: Engine,
    filled: FilledMailbox,
    opened: SocketAddr,
    /// Only beside SQLite: its yardsticks are files of SQLite too.
    plain: Option<SocketAddr>,
    home_made: Vec<HomeMade>,
}

impl Stage {
    async fn new(engine: Engine, messages: usize) -> Self {
        let filled = FilledMailbox::new(engine, messages).await;
        let service = &filled.service;
        let workspace = service.workspace.clone();
        let key = service.app.data_key(&workspace).await.expect("the workspace has a key");
        let bare = BareHandler { db: service.app.db().clone(), key, workspace, cursor: String::new() };
        let opened = service::listen(bare.router()).await;
        let (mut plain, mut home_made) = (None, Vec::new());
        if engine == Engine::Sqlite {
            let file = PlainFile(filled.store.folder().join("plain.db"));
            file.fill(&service.key, &filled.mailbox, messages, THREAD_SIZE);
            home_made = HomeMade::start_all(&file).await;
            plain = Some(service::listen(file.router()).await);
        }
        Self { engine, filled, opened, plain, home_made }
    }

    /// The requests of a kind to a server.
    fn load(&self, address: SocketAddr, kind: Kind) -> Load {
        self.filled.load(address, kind)
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
        let address = if side == ReadSide::Service { Some(self.filled.address) } else { self.plain };
        turns::show_alone(&self.load(address.unwrap_or(self.opened), case.kind), options.requests).await;
    }

    /// A case against all its yardsticks, which take turns with the service.
    async fn compare(&self, case: &Case, options: &Options) -> Vec<Figure> {
        self.check(case).await;
        let own = self.load(self.filled.address, case.kind);
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
            if let Kind::Search(ranks) = case.kind {
                let kind = Kind::SearchWithPassages(ranks);
                let load = Load { processes: server.processes(), ..self.load(server.address, kind) };
                others.push((4, server.name, Some(Target::AtLeast(case.home_made)), load));
            }
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
        let ours = self.first_answer(self.filled.address, case.kind).await;
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
