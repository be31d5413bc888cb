//! How long a send to a mailbox of this server takes until the response `sent`, against one durable commit.
//!
//! Such a send composes the message, stores the sender's copy, receives it as if it had come over SMTP (scanned,
//! threaded, indexed) and is durable when it responds. The commit changes one row, over the same connection to the
//! store.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use model::MailboxId;
use store::mailboxes;

use crate::{
    fill,
    flush::{self, SLOW_FLUSH, SlowDisk},
    load::{End, Load, NextRequest},
    measured_store::{Engine, MeasuredStore},
    options::Options,
    report::{Figure, Target},
    service::Service,
    stats::{median, percentile, spread},
};

/// On a disk with a faster flush than this the CPU decides, not the number of commits.
const QUICK_FLUSH: Duration = Duration::from_millis(1);
const TARGET: Target = Target::AtMost(3.0);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let flush = flush::time_flush(*engine);
        let target = (flush >= QUICK_FLUSH).then_some(TARGET);
        figures.push(measure_disk(*engine, options, "send within the server : commit", target).await);
        if let Some(slow) = SlowDisk::start(SLOW_FLUSH) {
            let what = "send within the server : commit, flush of 4 ms";
            figures.push(measure_disk(*engine, options, what, Some(TARGET)).await);
            drop(slow);
        } else {
            eprintln!("no sends with a flush of 4 ms: only scripts/bench can make the disk slow");
        }
    }
    figures
}

async fn measure_disk(
    engine: Engine,
    options: &Options,
    what: &'static str,
    target: Option<Target>,
) -> Figure {
    let flush = flush::time_flush(engine);
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let public_ids = fill::add_mailboxes(service.app.db(), &service.workspace, 2).await;
    let address = service.listen().await;
    let next_request = sends(address, &service.key, &public_ids[0], "emails", "bench-1@agents.test", "");
    let load = Load { address, connections: 1, next_request, expected_status: 202, processes: Vec::new() };
    load.run(End::After(Duration::from_millis(300))).await;
    let (mut sends, mut commits) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        commits.push(commit_milliseconds(&service, options.turn() / 3).await);
        sends.push(load.run(End::After(options.turn())).await.median_latency);
    }
    store.remove().await;
    let ratios: Vec<f64> = sends.iter().zip(&commits).map(|(send, commit)| send / commit).collect();
    Figure {
        what,
        engine: engine.name(),
        unit: "ms",
        value: median(&sends),
        yardstick: median(&commits),
        ratio: median(&ratios),
        spread: spread(&ratios),
        target,
        notes: vec![format!("a flush takes {:.2} ms", flush.as_secs_f64() * 1e3)],
    }
}

/// The median time of a commit that changes one row.
async fn commit_milliseconds(service: &Service, time: Duration) -> f64 {
    let mailbox = MailboxId::from(format!("mbx_{:026}", 0));
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < time {
        let (mailbox, before) = (mailbox.clone(), Instant::now());
        let change =
            async move |tx: &mut store::Tx| mailboxes::add_to_counter(tx, &mailbox, "bench", 1).await;
        let changed: Result<(), store::Error> = service.app.db().write(&service.workspace, change).await;
        changed.expect("a row is changed");
        times.push(before.elapsed().as_secs_f64() * 1e3);
    }
    percentile(&mut times, 0.5)
}

/// Requests that send messages of about 10 KB, each a little different, with more fields if given.
pub(crate) fn sends(
    address: SocketAddr,
    key: &str,
    mailbox: &str,
    to_path: &str,
    recipient: &str,
    fields: &str,
) -> NextRequest {
    let line = "This is a line of a mail that says nothing much, but at some length.\\n";
    let body = if to_path == "emails" { "text" } else { "body" };
    let (start, end) = (
        format!("{{\"to\":\"{recipient}\",{fields}\"subject\":\"Number "),
        format!("\",\"{body}\":\"{}\"}}", line.repeat(10 * 1024 / line.len())),
    );
    let head = format!(
        "POST /api/v1/mailboxes/{mailbox}/{to_path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: "
    );
    let counter = AtomicUsize::new(0);
    Arc::new(move |buffer: &mut Vec<u8>| {
        let n = counter.fetch_add(1, Ordering::Relaxed).to_string();
        let mut text = String::with_capacity(12 * 1024);
        let _ = write!(text, "{head}{}\r\n\r\n{start}{n}{end}", start.len() + n.len() + end.len());
        buffer.extend_from_slice(text.as_bytes());
    })
}
