//! The load: a small HTTP/1.1 client in a closed loop over persistent connections.
//!
//! It writes prepared bytes, reads a response by its Content-Length and checks the status, and nothing else: the
//! cheaper the client, the more of the machine is left for what is measured. It runs on a thread of its own, whose
//! CPU time is known, so that it can be subtracted from the server's.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{machine, stats::percentile};

/// Writes the next request.
pub(crate) type NextRequest = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// When a load ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    After(Duration),
    AfterRequests(u64),
}

/// What to send, where, and how much.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) next_request: NextRequest,
    pub(crate) expected_status: u16,
    /// The processes that serve, where they are not this one.
    pub(crate) processes: Vec<u32>,
}

/// The result of a load.
pub(crate) struct Outcome {
    pub(crate) requests: f64,
    pub(crate) requests_per_second: f64,
    /// Milliseconds.
    pub(crate) median_latency: f64,
    /// Milliseconds.
    pub(crate) p99_latency: f64,
    /// Bytes of the bodies.
    pub(crate) bytes_per_second: f64,
    /// CPU time of the serving processes per request in microseconds, without the client's.
    pub(crate) server_cpu: f64,
    /// CPU time of the client per request in microseconds.
    pub(crate) client_cpu: f64,
}

impl Load {
    /// A load that repeats one request.
    pub(crate) fn of_one(address: SocketAddr, connections: usize, request: String) -> Self {
        let bytes = request.into_bytes();
        let next_request: NextRequest = Arc::new(move |buffer| buffer.extend_from_slice(&bytes));
        Self { address, connections, next_request, expected_status: 200, processes: Vec::new() }
    }

    /// Runs the load. An unexpected status ends the program.
    pub(crate) async fn run(&self, end: End) -> Outcome {
        let load = self.clone();
        on_own_thread(move || load.drive(end)).await
    }

    /// The CPU time of the serving processes so far.
    fn server_cpu(&self) -> Duration {
        if self.processes.is_empty() {
            return machine::process_cpu();
        }
        self.processes.iter().map(|process| machine::cpu_of(*process)).sum()
    }

    async fn drive(self, end: End) -> Outcome {
        let (process_before, client_before) = (self.server_cpu(), machine::thread_cpu());
        let started = Instant::now();
        let budget = Arc::new(AtomicU64::new(match end {
            End::After(_) => u64::MAX,
            End::AfterRequests(requests) => requests,
        }));
        let deadline = match end {
            End::After(duration) => Some(started + duration),
            End::AfterRequests(_) => None,
        };
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..self.connections {
            tasks.spawn(converse(self.clone(), deadline, budget.clone()));
        }
        let (mut latencies, mut bytes): (Vec<f64>, usize) = (Vec::new(), 0);
        while let Some(finished) = tasks.join_next().await {
            let finished = finished.expect("a connection lasts");
            latencies.extend(finished.0);
            bytes += finished.1;
        }
        let seconds = started.elapsed().as_secs_f64();
        let client = machine::thread_cpu().saturating_sub(client_before);
        let process = self.server_cpu().saturating_sub(process_before);
        // In this process the client's thread is counted too.
        let server = if self.processes.is_empty() { process.saturating_sub(client) } else { process };
        Outcome::new(latencies, bytes, seconds, client).with_server_cpu(server)
    }
}

impl Outcome {
    /// From the latencies in seconds, the bytes of all bodies, how long everything took and the CPU time of the client.
    pub(crate) fn new(mut latencies: Vec<f64>, bytes: usize, seconds: f64, client: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
        let (requests, bytes) = (latencies.len() as f64, bytes as f64);
        Self {
            requests,
            requests_per_second: requests / seconds,
            median_latency: percentile(&mut latencies, 0.5) * 1e3,
            p99_latency: percentile(&mut latencies, 0.99) * 1e3,
            bytes_per_second: bytes / seconds,
            server_cpu: 0.0,
            client_cpu: client.as_secs_f64() / requests * 1e6,
        }
    }

