//! The real program on an existing store: how soon it is ready, and how much memory it keeps.
//!
//! The store holds a thousand workspaces. The time runs from before the process is made until `/readyz` says yes; the
//! memory is what the kernel calls resident, idle after the start and again after a thousand calls.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use store::DatabaseLocation;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    fill,
    load::{End, Load},
    machine,
    options::Options,
    place::{Engine, Place},
    report::{Figure, Target},
    service::Service,
    stats::{median, spread},
};

const WORKSPACES: usize = 1000;
/// How often the program is started.
const STARTS: usize = 15;
const READY_MILLISECONDS: f64 = 300.0;
const RESIDENT_MEGABYTES: f64 = 60.0;
/// How long the program is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(4);
const CALLS: u64 = 1000;
const GIVE_UP: Duration = Duration::from_secs(20);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = options.program.clone().unwrap_or_else(beside_this_one);
    let program = std::path::absolute(program).expect("the working directory is known");
    let mut figures = Vec::new();
    for engine in &options.engines {
        let place = Place::new(*engine).await;
        let key = fill_place(&place).await;
        let mut times = Vec::new();
        for _ in 0..STARTS {
            let running = Running::start(&program, &place).await;
            times.push(running.ready_after.as_secs_f64() * 1e3);
            running.stop();
        }
        let running = Running::start(&program, &place).await;
        let memory = watch_memory(&running, key).await;
        running.stop();
        figures.push(ready_figure(*engine, &times));
        figures.push(memory_figure(*engine, memory));
        place.remove().await;
    }
    figures
}

fn beside_this_one() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    this.with_file_name("agent-mailbox")
}

/// Makes the store and gives a key for it.
async fn fill_place(place: &Place) -> String {
    let service = Service::open(place).await;
    fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
    fill::add_workspaces(service.app.db(), WORKSPACES).await;
    service.app.meter().close().await;
    service.key
}

/// The program while it runs.
struct Running {
    child: Child,
    address: SocketAddr,
    ready_after: Duration,
}

impl Running {
    async fn start(program: &Path, place: &Place) -> Self {
        let address = free_address().await;
        let folder = std::path::absolute(place.folder()).expect("the working directory is known");
        let mut command = Command::new(program);
        command.arg("serve").arg("--data-dir").arg(&folder).current_dir(&folder);
        command.env("AGENT_MAILBOX__HTTP__LISTEN", address.to_string());
        // So many calls in a minute are not what the default plans are for.
        for limit in ["RPM", "CREDITS_PER_PERIOD"] {
            command.env(format!("AGENT_MAILBOX__PLANS__DEVELOPER__{limit}"), "1000000000");
        }
        if let DatabaseLocation::Postgres(url) = &place.location {
            command.env("AGENT_MAILBOX__DATABASE__URL", url);
        }
        // What makes flushes slow for `write` would cost time and memory here.
        command.env_remove("LD_PRELOAD");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().expect("the program starts: build it, or name it with --program");
        while !is_ready(address).await {
            assert!(child.try_wait().ok().flatten().is_none(), "the program ended before it was ready");
            assert!(started.elapsed() < GIVE_UP, "the program is not ready after {GIVE_UP:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Self { child, address, ready_after: started.elapsed() }
    }

    fn megabytes(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "memory stays far below 2^52 bytes")]
        let bytes = machine::resident_memory(self.child.id()) as f64;
        bytes / 1e6
    }

    fn stop(mut self) {
        // The store survives this; a program that does not would not be fit to be measured.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("a bound socket has an address")
}

async fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    stream.write_all(request.as_bytes()).await.is_ok()
        && stream.read_to_end(&mut answer).await.is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

/// Resident megabytes: idle after the start, right after the calls, idle after them.
async fn watch_memory(running: &Running, key: String) -> [f64; 3] {
    tokio::time::sleep(IDLE).await;
    let fresh = running.megabytes();
    let request =
        format!("GET /api/v1/mailboxes HTTP/1.1\r\nHost: {}\r\nX-API-Key: {key}\r\n\r\n", running.address);
    Load::of_one(running.address, 32, request).run(End::AfterRequests(CALLS)).await;
    let busy = running.megabytes();
    tokio::time::sleep(IDLE).await;
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
        what: "idle memory : 60 MB",
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
