//! A session over a stream: reads, writes, enforces timeouts, and calls the [`Reception`].

use std::{future::poll_fn, io, pin::Pin, sync::Arc, task::Poll, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Client, Encryption, Reception, ReversePath, Settings, reply,
    session::{Session, Step},
};

/// Timeout for a command.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(5);
/// Time limit for content: a grace period, then at least 500 bytes a second.
const CONTENT_GRACE: Duration = Duration::from_secs(10);
const CONTENT_TIME_PER_BYTE: Duration = Duration::from_millis(2);
/// Timeout for writing replies.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long, and for how many bytes, input is drained after a refusal so that the client can read the reply.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_LINGER_BYTES: usize = 64 * 1024 * 1024;
/// Read buffer sizes: small for commands, growing for content.
const COMMAND_READ_BYTES: usize = 2 * 1024;
const CONTENT_READ_BYTES: usize = 16 * 1024;
const MAX_READ_BYTES: usize = 128 * 1024;
/// Replies that are buffered to be sent together.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;

/// Why a run over a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The conversation is over.
    Closed,
    /// The client waits for TLS. After the handshake, call [`Conversation::secured`] and run again on the new stream.
    StartTls,
}

/// A session and its reception.
pub struct Conversation<R: Reception> {
    session: Session<R::Recipient>,
    reception: Arc<R>,
    stopping: watch::Receiver<bool>,
    greeted: bool,
    /// Whether something was replied since the last wait.
    replied: bool,
    /// Whether content is expected.
    content: bool,
    /// The deadline of the current wait.
    deadline: Instant,
    read_size: usize,
    /// When the transaction began, if there is one.
    began: Option<Instant>,
}

impl<R: Reception> Conversation<R> {
    /// A conversation with a client that has just connected.
    ///
    /// Once `stopping` is true it ends with 421 as soon as no message is coming in.
    pub fn new(
        settings: Arc<Settings>,
        client: Client,
        reception: Arc<R>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let session = Session::new(settings, client);
        Self {
            session,
            reception,
            stopping,
            greeted: false,
            replied: false,
            content: false,
            deadline: Instant::now() + COMMAND_TIMEOUT,
            read_size: COMMAND_READ_BYTES,
            began: None,
        }
    }

    /// Continues under TLS.
    pub fn secured(&mut self, encryption: Encryption) {
        self.session.secured(encryption);
    }

