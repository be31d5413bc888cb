//! The real program on an existing store: how soon it is ready, and how much memory it uses.
//!
//! The store holds a thousand workspaces. The time runs from before the process is spawned until `/readyz`
//! succeeds; the memory is the resident size, idle after the start and again after a thousand calls, and what the
//! program has allocated after thousands of messages, at once and after a rest.

use std::time::Duration;

use crate::{
    fill,
    load::{End, Load},
    measured_store::{Engine, MeasuredStore},
    options::Options,
    program::{self, Disk, RunningProgram},
    receive,
    report::{Figure, Target},
    service::Service,
    stats::{median, spread},
};

const WORKSPACES: usize = 1000;
/// How often the program is started.
const STARTS: usize = 15;
const READY_MILLISECONDS: f64 = 300.0;
const RESIDENT_MEGABYTES: f64 = 65.0;
/// Allocated after many messages.
const BUSY_MEGABYTES: f64 = 120.0;
const MESSAGES: usize = 5000;
const SESSIONS: usize = 64;
/// After so long what was allocated for them is given back.
const REST: Duration = Duration::from_mins(1);
/// How long the program idles before its memory is read.
const IDLE_PAUSE: Duration = Duration::from_secs(4);
const CALLS: u64 = 1000;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let mut figures = Vec::new();
    for engine in &options.engines {
        let store = MeasuredStore::new(*engine).await;
        let key = fill_store(&store).await;
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let running = RunningProgram::start(&program, &store, Disk::AsItIs).await;
            times.push(running.ready_after.as_secs_f64() * 1e3);
            running.stop();
        }
        let running = RunningProgram::start(&program, &store, Disk::AsItIs).await;
        let memory = watch_memory(&running, key).await;
        let idle = running.anonymous_megabytes();
        receive::send_to(running.smtp, SESSIONS, MESSAGES, "bench-0@agents.test").await;
        let busy = running.anonymous_megabytes();
        wait_for_rest(&running).await;
        tokio::time::sleep(REST).await;
        let rested = running.anonymous_megabytes();
        running.stop();
        figures.push(ready_figure(*engine, &times));
        figures.push(memory_figure(*engine, memory));
        figures.push(messages_figure(*engine, [idle, busy, rested]));
        store.remove().await;
    }
    figures
}

/// Creates the store and returns a key for it.
async fn fill_store(store: &MeasuredStore) -> String {
    let service = Service::open(store).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
    fill::add_workspaces(service.app.db(), store.master_key(), WORKSPACES).await;
    service.app.meter().close().await;
    service.key
}

/// Waits until the messages are embedded for memory, which the program does when it has nothing else to do.
async fn wait_for_rest(running: &RunningProgram) {
    let mut before = running.embedding_cpu();
    loop {
        tokio::time::sleep(IDLE_PAUSE).await;
        let now = running.embedding_cpu();
        if now == before {
            return;
        }
        before = now;
    }
}

/// Resident megabytes: idle after the start, right after the calls, idle after them.
async fn watch_memory(running: &RunningProgram, key: String) -> [f64; 3] {
    tokio::time::sleep(IDLE_PAUSE).await;
    let fresh = running.megabytes();
    let request =
        format!("GET /api/v1/mailboxes HTTP/1.1\r\nHost: {}\r\nX-API-Key: {key}\r\n\r\n", running.address);
    Load::of_one(running.address, 32, request).run(End::AfterRequests(CALLS)).await;
    let busy = running.megabytes();
    tokio::time::sleep(IDLE_PAUSE).await;
    [fresh, busy, running.megabytes()]
}

fn ready_figure(engine: Engine, times: &[f64]) -> Figure {
    let (fastest, slowest) = spread(times);
    Figure {
        what: "ready to serve : 300 ms",
        engine: engine.name(),
        unit: "ms",
        value: median(times),
        yardstick: READY_MILLISECONDS,
        ratio: median(times) / READY_MILLISECONDS,
        spread: (fastest / READY_MILLISECONDS, slowest / READY_MILLISECONDS),
        target: Some(Target::AtMost(1.0)),
        notes: vec![format!("{STARTS} starts took {fastest:.0} to {slowest:.0} ms")],
    }
}

fn memory_figure(engine: Engine, [fresh, busy, idle]: [f64; 3]) -> Figure {
    let ratios = [fresh / RESIDENT_MEGABYTES, idle / RESIDENT_MEGABYTES];
    Figure {
        what: "idle memory : 65 MB",
        engine: engine.name(),
        unit: "MB",
        value: fresh.max(idle),
        yardstick: RESIDENT_MEGABYTES,
        ratio: fresh.max(idle) / RESIDENT_MEGABYTES,
        spread: spread(&ratios),
        target: Some(Target::AtMost(1.0)),
        notes: vec![format!(
            "resident {fresh:.1} MB idle after the start, {busy:.1} MB after {CALLS} calls at 32 connections, {idle:.1} MB idle again"
        )],
    }
}

fn messages_figure(engine: Engine, [idle, busy, rested]: [f64; 3]) -> Figure {
    let ratios = [busy / BUSY_MEGABYTES, rested / BUSY_MEGABYTES];
    Figure {
        what: "allocated after 5,000 messages : 120 MB",
        engine: engine.name(),
        unit: "MB",
        value: busy,
        yardstick: BUSY_MEGABYTES,
        ratio: busy / BUSY_MEGABYTES,
        spread: spread(&ratios),
        target: Some(Target::AtMost(1.0)),
        notes: vec![format!(
            "allocated {idle:.1} MB before, {busy:.1} MB after {MESSAGES} messages at {SESSIONS} sessions, {rested:.1} MB after a minute of rest"
        )],
    }
}
