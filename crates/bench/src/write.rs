//! Durable writes at 32 connections against one.
//!
//! Each write creates a folder with a new name through the whole service and is answered when it is on disk. Many
//! mailboxes share the writes, so that none nears its limit of folders and counting them stays cheap.
//!
//! The promise is that writes share flushes, which shows only where a flush is slow. So it is measured twice: on
//! the real disk, and on a simulated one with a flush of 4 ms, as ordinary cloud disks have.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    fill,
    flush::{self, SLOW_FLUSH, SlowDisk},
    load::Load,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    report::{Figure, Target},
    service::Service,
    turns::{Comparison, Side},
};

const CONNECTIONS: usize = 32;
const MAILBOXES: usize = 2000;
const TARGET: Target = Target::AtLeast(4.0);
/// On a disk with a faster flush than this, one connection is limited by the CPU rather than the disk, and no
/// sharing of flushes could make 32 of them four times as fast on few cores.
const QUICK_FLUSH: Duration = Duration::from_millis(1);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.push(measure_disk(*engine, options).await);
        figures.extend(measure_slow_disk(*engine, options).await);
    }
    figures
}

/// On the real disk.
async fn measure_disk(engine: Engine, options: &Options) -> Figure {
    let flush = flush::time_flush(engine);
    let target = (flush >= QUICK_FLUSH).then_some(TARGET);
    let writer = Writer::new(engine).await;
    let figure = writer.compare("writes at 32 connections : at 1", target, options).await;
    writer.store.remove().await;
    with_flush(figure, flush)
}

/// On the slow disk.
async fn measure_slow_disk(engine: Engine, options: &Options) -> Option<Figure> {
    let writer = Writer::new(engine).await;
    let Some(slow) = SlowDisk::start(SLOW_FLUSH) else {
        eprintln!("no writes with a flush of 4 ms: only scripts/bench can make the disk slow");
        writer.store.remove().await;
        return None;
    };
    let flush = flush::time_flush(engine);
    let figure =
        writer.compare("writes at 32 connections : at 1, flush of 4 ms", Some(TARGET), options).await;
    drop(slow);
    writer.store.remove().await;
    // A server that was started separately keeps its own disk.
    assert!(
        figure.yardstick <= 1.0 / SLOW_FLUSH.as_secs_f64(),
        "{}: one connection does not wait for the slow disk; let scripts/bench start the server",
        engine.name()
    );
    Some(with_flush(figure, flush))
}

fn with_flush(mut figure: Figure, flush: Duration) -> Figure {
    figure.notes.push(format!("a flush takes {:.2} ms", flush.as_secs_f64() * 1e3));
    figure
}

/// A service with mailboxes to write to, at one connection and at many.
struct Writer {
    engine: Engine,
    store: MeasuredStore,
    one: Load,
    many: Load,
}

impl Writer {
    async fn new(engine: Engine) -> Self {
        let store = MeasuredStore::new(engine).await;
        let service = Service::open(&store).await;
        let mailboxes = fill::add_mailboxes(service.app.db(), &service.workspace, MAILBOXES).await;
        let address = service.listen().await;
        let one = load(address, &service.key, mailboxes);
        let many = Load { connections: CONNECTIONS, ..one.clone() };
        Self { engine, store, one, many }
    }

    async fn compare(&self, what: &'static str, target: Option<Target>, options: &Options) -> Figure {
        let comparison = Comparison {
            what,
            engine: self.engine,
            target,
            measured: Side { name: "32 connections", load: &self.many },
            yardstick: Side { name: "1 connection", load: &self.one },
        };
        comparison.run(options).await
    }
}

/// Creates folders, in one mailbox after the other, each with a new name.
fn load(address: SocketAddr, key: &str, mailboxes: Vec<String>) -> Load {
    let (key, counter) = (key.to_owned(), AtomicUsize::new(0));
    let next_request = move |buffer: &mut Vec<u8>| {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        let mailbox = &mailboxes[n % mailboxes.len()];
        let body = format!("{{\"name\":\"Folder {n}\"}}");
        let mut text = String::with_capacity(400);
        let _ = write!(
            text,
            "POST /api/v1/mailboxes/{mailbox}/folders HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        buffer.extend_from_slice(text.as_bytes());
    };
    Load {
        address,
        connections: 1,
        next_request: Arc::new(next_request),
        expected_status: 201,
        processes: Vec::new(),
    }
}
