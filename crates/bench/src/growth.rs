//! Whether a look-up costs more among many workspaces than among few.
//!
//! Two stores are open at once, with 10 and with 100,000 workspaces, and take turns. Measured are two store functions
//! that every call or nearly every caller needs: finding a key by its hash, which is not cached here, and listing a
//! workspace's mailboxes. Keys and workspaces are drawn at random from the whole store.

use std::time::Instant;

use store::{Db, Error, mailboxes, system};

use crate::{
    fill,
    options::Options,
    place::{Engine, Place},
    report::{Figure, Target},
    stats::{median, spread},
};

const FEW: usize = 10;
const TARGET: Target = Target::AtMost(1.5);
/// Calls of one turn.
const CALLS: usize = 2000;

/// A filled store.
struct Filled {
    db: Db,
    workspaces: usize,
}

/// What is called.
#[derive(Clone, Copy)]
enum Function {
    FindKey,
    ListMailboxes,
}

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let (small_place, large_place) = (Place::new(*engine).await, Place::new(*engine).await);
        let small = Filled::new(&small_place, FEW).await;
        let large = Filled::new(&large_place, options.many_workspaces()).await;
        for function in [Function::FindKey, Function::ListMailboxes] {
            figures.push(compare(*engine, options, function, &small, &large).await);
        }
        drop((small, large));
        small_place.remove().await;
        large_place.remove().await;
    }
    figures
}

impl Filled {
    async fn new(place: &Place, workspaces: usize) -> Self {
        let db = Db::open(&place.location).await.expect("the store opens");
        db.migrate(model::Timestamp::from_micros(0)).await.expect("the schema is made");
        fill::add_workspaces(&db, workspaces).await;
        Self { db, workspaces }
    }

    /// Workspaces at random, other ones in every turn.
    fn draw(&self, turn: u64) -> Vec<usize> {
        let mut state = turn.wrapping_mul(0xa076_1d64_78bd_642f);
        let many = self.workspaces as u64;
        (0..CALLS)
            .map(|_| usize::try_from(fill::next_random(&mut state) % many).unwrap_or_default())
            .collect()
    }

    /// The median time of the function itself in microseconds: many calls in one transaction, timed one by one.
    async fn time_inside(&self, function: Function, turn: u64) -> f64 {
        let drawn = self.draw(turn);
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
        median(&timed.await.expect("the store answers"))
    }

    /// The same as a call sees it: a transaction for each, with the way to the store and back.
    async fn time_outside(&self, function: Function, turn: u64) -> f64 {
        let mut times = Vec::with_capacity(CALLS);
        for n in self.draw(turn) {
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
        median(&times)
    }
}

async fn compare(
    engine: Engine,
    options: &Options,
    function: Function,
    small: &Filled,
    large: &Filled,
) -> Figure {
    let (mut inside, mut outside) = (Turns::default(), Turns::default());
    // The first turn fills the caches and does not count.
    for turn in 0..=options.rounds() as u64 {
        let (few, many) = (small.time_inside(function, turn).await, large.time_inside(function, turn).await);
        let (few_called, many_called) =
            (small.time_outside(function, turn).await, large.time_outside(function, turn).await);
        if turn > 0 {
            inside.add(few, many);
            outside.add(few_called, many_called);
        }
    }
    let called = format!(
        "as a call sees it, with the way to the store and back: {:.1} µs against {:.1} µs, ratio {:.2}",
        median(&outside.many),
        median(&outside.few),
        median(&outside.ratios)
    );
    Figure {
        what: match function {
            Function::FindKey => "key look-up, many : 10 workspaces",
            Function::ListMailboxes => "mailbox list, many : 10 workspaces",
        },
        engine: engine.name(),
        unit: "µs",
        value: median(&inside.many),
        yardstick: median(&inside.few),
        ratio: median(&inside.ratios),
        spread: spread(&inside.ratios),
        target: Some(TARGET),
        notes: vec![format!("{} workspaces in the large store", large.workspaces), called],
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
}
