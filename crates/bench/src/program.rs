//! The real program, started for a measurement.

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

use crate::{machine, measured_store::MeasuredStore, options::Options};

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Whether the program can be given a slow disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// Without the library that makes flushes slow, which costs a little time and memory.
    AsItIs,
    /// Slow while a `SlowDisk` exists.
    Slowable,
}

/// The program that was named, or the one next to this one.
pub(crate) fn path(options: &Options) -> PathBuf {
    let program = options.program.clone().unwrap_or_else(beside_this_one);
    std::path::absolute(program).expect("the working directory is known")
}

fn beside_this_one() -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    this.with_file_name("agent-mailbox")
}

/// The program with the configuration for a store and without a subcommand.
pub(crate) fn command(program: &Path, store: &MeasuredStore, disk: Disk) -> Command {
    let folder = std::path::absolute(store.folder()).expect("the working directory is known");
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(&folder).current_dir(&folder);
    command.env("AGENT_MAILBOX__HOSTED_DOMAINS", "agents.test");
    // The default plans are not for such a load.
    for limit in ["RPM", "CREDITS_PER_PERIOD", "STORAGE_BYTES", "MAILS_PER_MONTH"] {
        command.env(format!("AGENT_MAILBOX__PLANS__DEVELOPER__{limit}"), "1000000000000");
    }
    if let DatabaseLocation::Postgres(server) = &store.location {
        command.env("AGENT_MAILBOX__DATABASE__URL", &server.url);
    }
    if disk == Disk::AsItIs {
        command.env_remove("LD_PRELOAD");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The running program.
pub(crate) struct RunningProgram {
    child: Child,
    /// The address of its API.
    pub(crate) address: SocketAddr,
    /// The address of its SMTP listener.
    pub(crate) smtp: SocketAddr,
    pub(crate) ready_after: Duration,
}

impl RunningProgram {
    /// Starts it on a store, with limits out of reach, and waits until it is ready.
    pub(crate) async fn start(program: &Path, store: &MeasuredStore, disk: Disk) -> Self {
        Self::start_with(program, store, disk, &[]).await
    }

    /// The same with further settings.
    pub(crate) async fn start_with(
        program: &Path,
        store: &MeasuredStore,
        disk: Disk,
        settings: &[(&str, String)],
    ) -> Self {
        let (address, smtp) = (free_address().await, free_address().await);
        let mut command = command(program, store, disk);
        command.arg("serve").env("AGENT_MAILBOX__HTTP__LISTEN", address.to_string());
        command.env("AGENT_MAILBOX__SMTP__LISTEN", smtp.to_string());
        command.env("AGENT_MAILBOX__SMTP__CONNECTIONS_PER_MINUTE", "1000000000");
        command.envs(settings.iter().map(|(name, value)| (format!("AGENT_MAILBOX__{name}"), value)));
        command.stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().expect("the program starts: build it, or name it with --program");
        while !is_ready(address).await {
            assert!(child.try_wait().ok().flatten().is_none(), "the program ended before it was ready");
            assert!(started.elapsed() < START_TIMEOUT, "the program is not ready after {START_TIMEOUT:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Self { child, address, smtp, ready_after: started.elapsed() }
    }

    /// Its resident memory.
    pub(crate) fn megabytes(&self) -> f64 {
        to_megabytes(machine::resident_memory(self.child.id()))
    }

    /// The part of it that is no file's.
    pub(crate) fn anonymous_megabytes(&self) -> f64 {
        to_megabytes(machine::anonymous_memory(self.child.id()))
    }

    /// Its CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        machine::cpu_of(self.child.id())
    }

    /// The part of it that embeds messages for memory, long after they were acknowledged, at the lowest priority.
    pub(crate) fn embedding_cpu(&self) -> Duration {
        machine::cpu_of_threads(self.child.id(), "embed")
    }

    /// Stops it until [`Self::resume`].
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the program runs");
    }

    pub(crate) fn stop(mut self) {
        // Killed: the store must survive it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::cast_precision_loss, reason = "memory stays far below 2^52 bytes")]
fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(crate) async fn free_address() -> SocketAddr {
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
