//! Whether a lookup costs more among many workspaces than among few.
//!
//! Two stores are open at once, with 10 and with 100,000 workspaces, and take turns. Measured are two store
//! functions that every call or nearly every caller needs: finding a key by its hash, which is not cached here, and
//! listing a workspace's mailboxes. Keys and workspaces are drawn at random from the whole store.
//!
//! The target is for the cost to the service: the function including the round trip to the store. The function
//! alone is shown too. It cannot stay flat, because a deeper tree has more pages to walk and a large store outgrows
//! the CPU's cache; a scan would show in both as a ratio of hundreds.

use std::time::Instant;

use store::{Db, Error, mailboxes, system, vault::MasterKey};

use crate::{
    fill,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    report::{Figure, Target},
    stats::{median, spread},
};

const SMALL_STORE_WORKSPACES: usize = 10;
const TARGET: Target = Target::AtMost(1.5);
/// Calls per turn, half of them of the function alone.
const CALLS: usize = 4000;
/// Calls in a row on one store. The round trip is faster or slower for a while as threads move between cores; short
/// blocks let both stores see the same.
const BLOCK: usize = 50;

/// A filled store.
struct FilledStore {
    db: Db,
    workspaces: usize,
}

/// The measured function.
#[derive(Clone, Copy)]
enum Function {
    FindKey,
    ListMailboxes,
}

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let (small_store, large_store) =
            (MeasuredStore::new(*engine).await, MeasuredStore::new(*engine).await);
        let small = FilledStore::new(&small_store, SMALL_STORE_WORKSPACES).await;
        let large = FilledStore::new(&large_store, options.many_workspaces()).await;
        for function in [Function::FindKey, Function::ListMailboxes] {
            figures.extend(compare(*engine, options, function, &small, &large).await);
        }
        drop((small, large));
        small_store.remove().await;
        large_store.remove().await;
    }
    figures
}

impl FilledStore {
    async fn new(store: &MeasuredStore, workspaces: usize) -> Self {
        let db = Db::open(&store.location).await.expect("the store opens");
        db.migrate(model::Timestamp::from_micros(0)).await.expect("the schema is made");
        fill::add_workspaces(&db, MasterKey::generate().expect("a master key"), workspaces).await;
        Self { db, workspaces }
    }

    /// Random workspaces, different ones in every turn.
    fn draw(&self, turn: u64) -> Vec<usize> {
        let mut state = turn.wrapping_mul(0xa076_1d64_78bd_642f);
        let many = self.workspaces as u64;
        (0..CALLS)
            .map(|_| usize::try_from(fill::next_random(&mut state) % many).unwrap_or_default())
            .collect()
    }

    /// The times of the function itself in microseconds: many calls in one transaction, timed one by one.
    async fn time_inside(&self, function: Function, drawn: &[usize]) -> Vec<f64> {
        let drawn = drawn.to_vec();
        let timed = self.db.system_read(async move |tx| {
            let mut times = Vec::with_capacity(drawn.len());
            for n in drawn {
                let (hash, workspace) = (fill::key_hash(n), fill::workspace_id(n));
                let before = Instant::now();
                let found = match function {
                    Function::FindKey => system::find_key(tx, &hash).await?.is_some(),
                    Function::ListMailboxes => {
                        let tx = tx.enter(&workspace);
                        let listed = mailboxes::list(tx).await?.len();
                        let unread = mailboxes::unread_by_category(tx).await?.len();
                        (listed, unread) == (fill::MAILBOXES_EACH, fill::MAILBOXES_EACH)
                    }
                };
                times.push(before.elapsed().as_secs_f64() * 1e6);
                assert!(found, "workspace {n} is complete");
            }
            Ok::<_, Error>(times)
        });
        timed.await.expect("the store answers")
    }

    /// The same as a call sees it: a transaction each, including the round trip to the store.
    async fn time_outside(&self, function: Function, drawn: &[usize]) -> Vec<f64> {
        let mut times = Vec::with_capacity(drawn.len());
        for &n in drawn {
            let (hash, workspace) = (fill::key_hash(n), fill::workspace_id(n));
            let before = Instant::now();
            let found = match function {
                Function::FindKey => {
                    self.db.system_read(async move |tx| system::find_key(tx, &hash).await).await.map(|_| ())
                }
                Function::ListMailboxes => {
                    let list = async |tx: &mut store::Tx| {
                        mailboxes::list(tx).await?;
                        mailboxes::unread_by_category(tx).await.map(|_| ())
                    };
                    self.db.read(&workspace, list).await
                }
            };
            times.push(before.elapsed().as_secs_f64() * 1e6);
            found.expect("the store answers");
        }
        times
    }
}

/// The cost of a call, and of the function alone.
async fn compare(
    engine: Engine,
    options: &Options,
    function: Function,
    small: &FilledStore,
    large: &FilledStore,
) -> [Figure; 2] {
    let (mut inside, mut outside) = (Turns::default(), Turns::default());
    // The first turn warms the caches and does not count.
    for turn in 0..=options.rounds() as u64 {
        let (mut few, mut many) = (Times::default(), Times::default());
        let (of_few, of_many) = (small.draw(turn), large.draw(turn));
        for (of_few, of_many) in of_few.chunks(2 * BLOCK).zip(of_many.chunks(2 * BLOCK)) {
            few.take(small, function, of_few).await;
            many.take(large, function, of_many).await;
        }
        if turn > 0 {
            inside.add(median(&few.inside), median(&many.inside));
            outside.add(median(&few.outside), median(&many.outside));
        }
    }
    let (called, alone) = match function {
        Function::FindKey => {
            ("key look-up, many : 10 workspaces", "key look-up inside the store, many : 10 workspaces")
        }
        Function::ListMailboxes => {
            ("mailbox list, many : 10 workspaces", "mailbox list inside the store, many : 10 workspaces")
        }
    };
    let size = format!("{} workspaces in the large store", large.workspaces);
    [
        outside.into_figure(called, engine, Some(TARGET), vec![size]),
        inside.into_figure(alone, engine, None, Vec::new()),
    ]
}

/// The times of one turn.
#[derive(Default)]
struct Times {
    inside: Vec<f64>,
    outside: Vec<f64>,
}

impl Times {
    async fn take(&mut self, store: &FilledStore, function: Function, drawn: &[usize]) {
        // Not the same workspaces again, which would be in the CPU's cache by then.
        let (inside, outside) = drawn.split_at(BLOCK);
        self.inside.extend(store.time_inside(function, inside).await);
        self.outside.extend(store.time_outside(function, outside).await);
    }
}

/// The medians of all turns.
#[derive(Default)]
struct Turns {
    few: Vec<f64>,
    many: Vec<f64>,
    ratios: Vec<f64>,
}

impl Turns {
    fn add(&mut self, few: f64, many: f64) {
        self.few.push(few);
        self.many.push(many);
        self.ratios.push(many / few);
    }

    fn into_figure(
        self,
        what: &'static str,
        engine: Engine,
        target: Option<Target>,
        notes: Vec<String>,
    ) -> Figure {
        Figure {
            what,
            engine: engine.name(),
            unit: "µs",
            value: median(&self.many),
            yardstick: median(&self.few),
            ratio: median(&self.ratios),
            spread: spread(&self.ratios),
            target,
            notes,
        }
    }
}
