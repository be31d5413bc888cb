//! The same reads in a large mailbox and in a small one, at rest and while mail arrives.

use super::{
    draw::Draw,
    mailbox::{COMMON_RANKS, FilledMailbox, Kind},
};
use crate::{
    arrivals::Stream,
    load::{End, Outcome},
    measured_store::Engine,
    options::Options,
    report::{Figure, Target},
    stats::{median, spread},
    turns,
};

const SMALL_MAILBOX_MESSAGES: usize = 10_000;
/// How much longer a request may take in the large mailbox.
const TARGET: Target = Target::AtMost(1.3);
const ARRIVALS_PER_SECOND: u32 = 200;
const ADDRESS: &str = "bench-0@agents.test";

/// What is read, with its names at rest and while mail arrives.
const CASES: [(Kind, [&str; 2]); 5] = [
    (
        Kind::Folders,
        ["small keyed read, many : 10,000 messages", "small keyed read, mail arriving, many : 10,000"],
    ),
    (Kind::Page, ["page of 50, many : 10,000 messages", "page of 50, mail arriving, many : 10,000"]),
    (
        Kind::Message(Draw::Uniform),
        ["one message, many : 10,000 messages", "one message, mail arriving, many : 10,000"],
    ),
    (
        Kind::Thread(Draw::Uniform),
        ["thread of three, many : 10,000 messages", "thread of three, mail arriving, many : 10,000"],
    ),
    (
        Kind::Search(COMMON_RANKS),
        ["search, common word, many : 10,000 messages", "search, common word, mail arriving, many : 10,000"],
    ),
];

pub(super) async fn measure(engine: Engine, options: &Options) -> Vec<Figure> {
    let wanted =
        || CASES.iter().flat_map(|(kind, names)| [(*kind, names[0], false), (*kind, names[1], true)]);
    let mut figures = Vec::new();
    if options.only.is_some() || !wanted().any(|(_, what, _)| options.wants(what)) {
        return figures;
    }
    let small = FilledMailbox::new(engine, SMALL_MAILBOX_MESSAGES).await;
    let large = FilledMailbox::new(engine, options.largest_mailbox_messages()).await;
    // Mail arrives after all figures at rest are taken, since it makes the mailboxes larger.
    for arriving in [false, true] {
        for (kind, what, _) in wanted().filter(|(_, what, comes)| *comes == arriving && options.wants(what)) {
            let row = Row { what, engine, kind, arriving };
            figures.push(row.measure(&small, &large, options).await);
        }
    }
    small.store.remove().await;
    large.store.remove().await;
    figures
}

struct Row {
    what: &'static str,
    engine: Engine,
    kind: Kind,
    arriving: bool,
}

impl Row {
    async fn measure(&self, small: &FilledMailbox, large: &FilledMailbox, options: &Options) -> Figure {
        self.turn(small, options).await;
        self.turn(large, options).await;
        let (of_large, of_small) = turns::alternate(
            options.rounds(),
            async || self.turn(large, options).await,
            async || self.turn(small, options).await,
        )
        .await;
        let (own, mut rates): (Vec<Outcome>, Vec<f64>) = of_large.into_iter().unzip();
        let (others, rates_of_small): (Vec<Outcome>, Vec<f64>) = of_small.into_iter().unzip();
        rates.extend(rates_of_small);
        // The time of a request, so that growth is a number above 1.
        let time = |outcome: &Outcome| 1e6 / outcome.requests_per_second;
        let ratios: Vec<f64> = own.iter().zip(&others).map(|(own, other)| time(own) / time(other)).collect();
        let mut notes = vec![
            format!("{} messages in the large mailbox", large.messages),
            turns::describe("large", &own),
            turns::describe("small", &others),
        ];
        if self.arriving {
            notes.push(format!("{:.0} messages per second arrived", median(&rates)));
        }
        Figure {
            what: self.what,
            engine: self.engine.name(),
            unit: "µs",
            value: turns::median_of(&own, time),
            yardstick: turns::median_of(&others, time),
            ratio: median(&ratios),
            spread: spread(&ratios),
            target: Some(TARGET),
            notes,
        }
    }

    /// A turn in one mailbox, with the rate of the mail that arrived in it meanwhile.
    async fn turn(&self, mailbox: &FilledMailbox, options: &Options) -> (Outcome, f64) {
        let arrivals =
            self.arriving.then(|| Stream::start(&mailbox.service.app, ADDRESS, ARRIVALS_PER_SECOND));
        let outcome = mailbox.load(mailbox.address, self.kind).run(End::After(options.turn())).await;
        (outcome, arrivals.map_or(0.0, |arrivals| arrivals.rate()))
    }
}
