//! The stream under a connection: it tells when bytes move and when they do not, and ends in good order.

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

/// How long a client may go on sending what nobody reads, and how long it may pause in that.
const LINGER_TIMEOUT: Duration = Duration::from_secs(30);
const LINGER_PAUSE_TIMEOUT: Duration = Duration::from_secs(5);
/// What is taken from the system in one go to be thrown away, and how often before others have their turn.
const DISCARD_BUFFER_BYTES: usize = 8 * 1024;
const MAX_READS_IN_A_ROW: usize = 32;

/// A stream that tells when bytes move, and when they do not.
pub(super) struct WatchedStream {
    stream: TcpStream,
    pace: Arc<Pace>,
    ending: Ending,
}

/// How far the end of a stream has come.
enum Ending {
    Open,
    /// Nothing more is written; what the client still sends is thrown away until these two moments.
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

    /// Reads what comes and throws it away, until the client is through or has had its time.
    ///
    /// A program that closes a socket with bytes in it that nobody read makes the system reset the connection, and a client whose
    /// connection is reset may lose the answer that it had already.
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
            // Who has sent nothing that was not read needs no waiting for.
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