    /// The same if the last request was complete only so much later.
    pub(crate) fn with_delay(self, delay: Duration) -> Self {
        let seconds = self.requests / self.requests_per_second;
        let stretch = seconds / (seconds + delay.as_secs_f64());
        Self {
            requests_per_second: self.requests_per_second * stretch,
            bytes_per_second: self.bytes_per_second * stretch,
            ..self
        }
    }

    /// The same with the CPU time of the server for all requests.
    pub(crate) fn with_server_cpu(self, server: Duration) -> Self {
        Self { server_cpu: server.as_secs_f64() / self.requests * 1e6, ..self }
    }
}

/// Runs a client on a thread and a runtime of its own: nothing else is in the thread's CPU time, and no other task
/// delays it.
pub(crate) async fn on_own_thread<T, F>(client: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (done, outcome) = tokio::sync::oneshot::channel();
    let drive = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _ = done.send(runtime.expect("the client's runtime starts").block_on(client()));
    };
    let thread = std::thread::Builder::new().name("load-client".to_owned());
    thread.spawn(drive).expect("a thread for the client");
    outcome.await.expect("the load runs to its end")
}

/// One connection: request, response, repeat. Returns the latencies in seconds and the bytes of the bodies.
async fn converse(load: Load, deadline: Option<Instant>, budget: Arc<AtomicU64>) -> (Vec<f64>, usize) {
    let mut connection = Connection::open(load.address).await;
    let mut request = Vec::with_capacity(1024);
    let (mut latencies, mut bytes) = (Vec::with_capacity(1 << 14), 0);
    loop {
        let before = Instant::now();
        if deadline.is_some_and(|deadline| before >= deadline) || !take_one(&budget) {
            return (latencies, bytes);
        }
        request.clear();
        (load.next_request)(&mut request);
        connection.stream.write_all(&request).await.expect("the server reads");
        let (status, body) = connection.read_answer().await;
        assert_eq!(status, load.expected_status, "{}", String::from_utf8_lossy(body));
        bytes += body.len();
        latencies.push(before.elapsed().as_secs_f64());
    }
}

fn take_one(budget: &AtomicU64) -> bool {
    budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// A connection and its read buffer.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, buffer: Vec::with_capacity(1 << 14) }
    }

    /// Sends one request and returns the status and the body of its response.
    pub(crate) async fn ask(&mut self, request: &str) -> (u16, Vec<u8>) {
        self.stream.write_all(request.as_bytes()).await.expect("the server reads");
        let (status, body) = self.read_answer().await;
        (status, body.to_vec())
    }

    async fn read_answer(&mut self) -> (u16, &[u8]) {
        self.buffer.clear();
        let head = loop {
            self.read_more().await;
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (status, length) = read_head(&self.buffer[..head]).expect("an answer with a length");
        while self.buffer.len() < head + length {
            self.read_more().await;
        }
        (status, &self.buffer[head..])
    }

    async fn read_more(&mut self) {
        let read = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
        assert_ne!(read, 0, "the server closed the connection");
    }
}

/// The status and the length of the body.
fn read_head(head: &[u8]) -> Option<(u16, usize)> {
    const LENGTH: &[u8] = b"content-length:";
    let status = std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()?;
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH)))?;
    let length = std::str::from_utf8(&line[LENGTH.len()..]).ok()?.trim().parse().ok()?;
    Some((status, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = b"HTTP/1.1 201 Created\r\ndate: today\r\nContent-Length: 17\r\n\r\n";
        assert_eq!(read_head(head), Some((201, 17)));
        assert_eq!(read_head(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(read_head(b"HTTP"), None);
    }

    #[test]
    fn a_budget_ends() {
        let budget = AtomicU64::new(2);
        assert!(take_one(&budget) && take_one(&budget) && !take_one(&budget));
    }
}
