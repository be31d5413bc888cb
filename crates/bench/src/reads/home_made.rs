//! Servers as people make them at home, over the same plain rows: fastify with libsql, `FastAPI` with Python's
//! SQLite. `scripts/bench` installs what they need and says where; without it they are left out.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::net::TcpStream;

use super::plain::PlainFile;
use crate::program::free_address;

/// How long a server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server. It is stopped when this value is dropped.
pub(super) struct HomeMade {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    child: Child,
}

impl HomeMade {
    /// Starts those whose language is installed, with a process for each core.
    pub(super) async fn start_all(file: &PlainFile) -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("servers");
        let mut running = Vec::new();
        for (name, variable, program) in [
            ("fastify", "AGENT_MAILBOX_BENCH_NODE", "server.mjs"),
            ("FastAPI", "AGENT_MAILBOX_BENCH_PYTHON", "server.py"),
        ] {
            let Some(place) = std::env::var_os(variable) else {
                eprintln!("no comparison with {name}: {variable} is not set (scripts/bench sets it)");
                continue;
            };
            let address = free_address().await;
            let mut command = if name == "fastify" {
                // Packages are found beside the program.
                let copy = PathBuf::from(&place).join(program);
                std::fs::copy(folder.join(program), &copy).expect("the server's program can be copied");
                let mut command = Command::new("node");
                command.arg(copy);
                command
            } else {
                let mut command = Command::new(&place);
                command.arg(folder.join(program));
                command
            };
            let workers = std::thread::available_parallelism().map_or(1, usize::from);
            let path = std::path::absolute(&file.0).expect("the working directory is known");
            command.env("PLAIN_FILE", path).env("PORT", address.port().to_string());
            command.env("WORKERS", workers.to_string()).stdin(Stdio::piped()).stdout(Stdio::null());
            let child = command.spawn().expect("the server starts");
            let mut server = Self { name, address, child };
            server.wait_until_ready().await;
            running.push(server);
        }
        running
    }

    async fn wait_until_ready(&mut self) {
        let started = std::time::Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            assert!(self.child.try_wait().ok().flatten().is_none(), "{} ended", self.name);
            assert!(started.elapsed() < START_TIMEOUT, "{} is not ready", self.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        let own = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|process| process.parse().ok());
        std::iter::once(own).chain(children).collect()
    }
}

impl Drop for HomeMade {
    fn drop(&mut self) {
        for process in self.processes().into_iter().rev() {
            let _ = Command::new("kill").arg(process.to_string()).status();
        }
        let _ = self.child.wait();
    }
}
