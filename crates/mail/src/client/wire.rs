//! The byte stream of a connection: commands out, replies in, with a deadline for every wait.

use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::error::{Error, Phase};
use super::reply::{MAX_LINE_BYTES, PartialReply, Reply};

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// Content written per timeout.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;

/// A stream that a connection can use.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A stream and its read buffer.
pub(super) struct Wire {
    /// Nothing only during the TLS handshake, or after it failed.
    stream: Option<Box<dyn Io>>,
    input: BytesMut,
    deadline: Instant,
    /// Time of the last reply.
    last_reply: Instant,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Io>, total: Duration) -> Self {
        let now = Instant::now();
        Self { stream: Some(stream), input: BytesMut::new(), deadline: now + total, last_reply: now }
    }

    /// Restarts the total timeout.
    pub(super) fn set_total(&mut self, total: Duration) {
        self.deadline = Instant::now() + total;
    }

    /// The deadline of a wait that begins now.
    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        self.deadline.min(Instant::now() + timeout)
    }

    /// Takes the stream for TLS. Buffered input could have been injected in plaintext, and is an error.
    pub(super) fn take_for_tls(&mut self) -> Result<Box<dyn Io>, Error> {
        self.expect_silence(Phase::Tls)?;
        self.stream.take().ok_or(Error::Closed(Phase::Tls))
    }

    /// Continues over another stream.
    pub(super) fn replace_stream(&mut self, stream: Box<dyn Io>) {
        self.stream = Some(stream);
    }

    /// Sends a command and waits for its answer.
    pub(super) async fn command(
        &mut self,
        phase: Phase,
        timeout: Duration,
        command: &str,
    ) -> Result<Reply, Error> {
        self.send_command(phase, timeout, command.as_bytes()).await?;
        self.reply(phase, timeout).await
    }

    /// Sends a command; its line end is added.
    pub(super) async fn send_command(
        &mut self,
        phase: Phase,
        timeout: Duration,
        command: &[u8],
    ) -> Result<(), Error> {
        self.expect_silence(phase)?;
        let line = [command, b"\r\n"].concat();
        self.write(phase, timeout, &line).await
    }

    /// Writes bytes and flushes.
    pub(super) async fn write(&mut self, phase: Phase, timeout: Duration, bytes: &[u8]) -> Result<(), Error> {
        let deadline = self.deadline(timeout);
        let stream = self.stream.as_mut().ok_or(Error::Closed(phase))?;
        let write = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        match timeout_at(deadline, write).await {
            Err(_) => Err(Error::Timeout(phase)),
            Ok(Err(error)) => Err(Error::Network(phase, error.kind().to_string())),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Reads one whole reply.
    pub(super) async fn reply(&mut self, phase: Phase, timeout: Duration) -> Result<Reply, Error> {
        let deadline = self.deadline(timeout);
        let reply =
            timeout_at(deadline, self.read_reply(phase)).await.unwrap_or(Err(Error::Timeout(phase)))?;
        self.last_reply = Instant::now();
        Ok(reply)
    }

    /// Whether the last reply is at most this old.
    pub(super) fn replied_within(&self, age: Duration) -> bool {
        self.last_reply.elapsed() <= age
    }

    /// A reply that is already there or comes within two seconds.
    pub(super) async fn pending_reply(&mut self) -> Option<Reply> {
        tokio::time::timeout(Duration::from_secs(2), self.read_reply(Phase::Content)).await.ok()?.ok()
    }

    /// Fails if the server has closed the connection or sent something since its last reply.
    pub(super) async fn expect_open(&mut self, phase: Phase) -> Result<(), Error> {
        if self.input.is_empty() {
            match tokio::time::timeout(Duration::ZERO, self.read(phase)).await {
                Err(_) => return Ok(()),
                Ok(read) => read?,
            }
        }
        // Usually an idle timeout (421). It says nothing about a message that the server has not seen.
        match self.pending_reply().await {
            Some(reply) if reply.is_temporary() => Err(Error::Refused(phase, reply)),
            _ => Err(Error::Protocol(phase, "an answer before the question")),
        }
    }

    async fn read_reply(&mut self, phase: Phase) -> Result<Reply, Error> {
        let mut partial = PartialReply::default();
        loop {
            while let Some(end) = memchr(b'\n', &self.input) {
                let line = self.input.get(..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if line.len() > MAX_LINE_BYTES {
                    return Err(Error::Protocol(phase, "a line without end"));
                }
                let taken = partial.take(line);
                self.input.advance(end + 1);
                match taken {
                    Ok(None) => {}
                    Ok(Some(reply)) => return Ok(reply),
                    Err(why) => return Err(Error::Protocol(phase, why)),
                }
            }
            if self.input.len() > MAX_LINE_BYTES {
                return Err(Error::Protocol(phase, "a line without end"));
            }
            self.read(phase).await?;
        }
    }

    /// Reads available input, or waits for some.
    async fn read(&mut self, phase: Phase) -> Result<(), Error> {
        self.input.reserve(READ_BYTES);
        let stream = self.stream.as_mut().ok_or(Error::Closed(phase))?;
        let mut buffer = (&mut self.input).limit(READ_BYTES);
        match stream.read_buf(&mut buffer).await {
            Ok(0) => Err(Error::Closed(phase)),
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Network(phase, error.kind().to_string())),
        }
    }

    /// Refuses unsolicited input.
    fn expect_silence(&self, phase: Phase) -> Result<(), Error> {
        if self.input.is_empty() {
            Ok(())
        } else {
            Err(Error::Protocol(phase, "an answer before the question"))
        }
    }

    /// Closes our side.
    pub(super) async fn shut_down(&mut self, timeout: Duration) {
        if let Some(stream) = &mut self.stream {
            // The peer may be gone already.
            let _ = tokio::time::timeout(timeout, stream.shutdown()).await;
        }
    }
}
