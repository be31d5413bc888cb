//! Lists and single reads in a large mailbox: against a bare handler with the same queries, and against a small mailbox.

use std::net::SocketAddr;

use crate::{
    bare::{BareHandler, PAGE_SIZE},
    load::{Connection, End, Load},
    machine,
    measured_store::{Engine, MeasuredStore},
    messages::{self, Filling},
    options::Options,
    report::{Figure, Target},
    service::{self, Service},
    stats::{median, spread},
    turns::{Comparison, Side},
};

const CONNECTIONS: usize = 32;
const BARE_HANDLER_TARGET: Target = Target::AtLeast(0.60);
const SMALL_MAILBOX_TARGET: Target = Target::AtMost(1.3);
/// Messages of the small mailbox.
const SMALL_MAILBOX_MESSAGES: usize = 10_000;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(compare_with_bare(*engine, options).await);
        figures.push(compare_sizes(*engine, options).await);
    }
    figures
}

/// A service with a filled mailbox.
struct Mailbox {
    service: Service,
    public_id: String,
    address: SocketAddr,
}

impl Mailbox {
    async fn new(store: &MeasuredStore, messages: usize) -> Self {
        let service = Service::open(store).await;
        let public_id = messages::fill(&service, Filling::new(messages)).await;
        let address = service.listen().await;
        Self { service, public_id, address }
    }

    fn path(&self) -> String {
        format!("/api/v1/mailboxes/{}/emails", self.public_id)
    }

    fn request(&self, address: SocketAddr, path: &str) -> String {
        let key = &self.service.key;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nX-API-Key: {key}\r\n\r\n"
        )
    }

    async fn ask(&self, address: SocketAddr, path: &str) -> Vec<u8> {
        let (status, body) = Connection::open(address).await.ask(&self.request(address, path)).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        body
    }

    fn page(&self) -> Load {
        let request = self.request(self.address, &format!("{}?limit={PAGE_SIZE}", self.path()));
        Load::of_one(self.address, CONNECTIONS, request)
    }
}

async fn compare_with_bare(engine: Engine, options: &Options) -> [Figure; 2] {
    let store = MeasuredStore::new(engine).await;
    let count = options.many_messages();
    let mailbox = Mailbox::new(&store, count).await;
    let list = format!("{}?limit={PAGE_SIZE}", mailbox.path());
    let one = format!("{}/{}", mailbox.path(), messages::email_id(count / 2));
    let listed = mailbox.ask(mailbox.address, &list).await;
    let page: serde_json::Value = serde_json::from_slice(&listed).expect("a page is JSON");
    assert_eq!(page["emails"].as_array().map(Vec::len), Some(PAGE_SIZE));
    let workspace = mailbox.service.workspace.clone();
    let bare = BareHandler {
        db: mailbox.service.app.db().clone(),
        key: mailbox.service.app.data_key(&workspace).await.expect("the workspace has a key"),
        workspace,
        cursor: page["next_cursor"].as_str().expect("more messages follow").to_owned(),
    };
    let bare = service::listen(bare.router()).await;
    // Cursors are sealed and never repeat; the bare handler gets the one of this response.
    assert_eq!(mailbox.ask(bare, &list).await, listed, "both sides send the same page");
    assert_eq!(
        mailbox.ask(bare, &one).await,
        mailbox.ask(mailbox.address, &one).await,
        "and the same message"
    );
    let load = |address, path: &str| Load::of_one(address, CONNECTIONS, mailbox.request(address, path));
    let mut figures = Vec::new();
    for (what, path) in [("page of 50 messages : bare handler", &list), ("message : bare handler", &one)] {
        let (ours, bare) = (load(mailbox.address, path), load(bare, path));
        let comparison = Comparison {
            what,
            engine,
            target: Some(BARE_HANDLER_TARGET),
            measured: Side { name: "service", load: &ours },
            yardstick: Side { name: "bare", load: &bare },
        };
        let mut figure = comparison.run(options).await;
        figure.notes.push(format!("{count} messages in the mailbox"));
        figures.push(figure);
    }
    store.remove().await;
    figures.try_into().unwrap_or_else(|_| unreachable!("two comparisons"))
}

/// The CPU time of a page in a large mailbox against that in a small one.
async fn compare_sizes(engine: Engine, options: &Options) -> Figure {
    let (small_store, large_store) = (MeasuredStore::new(engine).await, MeasuredStore::new(engine).await);
    let small = Mailbox::new(&small_store, SMALL_MAILBOX_MESSAGES).await;
    let large = Mailbox::new(&large_store, options.largest_mailbox_messages()).await;
    let (few, many) = (small.page(), large.page());
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    // The first turn warms the caches and does not count.
    for round in 0..=options.rounds() {
        let one = cpu_of(&few, &small_store, options).await;
        let other = cpu_of(&many, &large_store, options).await;
        if round > 0 {
            of_few.push(one);
            of_many.push(other);
        }
    }
    drop((small, large));
    small_store.remove().await;
    large_store.remove().await;
    let ratios: Vec<f64> = of_many.iter().zip(&of_few).map(|(many, few)| many / few).collect();
    Figure {
        what: "CPU time of a page, many : 10,000 messages",
        engine: engine.name(),
        unit: "µs",
        value: median(&of_many),
        yardstick: median(&of_few),
        ratio: median(&ratios),
        spread: spread(&ratios),
        target: Some(SMALL_MAILBOX_TARGET),
        notes: vec![format!("{} messages in the large mailbox", options.largest_mailbox_messages())],
    }
}

/// The CPU time of one request in microseconds, including PostgreSQL's processes for this store.
async fn cpu_of(load: &Load, store: &MeasuredStore, options: &Options) -> f64 {
    let processes = store.server_processes().await;
    let cpu = || processes.iter().map(|process| machine::cpu_of(*process).as_secs_f64()).sum::<f64>();
    let before = cpu();
    let outcome = load.run(End::After(options.turn())).await;
    outcome.server_cpu + (cpu() - before) / outcome.requests * 1e6
}
