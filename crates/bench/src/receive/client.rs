//! An SMTP client that keeps its connections: each session greets once, and then sends one message after the other.
//!
//! It writes prepared bytes and checks every reply, and nothing else: the cheaper it is, the more of the machine is
//! left for what is measured. An unexpected reply ends the program.

use std::{
    io::IoSlice,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use super::mix::Mix;
use crate::{
    load::{Outcome, on_own_thread},
    machine,
};

/// Which messages are sent, where, and over how many connections.
#[derive(Clone)]
pub(super) struct Sending {
    pub(super) address: SocketAddr,
    pub(super) sessions: usize,
    pub(super) mix: Arc<Mix>,
    /// The number of the first message.
    pub(super) first: usize,
    pub(super) messages: usize,
}

impl Sending {
    /// Sends the messages. A latency is the time from MAIL to the reply to the whole message. The time to connect and to
    /// greet is in none of the figures; the CPU time of the server is left to the caller.
    pub(super) async fn run(self) -> Outcome {
        on_own_thread(move || self.drive()).await
    }

    async fn drive(self) -> Outcome {
        let mut sessions = Vec::new();
        for _ in 0..self.sessions {
            sessions.push(Session::open(self.address, self.mix.largest()).await);
        }
        let next = Arc::new(AtomicUsize::new(self.first));
        let (started, before) = (Instant::now(), machine::thread_cpu());
        let mut tasks = JoinSet::new();
        for session in sessions {
            tasks.spawn(session.send_all(self.mix.clone(), next.clone(), self.first + self.messages));
        }
        let (mut latencies, mut bytes, mut sessions) = (Vec::new(), 0, Vec::new());
        while let Some(finished) = tasks.join_next().await {
            let (session, own_latencies, own_bytes) = finished.expect("a session lasts");
            latencies.extend(own_latencies);
            bytes += own_bytes;
            sessions.push(session);
        }
        let seconds = started.elapsed().as_secs_f64();
        let client = machine::thread_cpu().saturating_sub(before);
        for session in sessions {
            session.quit().await;
        }
        Outcome::new(latencies, bytes, seconds, client)
    }
}

/// An open connection after EHLO.
struct Session {
    stream: BufReader<TcpStream>,
    /// The last reply.
    reply: Vec<u8>,
    /// MAIL, RCPT and DATA, in as few writes as the server allows.
    envelope: Vec<(Vec<u8>, &'static [&'static str])>,
}

impl Session {
    async fn open(address: SocketAddr, largest: usize) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        let mut session = Self { stream: BufReader::new(stream), reply: Vec::new(), envelope: Vec::new() };
        session.expect("220").await;
        session.write(b"EHLO mx.remote.test\r\n").await;
        session.expect("250").await;
        let offers = Offers::read(&String::from_utf8_lossy(&session.reply));
        assert!(offers.size.is_none_or(|size| size > largest + 1000), "the server takes no {largest} bytes");
        session.envelope = offers.envelope();
        session
    }

    /// Sends messages while there are any. Returns itself, the latencies in seconds and the bytes that were sent.
    async fn send_all(
        mut self,
        mix: Arc<Mix>,
        next: Arc<AtomicUsize>,
        end: usize,
    ) -> (Self, Vec<f64>, usize) {
        let (mut latencies, mut bytes) = (Vec::with_capacity(1 << 10), 0);
        let mut beginning = Vec::with_capacity(1 << 10);
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= end {
                return (self, latencies, bytes);
            }
            beginning.clear();
            mix.write_beginning(n, &mut beginning);
            let before = Instant::now();
            self.send(&beginning, mix.rest(n)).await;
            latencies.push(before.elapsed().as_secs_f64());
            bytes += beginning.len() + mix.rest(n).len();
        }
    }

    async fn send(&mut self, beginning: &[u8], rest: &[u8]) {
        for index in 0..self.envelope.len() {
            let (commands, codes) = &self.envelope[index];
            self.stream.write_all(commands).await.expect("the server reads");
            for code in *codes {
                self.expect(code).await;
            }
        }
        // Both at once, without a copy: most messages are one packet.
        let parts = [IoSlice::new(beginning), IoSlice::new(rest)];
        let written = self.stream.write_vectored(&parts).await.expect("the server reads");
        self.write(&beginning[written.min(beginning.len())..]).await;
        self.write(&rest[written.saturating_sub(beginning.len())..]).await;
        self.expect("250").await;
    }

    async fn quit(mut self) {
        self.write(b"QUIT\r\n").await;
        self.expect("221").await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// Reads a reply, which must have this code.
    async fn expect(&mut self, code: &str) {
        self.reply.clear();
        loop {
            let start = self.reply.len();
            let read = self.stream.read_until(b'\n', &mut self.reply).await.expect("the server replies");
            assert_ne!(read, 0, "the server closed the connection instead of replying {code}");
            if self.reply.get(start + 3) != Some(&b'-') {
                break;
            }
        }
        assert!(
            self.reply.starts_with(code.as_bytes()),
            "{code} is expected: {}",
            String::from_utf8_lossy(&self.reply)
        );
    }
}

