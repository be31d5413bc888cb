//! The stream under a connection: it reports reads and writes to `Pace`, and lingers on close.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};

use super::pace::Pace;

/// How long a client may go on sending bytes that are discarded, and how long it may pause.
const LINGER_TIMEOUT: Duration = Duration::from_secs(30);
const LINGER_PAUSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of a discarding read, and how many are made before yielding.
const DISCARD_BUFFER_BYTES: usize = 8 * 1024;
const MAX_READS_IN_A_ROW: usize = 32;

/// A stream that reports reads and writes.
pub(super) struct WatchedStream {
    stream: TcpStream,
    pace: Arc<Pace>,
    ending: Ending,
}

/// The progress of closing a stream.
enum Ending {
    Open,
    /// The write side is shut down; bytes from the client are discarded until these two deadlines.
    Lingering {
        until: Instant,
        pause: Pin<Box<Sleep>>,
    },
    Over,
}

impl WatchedStream {
    pub(super) fn new(stream: TcpStream, pace: Arc<Pace>) -> Self {
        Self { stream, pace, ending: Ending::Open }
    }

    /// Reads and discards bytes until the client closes its side or a deadline passes.
    ///
    /// Closing a socket with unread bytes makes the kernel reset the connection, and a client may then lose a
    /// response that it has not read yet.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Ending::Lingering { until, pause } = &mut self.ending else { return Poll::Ready(()) };
        let mut thrown_away = [0; DISCARD_BUFFER_BYTES];
        for _ in 0..MAX_READS_IN_A_ROW {
            if pause.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut thrown_away);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
            pause.as_mut().reset((Instant::now() + LINGER_PAUSE_TIMEOUT).min(*until));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pace.has_read();
        }
        outcome
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pace.has_written(outcome.is_pending());
        outcome
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.pace.has_written(outcome.is_pending());
        outcome
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.ending, Ending::Open) {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            // Without unread bytes there is no need to linger.
            self.ending = if self.pace.has_unread() {
                let now = Instant::now();
                let pause = Box::pin(tokio::time::sleep_until(now + LINGER_PAUSE_TIMEOUT));
                Ending::Lingering { until: now + LINGER_TIMEOUT, pause }
            } else {
                Ending::Over
            };
        }
        ready!(self.poll_linger(context));
        self.ending = Ending::Over;
        Poll::Ready(Ok(()))
    }
}