    /// Serves the client until the end, or until STARTTLS.
    pub async fn run<S>(&mut self, stream: &mut S) -> io::Result<RunEnd>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if !std::mem::replace(&mut self.greeted, true) {
            self.peek(stream).await?;
            self.session.greet();
        }
        loop {
            let step = self.session.step();
            self.report_finished(None);
            match step {
                Step::Read => {
                    self.flush(stream).await?;
                    if !self.read(stream).await? {
                        return Ok(RunEnd::Closed);
                    }
                }
                Step::Pause(time) => sleep(time).await,
                Step::StartTls => {
                    self.flush(stream).await?;
                    return Ok(RunEnd::StartTls);
                }
                Step::Close { linger } => {
                    self.flush(stream).await?;
                    self.hang_up(stream, linger).await;
                    return Ok(RunEnd::Closed);
                }
                asking => self.ask(asking).await,
            }
            if self.session.output().len() > MAX_OUTPUT_BYTES {
                self.flush(stream).await?;
            }
        }
    }

    /// Asks the reception for the answer that the session needs.
    async fn ask(&mut self, step: Step<R::Recipient>) {
        let sender = self.session.sender().unwrap_or(&ReversePath::Null);
        let client = self.session.client();
        match step {
            Step::Mail(size) => {
                self.began = Some(Instant::now());
                let answer = self.reception.mail(client, sender, size).await;
                self.session.answer_mail(answer);
            }
            Step::Rcpt(path) => {
                let answer = self.reception.rcpt(client, sender, &path).await;
                self.session.answer_rcpt(answer);
            }
            Step::Message(envelope) => {
                let (from, message) = (envelope.from, envelope.message);
                let (answers, note) = self.reception.data(client, from, envelope.recipients, message).await;
                self.session.answer_message(answers);
                self.report_finished(Some(note));
            }
            _ => {}
        }
    }

    /// Reports finished transactions to the reception; at most one of them had a message.
    fn report_finished(&mut self, mut note: Option<R::Note>) {
        for record in self.session.take_finished() {
            let took = self.began.take().map(|began| began.elapsed()).unwrap_or_default();
            self.reception.ended(self.session.client(), record, note.take(), took);
        }
    }

    /// Reads input that has already arrived, without waiting.
    async fn peek<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> io::Result<()> {
        let mut space = [0; 1];
        let mut early = ReadBuf::new(&mut space);
        poll_fn(|context| match Pin::new(&mut *stream).poll_read(context, &mut early) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        })
        .await?;
        self.session.input().extend_from_slice(early.filled());
        Ok(())
    }

    async fn flush<S: AsyncWrite + Unpin>(&mut self, stream: &mut S) -> io::Result<()> {
        let output = self.session.output();
        if output.is_empty() {
            return Ok(());
        }
        let write = async {
            stream.write_all(output).await?;
            stream.flush().await
        };
        timeout(WRITE_TIMEOUT, write).await.map_err(io::Error::from)??;
        if output.capacity() > 2 * MAX_OUTPUT_BYTES {
            *output = Vec::new();
        }
        output.clear();
        self.replied = true;
        Ok(())
    }

    /// Reads some input; false at the end of the stream.
    async fn read<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> io::Result<bool> {
        self.prepare();
        let input = self.session.input();
        let room = input.capacity() - input.len();
        let length = tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stop| *stop), if !self.content => {
                self.session.close(&reply::STOPPING);
                return Ok(true);
            }
            length = stream.read_buf(input) => length?,
            () = sleep_until(self.deadline) => {
                self.session.close(&reply::TIMED_OUT);
                return Ok(true);
            }
        };
        if length == room {
            self.read_size = (self.read_size * 2).min(MAX_READ_BYTES);
        }
        if self.content {
            let earned = CONTENT_TIME_PER_BYTE.saturating_mul(u32::try_from(length).unwrap_or(u32::MAX));
            self.deadline = (self.deadline + earned).min(Instant::now() + COMMAND_TIMEOUT);
        }
        Ok(length > 0)
    }

    /// Sets the deadline and the read buffer for the next input.
    fn prepare(&mut self) {
        let content = self.session.in_content();
        let anew = std::mem::take(&mut self.replied) || content != self.content;
        self.content = content;
        if anew {
            self.deadline = Instant::now() + if content { CONTENT_GRACE } else { COMMAND_TIMEOUT };
            self.read_size = if content { CONTENT_READ_BYTES } else { COMMAND_READ_BYTES };
        }
        let input = self.session.input();
        // An idle connection should keep little memory.
        if !content && input.is_empty() && input.capacity() > CONTENT_READ_BYTES {
            *input = BytesMut::new();
        }
        input.reserve(self.read_size);
    }

    /// Closes our side. Closing the socket while input is in flight would reset the connection and lose our last reply,
    /// so that input is drained first.
    async fn hang_up<S>(&mut self, stream: &mut S, linger: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // The client may be gone already.
        let _ = timeout(LINGER_TIMEOUT, stream.shutdown()).await;
        if !linger || *self.stopping.borrow() {
            return;
        }
        let input = self.session.input();
        let drain = async {
            let mut left = MAX_LINGER_BYTES;
            while left > 0 {
                input.clear();
                input.reserve(CONTENT_READ_BYTES);
                match stream.read_buf(input).await {
                    Ok(0) | Err(_) => return,
                    Ok(length) => left = left.saturating_sub(length),
                }
            }
        };
        let _ = timeout(LINGER_TIMEOUT, drain).await;
    }
}

/// A connection may be lost, or its task dropped, at any point: the transaction is reported to the reception all the
/// same.
impl<R: Reception> Drop for Conversation<R> {
    fn drop(&mut self) {
        self.session.abandon();
        self.report_finished(None);
    }
}