/// The extensions in the reply to EHLO that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Offers {
    pipelining: bool,
    eight_bit: bool,
    /// The size of the largest message, if there is a limit.
    size: Option<usize>,
}

impl Offers {
    fn read(reply: &str) -> Self {
        let find = |name: &str| {
            let mut extensions = reply.lines().skip(1).filter_map(|line| line.get(4..));
            extensions.find_map(|line| {
                let (word, parameters) = line.split_once(' ').unwrap_or((line, ""));
                word.eq_ignore_ascii_case(name).then_some(parameters)
            })
        };
        let size = find("SIZE").and_then(|size| size.trim().parse().ok()).filter(|size| *size > 0);
        Self { pipelining: find("PIPELINING").is_some(), eight_bit: find("8BITMIME").is_some(), size }
    }

    /// The commands before a message with the codes of their replies: all at once, or one after the other.
    fn envelope(&self) -> Vec<(Vec<u8>, &'static [&'static str])> {
        let body = if self.eight_bit { " BODY=8BITMIME" } else { "" };
        let mail = format!("MAIL FROM:<sender@remote.test>{body}\r\n");
        let (recipient, data) = ("RCPT TO:<bench-0@agents.test>\r\n", "DATA\r\n");
        if self.pipelining {
            return vec![([&mail, recipient, data].concat().into_bytes(), &["250", "250", "354"])];
        }
        vec![(mail.into_bytes(), &["250"]), (recipient.into(), &["250"]), (data.into(), &["354"])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Sink;

    #[test]
    fn the_offers_of_a_server_are_read() {
        let reply = "250-PIPELINING.test\r\n250-SIZE 10240000\r\n250-8bitmime\r\n250 PIPELINING\r\n";
        let offers = Offers::read(reply);
        assert_eq!(offers, Offers { pipelining: true, eight_bit: true, size: Some(10_240_000) });
        assert_eq!(offers.envelope().len(), 1);
        let offers = Offers::read("250-PIPELINING\r\n250 SIZE 0\r\n");
        assert_eq!(offers, Offers { pipelining: false, eight_bit: false, size: None });
        assert_eq!(offers.envelope().len(), 3);
    }

    #[tokio::test]
    async fn sessions_share_the_messages() {
        let sink = Sink::start();
        let mix = Mix::of_made(50);
        for (sessions, messages) in [(1, 20), (8, 60), (8, 3)] {
            let sending = Sending { address: sink.address, sessions, mix: mix.clone(), first: 7, messages };
            let outcome = sending.run().await;
            assert_eq!(outcome.requests.to_string(), messages.to_string());
            assert_eq!(sink.take().len(), messages);
        }
    }
}
