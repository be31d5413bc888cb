//! The bytes of a connection: commands out, replies in, and an end to every wait.

use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{Error, Phase};
use super::reply::{MAX_LINE, Partial, Reply};

/// How much is read at once.
const READ_SIZE: usize = 4096;

/// How much content is written before its time begins anew.
pub(super) const BLOCK: usize = 64 * 1024;

/// A stream that a connection can use.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A stream with what was read ahead from it.
pub(super) struct Wire {
    /// Nothing only while TLS begins, or after that failed.
    stream: Option<Box<dyn Io>>,
    input: BytesMut,
    deadline: Instant,
    /// When the last reply came.
    heard: Instant,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Io>, total: Duration) -> Self {
        let now = Instant::now();
        Self { stream: Some(stream), input: BytesMut::new(), deadline: now + total, heard: now }
    }

    /// Begins the time for everything together anew.
    pub(super) fn set_total(&mut self, total: Duration) {
        self.deadline = Instant::now() + total;
    }

    /// When a wait that begins now must end.
    pub(super) fn limit(&self, patience: Duration) -> Instant {
        self.deadline.min(Instant::now() + patience)
    }

    /// Gives the stream away for TLS. What was read ahead came from nobody knows whom, and is an error.
    pub(super) fn take_for_tls(&mut self) -> Result<Box<dyn Io>, Error> {
        self.expect_silence(Phase::Tls)?;
        self.stream.take().ok_or(Error::Closed(Phase::Tls))
    }

    /// Goes on over another stream.
    pub(super) fn put(&mut self, stream: Box<dyn Io>) {
        self.stream = Some(stream);
    }

    /// Sends a command and waits for its answer.
    pub(super) async fn command(
        &mut self,
        phase: Phase,
        patience: Duration,
        command: &str,
    ) -> Result<Reply, Error> {
        self.say(phase, patience, command.as_bytes()).await?;
        self.reply(phase, patience).await
    }

    /// Sends a command; its line end is added.
    pub(super) async fn say(
        &mut self,
        phase: Phase,
        patience: Duration,
        command: &[u8],
    ) -> Result<(), Error> {
        self.expect_silence(phase)?;
        let line = [command, b"\r\n"].concat();
        self.write(phase, patience, &line).await
    }

    /// Writes bytes and makes sure that they leave.
    pub(super) async fn write(
        &mut self,
        phase: Phase,
        patience: Duration,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let limit = self.limit(patience);
        let stream = self.stream.as_mut().ok_or(Error::Closed(phase))?;
        let write = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        match timeout_at(limit, write).await {
            Err(_) => Err(Error::Timeout(phase)),
            Ok(Err(error)) => Err(Error::Network(phase, error.kind().to_string())),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Waits for one whole reply, however many pieces it comes in.
    pub(super) async fn reply(&mut self, phase: Phase, patience: Duration) -> Result<Reply, Error> {
        let limit = self.limit(patience);
        let reply = timeout_at(limit, self.read_reply(phase)).await.unwrap_or(Err(Error::Timeout(phase)))?;
        self.heard = Instant::now();
        Ok(reply)
    }

    /// Whether the server said something a short while ago.
    pub(super) fn heard_within(&self, while_ago: Duration) -> bool {
        self.heard.elapsed() <= while_ago
    }

    /// A reply that has come already or comes within a moment, if it is one.
    pub(super) async fn last_words(&mut self) -> Option<Reply> {
        timeout(Duration::from_secs(2), self.read_reply(Phase::Content)).await.ok()?.ok()
    }

    /// Makes sure that the server has neither hung up nor said something since it was last heard.
    pub(super) async fn expect_open(&mut self, phase: Phase) -> Result<(), Error> {
        if self.input.is_empty() {
            match timeout(Duration::ZERO, self.read(phase)).await {
                Err(_) => return Ok(()),
                Ok(read) => read?,
            }
        }
        // Usually that it has waited for too long. It is no verdict about a mail that it has not seen.
        match self.last_words().await {
            Some(reply) if reply.is_temporary() => Err(Error::Refused(phase, reply)),
            _ => Err(Error::Protocol(phase, "an answer before the question")),
        }
    }

    async fn read_reply(&mut self, phase: Phase) -> Result<Reply, Error> {
        let mut partial = Partial::default();
        loop {
            while let Some(end) = memchr(b'\n', &self.input) {
                let line = self.input.get(..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if line.len() > MAX_LINE {
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
            if self.input.len() > MAX_LINE {
                return Err(Error::Protocol(phase, "a line without end"));
            }
            self.read(phase).await?;
        }
    }

    /// Reads what there is, or waits for something.
    async fn read(&mut self, phase: Phase) -> Result<(), Error> {
        self.input.reserve(READ_SIZE);
        let stream = self.stream.as_mut().ok_or(Error::Closed(phase))?;
        let mut room = (&mut self.input).limit(READ_SIZE);
        match stream.read_buf(&mut room).await {
            Ok(0) => Err(Error::Closed(phase)),
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Network(phase, error.kind().to_string())),
        }
    }

    /// Refuses what the server said before it was asked.
    fn expect_silence(&self, phase: Phase) -> Result<(), Error> {
        if self.input.is_empty() {
            Ok(())
        } else {
            Err(Error::Protocol(phase, "an answer before the question"))
        }
    }

    /// Closes our side.
    pub(super) async fn shut_down(&mut self, patience: Duration) {
        if let Some(stream) = &mut self.stream {
            // Whoever is gone already need not hear it.
            let _ = timeout(patience, stream.shutdown()).await;
        }
    }
}
