//! A session over a stream: reads, writes, keeps the time, and asks the [`Reception`].

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

/// How long a client may take for a command.
const COMMAND: Duration = Duration::from_mins(5);
/// How long content may be slow at first, and how slow it may be afterwards: 500 bytes a second.
const CONTENT: Duration = Duration::from_secs(10);
const CONTENT_BYTE: Duration = Duration::from_millis(2);
/// How long a client may take nothing of our replies.
const WRITE: Duration = Duration::from_mins(1);
/// How long, and for how many bytes, a client that was turned away may go on before it reads why.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 64 * 1024 * 1024;
/// How much is read at once: little for commands, more and more for content that keeps coming.
const READ_COMMAND: usize = 2 * 1024;
const READ_CONTENT: usize = 16 * 1024;
const READ_CAPACITY: usize = 128 * 1024;
/// Replies that are kept back so that they go out together.
const MAX_OUTPUT: usize = 8 * 1024;

/// Why a conversation is at its end on this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// One side has closed it.
    Closed,
    /// The client waits for TLS. Once that stands, [`Conversation::secured`] and a second run on the new stream go on.
    StartTls,
}

/// A session and whoever decides for it.
pub struct Conversation<R: Reception> {
    session: Session<R::Recipient>,
    reception: Arc<R>,
    stopping: watch::Receiver<bool>,
    greeted: bool,
    /// Whether something was replied since we last waited.
    replied: bool,
    /// Whether what we wait for is content.
    content: bool,
    /// When what we wait for must have come.
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
            deadline: Instant::now() + COMMAND,
            read_size: READ_COMMAND,
            began: None,
        }
    }

    /// Goes on under TLS.
    pub fn secured(&mut self, encryption: Encryption) {
        self.session.secured(encryption);
    }

    /// Speaks with the client until the end, or until it wants TLS.
    pub async fn run<S>(&mut self, stream: &mut S) -> io::Result<Ended>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if !std::mem::replace(&mut self.greeted, true) {
            self.peek(stream).await?;
            self.session.greet();
        }
        loop {
            let step = self.session.step();
            self.tell(None);
            match step {
                Step::Read => {
                    self.flush(stream).await?;
                    if !self.read(stream).await? {
                        return Ok(Ended::Closed);
                    }
                }
                Step::Pause(time) => sleep(time).await,
                Step::StartTls => {
                    self.flush(stream).await?;
                    return Ok(Ended::StartTls);
                }
                Step::Close { linger } => {
                    self.flush(stream).await?;
                    self.hang_up(stream, linger).await;
                    return Ok(Ended::Closed);
                }
                asking => self.ask(asking).await,
            }
            if self.session.output().len() > MAX_OUTPUT {
                self.flush(stream).await?;
            }
        }
    }

    /// Gets the answer that the session waits for.
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
                self.tell(Some(note));
            }
            _ => {}
        }
    }

    /// Tells of the transactions that have ended; at most one of them had a message.
    fn tell(&mut self, mut note: Option<R::Note>) {
        for record in self.session.take_ended() {
            let took = self.began.take().map(|began| began.elapsed()).unwrap_or_default();
            self.reception.ended(self.session.client(), record, note.take(), took);
        }
    }

    /// Takes what the client has sent already, without waiting for it.
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
        timeout(WRITE, write).await.map_err(io::Error::from)??;
        if output.capacity() > 2 * MAX_OUTPUT {
            *output = Vec::new();
        }
        output.clear();
        self.replied = true;
        Ok(())
    }

    /// Reads some input; false when there will be none.
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
            self.read_size = (self.read_size * 2).min(READ_CAPACITY);
        }
        if self.content {
            let earned = CONTENT_BYTE.saturating_mul(u32::try_from(length).unwrap_or(u32::MAX));
            self.deadline = (self.deadline + earned).min(Instant::now() + COMMAND);
        }
        Ok(length > 0)
    }

    /// Sets the time and makes room for what comes next.
    fn prepare(&mut self) {
        let content = self.session.in_content();
        let anew = std::mem::take(&mut self.replied) || content != self.content;
        self.content = content;
        if anew {
            self.deadline = Instant::now() + if content { CONTENT } else { COMMAND };
            self.read_size = if content { READ_CONTENT } else { READ_COMMAND };
        }
        let input = self.session.input();
        // A connection that only waits should hold no more than it needs.
        if !content && input.is_empty() && input.capacity() > READ_CONTENT {
            *input = BytesMut::new();
        }
        input.reserve(self.read_size);
    }

    /// Closes our side. Closing the other one as well while bytes are under way would take our last reply from the
    /// client, so those are read first.
    async fn hang_up<S>(&mut self, stream: &mut S, linger: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // Whoever is gone already has nothing to be told.
        let _ = timeout(LINGER, stream.shutdown()).await;
        if !linger || *self.stopping.borrow() {
            return;
        }
        let input = self.session.input();
        let drain = async {
            let mut left = LINGER_BYTES;
            while left > 0 {
                input.clear();
                input.reserve(READ_CONTENT);
                match stream.read_buf(input).await {
                    Ok(0) | Err(_) => return,
                    Ok(length) => left = left.saturating_sub(length),
                }
            }
        };
        let _ = timeout(LINGER, drain).await;
    }
}

/// A connection may be lost, or its task dropped, at any point: the transaction is reported to the reception all the same.
impl<R: Reception> Drop for Conversation<R> {
    fn drop(&mut self) {
        self.session.abandon();
        self.tell(None);
    }
}
