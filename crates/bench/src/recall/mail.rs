//! How fast mail comes into memory, on the way that the worker takes: short and longer messages with a signature, every
//! other one a reply above a quoted message.

use std::time::Instant;

use model::emails::InboundProvider;
use operations::{
    inbound::{self, Arrival},
    memory::mail::{self, Progress},
};

use crate::{
    fill, machine,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    report::Figure,
    service::Service,
    stats::{as_float, median},
};

pub(super) const WHAT: &str = "messages into memory : 100,000 in half an hour";
/// Messages of a round.
const MESSAGES: usize = 200;
/// Words of a message; the average is a third of it.
const MAX_WORDS: u64 = 150;
const QUOTED_WORDS: usize = 60;
/// 100,000 messages in half an hour.
const MESSAGES_PER_SECOND: f64 = 100_000.0 / 1800.0;
/// Words that the model knows, as those of most messages: others would be several tokens each.
const WORDS: &str = "the of and to we you for order invoice meeting please send today tomorrow report office project \
    team price contract customer question answer about before after with from last next week month delivery payment \
    account address phone number change new first time work plan travel train hotel";

pub(super) async fn measure(engine: Engine, options: &Options) -> Figure {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
    embed::embed("The first text loads the model.");
    let (mut speeds, mut milliseconds, mut state) = (Vec::new(), Vec::new(), 1);
    for round in 0..options.rounds() {
        for number in 0..MESSAGES {
            deliver(&service, round * MESSAGES + number, &mut state).await;
        }
        let (started, used) = (Instant::now(), machine::process_cpu());
        index(&service).await;
        let used = machine::process_cpu().saturating_sub(used);
        speeds.push(as_float(MESSAGES) / started.elapsed().as_secs_f64());
        milliseconds.push(used.as_secs_f64() * 1000.0 / as_float(MESSAGES));
    }
    store.remove().await;
    let mut figure =
        Figure::of_rates(WHAT, engine, (&speeds, &vec![MESSAGES_PER_SECOND; speeds.len()]), None);
    figure.notes.push(format!(
        "{MESSAGES} messages a round; CPU of the service {:.1} ms a message, on one processor at a time",
        median(&milliseconds)
    ));
    figure
}

/// Indexes all mail, as the worker does.
async fn index(service: &Service) {
    for mailbox in mail::list_pending(&service.app).await.expect("mailboxes are listed") {
        let step = async || mail::index_some(&service.app, &mailbox).await.expect("mail is indexed");
        while step().await == Progress::More {}
    }
}

async fn deliver(service: &Service, number: usize, state: &mut u64) {
    let from = "customer@remote.test";
    let recipient = inbound::route(&service.app, Some(from), "bench-0@agents.test").await;
    let arrival = Arrival {
        provider: Some(InboundProvider::EdgeRouting),
        from: Some(from.to_owned()),
        recipients: vec![recipient.expect("the mailbox takes mail")],
        raw: message(number, state).into(),
        client: None,
    };
    inbound::receive(&service.app, arrival).await.expect("the message is received");
}

fn message(number: usize, state: &mut u64) -> String {
    // The smaller of two: most messages are short.
    let length = (fill::next_random(state) % MAX_WORDS).min(fill::next_random(state) % MAX_WORDS);
    let own = lines(usize::try_from(length).unwrap_or_default() + 5, "", state);
    let quote = if number.is_multiple_of(2) {
        let quoted = lines(QUOTED_WORDS, "> ", state);
        format!("\r\nOn Monday, 13 July 2026, Support <support@agents.test> wrote:\r\n{quoted}")
    } else {
        String::new()
    };
    format!(
        "From: Customer <customer@remote.test>\r\nTo: bench-0@agents.test\r\nSubject: Order {number}\r\n\
         Message-ID: <memory-{number}@remote.test>\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
         {own}\r\n-- \r\nAnn Example, Sales\r\nExample Ltd, 12 Long Street, Porto\r\n{quote}"
    )
}

/// Lines of ten words, all of which begin in the same way.
pub(super) fn lines(count: usize, start: &str, state: &mut u64) -> String {
    let known: Vec<&str> = WORDS.split_whitespace().collect();
    let mut draw = || known[usize::try_from(fill::next_random(state)).unwrap_or_default() % known.len()];
    let words: Vec<&str> = (0..count).map(|_| draw()).collect();
    let lines: Vec<String> = words.chunks(10).map(|line| format!("{start}{}.\r\n", line.join(" "))).collect();
    lines.concat()
}
