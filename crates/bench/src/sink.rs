//! An SMTP server that accepts everything and only counts: the relay of measurements.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

const DELIVERY_TIMEOUT: Duration = Duration::from_mins(2);

/// The server, on a thread of its own.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    accepted_at: Arc<Mutex<Vec<Instant>>>,
}

impl Sink {
    /// A sink with the extensions of Postfix's `smtp-sink`.
    pub(crate) fn start() -> Self {
        Self::serve(SinkBehaviour { delay: Duration::ZERO, chunking: false })
    }

    /// A sink whose replies are delayed, as if it were far away, and that supports CHUNKING, as the large providers
    /// do.
    pub(crate) fn with_delay(delay: Duration) -> Self {
        Self::serve(SinkBehaviour { delay, chunking: true })
    }

    fn serve(behaviour: SinkBehaviour) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("a bound socket has an address");
        let accepted_at: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let sink = Self { address, accepted_at: accepted_at.clone() };
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("the sink's runtime starts").block_on(async {
                let listener = TcpListener::from_std(listener).expect("the socket listens");
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(converse(stream, accepted_at.clone(), behaviour));
                }
            });
        };
        std::thread::Builder::new().name("sink".to_owned()).spawn(serve).expect("a thread for the sink");
        sink
    }

    /// When each message was accepted, since the last call.
    pub(crate) fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.accepted_at.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self) -> usize {
        self.accepted_at.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for this many messages.
    pub(crate) async fn wait_for(&self, count: usize) {
        let started = Instant::now();
        while self.count() < count {
            assert!(
                started.elapsed() < DELIVERY_TIMEOUT,
                "only {} of {count} messages arrived",
                self.count()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The behaviour of the server.
#[derive(Clone, Copy)]
struct SinkBehaviour {
    delay: Duration,
    chunking: bool,
}

/// Even a sleep of zero may last until the next millisecond.
async fn delay_reply(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Speaks a minimal SMTP, with pipelining. A client that disconnects is no error.
async fn converse(
    stream: TcpStream,
    accepted_at: Arc<Mutex<Vec<Instant>>>,
    SinkBehaviour { delay, chunking }: SinkBehaviour,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(64 * 1024, stream);
    delay_reply(delay).await;
    stream.write_all(b"220 sink.test ESMTP\r\n").await?;
    let (mut line, mut in_message) = (Vec::new(), false);
    let mut answers: Vec<u8> = Vec::new();
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if in_message {
            if line == b".\r\n" {
                in_message = false;
                accepted_at.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                answers.extend_from_slice(b"250 2.0.0 Taken\r\n");
            } else {
                continue;
            }
        } else {
            let verb = line.get(..4).map(<[u8]>::to_ascii_uppercase);
            match verb.as_deref() {
                Some(b"EHLO") => {
                    answers.extend_from_slice(b"250-sink.test\r\n250-PIPELINING\r\n");
                    answers.extend_from_slice(if chunking { b"250-CHUNKING\r\n" } else { b"" });
                    answers.extend_from_slice(b"250 8BITMIME\r\n");
                }
                Some(b"BDAT") if chunking => {
                    let size =
                        std::str::from_utf8(&line).ok().and_then(|line| line.split(' ').nth(1)?.parse().ok());
                    let Some(size) = size else { return Ok(()) };
                    tokio::io::copy(&mut (&mut stream).take(size), &mut tokio::io::sink()).await?;
                    accepted_at.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                    answers.extend_from_slice(b"250 2.0.0 Taken\r\n");
                }
                Some(b"DATA") => {
                    in_message = true;
                    answers.extend_from_slice(b"354 Go on\r\n");
                }
                Some(b"QUIT") => {
                    answers.extend_from_slice(b"221 2.0.0 Bye\r\n");
                    stream.write_all(&answers).await?;
                    return Ok(());
                }
                _ => answers.extend_from_slice(b"250 2.0.0 Ok\r\n"),
            }
        }
        // Replies are buffered until the client has nothing more to send.
        if stream.buffer().is_empty() {
            delay_reply(delay).await;
            stream.write_all(&answers).await?;
            answers.clear();
        }
    }
}
