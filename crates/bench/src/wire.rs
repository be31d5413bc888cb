//! What a program sends to PostgreSQL, counted between the two: statements, and round trips.
//!
//! Every connection goes through this process, which makes it slower, so nothing is timed meanwhile.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use store::DatabaseLocation;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::AbortHandle,
};

use crate::measured_store::MeasuredStore;

/// What went over the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct WireTraffic {
    /// Statements, without those that only begin or end a transaction or a savepoint, or prepare a statement.
    pub(crate) statements: u64,
    /// The others.
    pub(crate) brackets: u64,
    /// How often something was sent while no response was outstanding.
    pub(crate) round_trips: u64,
    /// How often each statement was sent, by its text.
    pub(crate) texts: HashMap<String, u64>,
}

#[derive(Default)]
struct Counts {
    statements: AtomicU64,
    brackets: AtomicU64,
    round_trips: AtomicU64,
    /// How often each statement was sent, by its text.
    texts: Mutex<HashMap<String, u64>>,
}

impl Counts {
    fn count_text(&self, sql: &str) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        *texts.entry(sql.to_owned()).or_default() += 1;
    }
}

/// A server between a program and PostgreSQL, until it is dropped.
pub(crate) struct Wire {
    /// The store's URL with this server in the place of PostgreSQL.
    pub(crate) url: String,
    counts: Arc<Counts>,
    task: AbortHandle,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wire {
    /// Starts it for a store on PostgreSQL.
    pub(crate) async fn start(store: &MeasuredStore) -> Self {
        let DatabaseLocation::Postgres(server) = &store.location else {
            panic!("the store is on PostgreSQL")
        };
        let mut url: url::Url = server.url.parse().expect("the server's address is a URL");
        let server = (url.host_str().expect("a host").to_owned(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("a bound socket has an address");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(address.port())).expect("a port");
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(accept(listener, server, counts.clone())).abort_handle();
        Self { url: url.to_string(), counts, task }
    }

    /// What has been sent since the last call.
    pub(crate) fn take(&self) -> WireTraffic {
        WireTraffic {
            statements: self.counts.statements.swap(0, Ordering::Relaxed),
            brackets: self.counts.brackets.swap(0, Ordering::Relaxed),
            round_trips: self.counts.round_trips.swap(0, Ordering::Relaxed),
            texts: std::mem::take(&mut *self.counts.texts.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

async fn accept(listener: TcpListener, server: (String, u16), counts: Arc<Counts>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, counts) = (server.clone(), counts.clone());
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let outstanding = Arc::new(AtomicU64::new(0));
            let requests = forward_requests(from_client, to_server, &counts, &outstanding);
            let responses = forward_responses(from_server, to_client, &outstanding);
            // When one side has left, so has the other.
            tokio::select! { _ = requests => {}, _ = responses => {} }
        });
    }
}

/// Messages of one direction, however they are cut into packets.
#[derive(Default)]
struct Messages {
    buffer: Vec<u8>,
    /// Whether the first message, which has no type, is over.
    started: bool,
}

impl Messages {
    /// The next whole message: its type, 0 for the first one, and its content.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = usize::from(self.started);
        let length: [u8; 4] = self.buffer.get(head..head + 4)?.try_into().ok()?;
        let end = head + usize::try_from(u32::from_be_bytes(length)).ok()?;
        if self.buffer.len() < end {
            return None;
        }
        let kind = if self.started { self.buffer[0] } else { 0 };
        self.started = true;
        let content = self.buffer[head + 4..end].to_vec();
        self.buffer.drain(..end);
        Some((kind, content))
    }
}

async fn forward_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    counts: &Counts,
    outstanding: &AtomicU64,
) -> std::io::Result<()> {
    let (mut messages, mut packet) = (Messages::default(), vec![0; 64 * 1024]);
    // The texts of prepared statements by their names, and the one that is bound.
    let (mut prepared, mut bound) = (HashMap::new(), String::new());
    loop {
        let length = from.read(&mut packet).await?;
        if length == 0 {
            return Ok(());
        }
        messages.buffer.extend_from_slice(&packet[..length]);
        let (mut statements, mut brackets, mut waits) = (0, 0, 0);
        while let Some((kind, content)) = messages.next() {
            match kind {
                b'P' => {
                    let mut texts = content.split(|byte| *byte == 0);
                    let (name, sql) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
                    prepared.insert(name.to_vec(), String::from_utf8_lossy(sql).into_owned());
                }
                b'B' => {
                    let name = content.split(|byte| *byte == 0).nth(1).unwrap_or_default();
                    bound = prepared.get(name).cloned().unwrap_or_default();
                }
                b'E' if is_bracket(&bound) => brackets += 1,
                b'E' => {
                    statements += 1;
                    counts.count_text(&bound);
                }
                b'Q' => {
                    let (work, of_brackets) = simple_statements(&content);
                    let of_work = work.len() as u64;
                    (statements, brackets) = (statements + of_work, brackets + of_brackets);
                    for sql in &work {
                        counts.count_text(sql);
                    }
                    waits += u64::from(of_work + of_brackets > 0);
                    if of_work + of_brackets == 0 {
                        // A probe of the connection; its response is expected all the same.
                        outstanding.fetch_add(1, Ordering::SeqCst);
                    }
                }
                b'S' => waits += 1,
                _ => {}
            }
        }
        if waits > 0 && outstanding.fetch_add(waits, Ordering::SeqCst) == 0 {
            counts.round_trips.fetch_add(1, Ordering::Relaxed);
        }
        counts.statements.fetch_add(statements, Ordering::Relaxed);
        counts.brackets.fetch_add(brackets, Ordering::Relaxed);
        to.write_all(&packet[..length]).await?;
    }
}

/// Whether a statement only begins or ends something.
fn is_bracket(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET", "DEALLOCATE"].contains(&first)
}

/// The statements of a simple query that do something, and how many are around them. None of ours has a semicolon in a
/// literal.
fn simple_statements(content: &[u8]) -> (Vec<String>, u64) {
    let text = String::from_utf8_lossy(content);
    let all = text.trim_end_matches('\0').split(';').map(str::trim).filter(|text| !text.is_empty());
    let (brackets, work): (Vec<&str>, Vec<&str>) = all.partition(|sql| is_bracket(sql));
    (work.into_iter().map(str::to_owned).collect(), brackets.len() as u64)
}

async fn forward_responses(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    outstanding: &AtomicU64,
) -> std::io::Result<()> {
    // Every message of the server has a type.
    let (mut messages, mut packet) = (Messages { started: true, ..Messages::default() }, vec![0; 64 * 1024]);
    let mut is_ready = false;
    loop {
        let length = from.read(&mut packet).await?;
        if length == 0 {
            return Ok(());
        }
        messages.buffer.extend_from_slice(&packet[..length]);
        while let Some((kind, _)) = messages.next() {
            // The first of them answers the log-in.
            if kind == b'Z' && std::mem::replace(&mut is_ready, true) {
                outstanding.fetch_sub(1, Ordering::SeqCst);
            }
        }
        to.write_all(&packet[..length]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_from_what_is_around_them() {
        assert_eq!(simple_statements(b"BEGIN READ ONLY; SET LOCAL a.b = E'x'\0"), (vec![], 2));
        assert_eq!(simple_statements(b"SELECT 1; COMMIT\0"), (vec!["SELECT 1".to_owned()], 1));
        assert_eq!(simple_statements(b"\0"), (vec![], 0));
    }

    #[test]
    fn messages_are_put_together() {
        let mut messages = Messages::default();
        messages.buffer.extend([0, 0, 0, 5, 9]);
        assert_eq!(messages.next(), Some((0, vec![9])));
        messages.buffer.extend([b'Q', 0, 0]);
        assert_eq!(messages.next(), None);
        messages.buffer.extend([0, 5, 0, b'S', 0, 0, 0, 4]);
        assert_eq!(messages.next(), Some((b'Q', vec![0])));
        assert_eq!(messages.next(), Some((b'S', vec![])));
    }
}
