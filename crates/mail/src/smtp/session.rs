//! The protocol without a network: bytes go in, replies come out, and now and then something is asked for.
//!
//! Here are the lines and the counting of mistakes; what commands do is in `session/commands.rs`, how a message
//! comes in is in `session/transfer.rs`.

mod commands;
mod transfer;

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

use super::{
    Client, Encryption, Protocol, Settings,
    budget::Lease,
    command::{self, Command, Mistake, Names},
    content::{Scanner, Transfer},
    path::{ForwardPath, ReversePath},
    record::{End, Record},
    reply::{self, Reply},
};

/// Mistakes after which the connection is closed.
const MAX_ERRORS: u32 = 20;
/// Mistakes after which each further one costs time.
const PATIENT_ERRORS: u32 = 10;
/// How much time.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// Commands that bring no message, after which the connection is closed; a message begins the count anew.
const MAX_IDLE_COMMANDS: u32 = 1000;
/// The longest line that is read to its end only to be refused.
const MAX_SKIPPED: usize = 64 * 1024;

/// What the session needs before it can go on.
#[derive(Debug)]
pub enum Step<T> {
    /// More input; whatever is in the output must be sent first.
    Read,
    /// Time must pass, because the client makes many mistakes.
    Pause(Duration),
    /// An answer for [`Session::answer_mail`]: may [`Session::sender`] send a message of this size?
    Mail(Option<u64>),
    /// An answer for [`Session::answer_rcpt`]: is there such a recipient?
    Rcpt(ForwardPath),
    /// An answer for [`Session::answer_message`]: has it been stored?
    Message(Envelope<T>),
    /// The output must be sent; then TLS begins, and when it stands [`Session::secured`] goes on.
    StartTls,
    /// The output must be sent and the connection closed. A client that may still be sending should be listened to
    /// for a while, or it will not see the reply.
    Close {
        /// Whether it may.
        linger: bool,
    },
}

/// A whole message with its envelope.
#[derive(Debug)]
pub struct Envelope<T> {
    /// The sender.
    pub from: ReversePath,
    /// What was kept of each accepted recipient; at least one.
    pub recipients: Vec<T>,
    /// The content as it was sent, without the dots that SMTP adds.
    pub message: Bytes,
}

/// One client's side of the protocol.
#[derive(Debug)]
pub struct Session<T> {
    settings: Arc<Settings>,
    client: Client,
    input: BytesMut,
    output: Vec<u8>,
    state: State,
    transaction: Option<Transaction<T>>,
    /// The content, from DATA or the first BDAT on.
    transfer: Option<Transfer>,
    /// The memory of the message that is being stored.
    storing: Option<Lease>,
    /// What is remembered of the transaction until it has ended, its message included.
    record: Option<Box<Record>>,
    /// The recipient that is asked about.
    asked: String,
    /// Transactions that have ended and were not told of yet.
    ended: Vec<Record>,
    errors: u32,
    idle_commands: u32,
    owes_pause: bool,
}

/// What the next input is.
#[derive(Debug)]
enum State {
    /// A command.
    Command,
    /// The rest of a line that is too long, of which so much was read.
    LongLine(usize),
    /// The content after DATA.
    Data(Scanner),
    /// Content after BDAT.
    Chunk(Chunk),
    /// Nothing before an answer; how many recipients a message that is being stored has.
    Asking(usize),
    /// Nothing before TLS.
    Tls,
    /// Nothing more.
    Closed { linger: bool },
}

/// A piece of content that BDAT has announced.
#[derive(Debug)]
struct Chunk {
    left: u64,
    last: bool,
    /// Why it was not expected at all.
    stray: Option<Reply>,
}

/// From MAIL to the end of the message.
#[derive(Debug)]
struct Transaction<T> {
    from: ReversePath,
    binary: bool,
    utf8: bool,
    recipients: Vec<T>,
    /// Whether a recipient was refused.
    refused: bool,
}

impl<T> Session<T> {
    /// A session with a client that has just connected. It must be greeted.
    pub fn new(settings: Arc<Settings>, client: Client) -> Self {
        Self {
            settings,
            client,
            input: BytesMut::new(),
            output: Vec::new(),
            state: State::Command,
            transaction: None,
            transfer: None,
            storing: None,
            record: None,
            asked: String::new(),
            ended: Vec::new(),
            errors: 0,
            idle_commands: 0,
            owes_pause: false,
        }
    }

    /// Greets the client, or turns it away if it did not wait to be greeted.
    pub fn greet(&mut self) {
        if !self.input.is_empty() {
            return self.close(&reply::TALKED_FIRST);
        }
        let service = if self.client.protocol == Protocol::Lmtp { "LMTP" } else { "ESMTP" };
        let text = format!("{} {service}", self.settings.hostname);
        Reply::new(220, "", "").with_text(text).write(&mut self.output);
    }

    /// The other end.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The sender of the message that is being announced.
    pub fn sender(&self) -> Option<&ReversePath> {
        self.transaction.as_ref().map(|transaction| &transaction.from)
    }

    /// Where received bytes are to be appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Replies that are to be sent; whoever has sent them clears this.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Whether content is coming in, rather than a command.
    pub fn in_content(&self) -> bool {
        matches!(self.state, State::Data(_) | State::Chunk(_))
    }

    /// Says why, and ends the session.
    pub fn close(&mut self, why: &Reply) {
        why.write(&mut self.output);
        self.end(true, End::Closed, Some(why));
    }

    /// Ends the session because the connection is lost.
    pub fn abandon(&mut self) {
        self.end(false, End::Lost, None);
    }

    /// The transactions that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.ended)
    }

    fn end(&mut self, linger: bool, how: End, why: Option<&Reply>) {
        self.conclude(how, why);
        self.reset();
        self.input.clear();
        self.owes_pause = false;
        self.state = State::Closed { linger };
    }

    /// Goes on as far as the input allows.
    pub fn step(&mut self) -> Step<T> {
        loop {
            if std::mem::take(&mut self.owes_pause) {
                return Step::Pause(ERROR_PAUSE);
            }
            let step = match &self.state {
                State::Command => self.take_command(),
                State::LongLine(_) => self.skip_line(),
                State::Data(_) => self.take_data(),
                State::Chunk(_) => self.take_chunk(),
                State::Asking(_) | State::Tls => Some(Step::Read),
                State::Closed { linger } => Some(Step::Close { linger: *linger }),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn take_command(&mut self) -> Option<Step<T>> {
        let (end, length) = find_line(&self.input);
        if length > command::MAX_PATH_LINE {
            self.state = State::LongLine(0);
            return None;
        }
        match end {
            LineEnd::Proper => {}
            LineEnd::Bare => return self.hang_up(&reply::BARE_LINE_END),
            LineEnd::Missing => return Some(Step::Read),
        }
        let line = self.input.get(..length).unwrap_or_default();
        if length + 2 > command::max_line(line) {
            let names = command::names(line);
            self.input.advance(length + 2);
            self.refuse_line(names, reply::LINE_TOO_LONG);
            return None;
        }
        let utf8 = self.transaction.as_ref().is_some_and(|transaction| transaction.utf8);
        let parsed = Command::parse(line, utf8);
        let names = if parsed.is_err() { command::names(line) } else { Names::Nobody };
        self.input.advance(length + 2);
        if !self.input.is_empty() && self.must_wait(&parsed) {
            return self.hang_up(&reply::OUT_OF_STEP);
        }
        match parsed {
            Ok(command) => self.obey(command),
            Err(Mistake::Fatal(reply)) => self.hang_up(&reply),
            Err(Mistake::Refused(reply)) => {
                self.refuse_line(names, reply);
                None
            }
        }
    }

    /// Refuses a line that is no command, which may name a sender or a recipient all the same.
    fn refuse_line(&mut self, names: Names, refusal: Reply) {
        match (names, &mut self.record) {
            (Names::Sender(from), None) => self.refuse_sender(&from, refusal),
            (Names::Recipient(to), Some(record)) if self.transfer.is_none() => {
                record.refuse(&to, &refusal);
                self.refuse(refusal);
            }
            _ => self.refuse(refusal),
        }
    }

    /// Whether the client must have our reply before it sends more (RFC 2920).
    ///
    /// What follows STARTTLS and QUIT is not looked at in any case.
    fn must_wait(&self, parsed: &Result<Command, Mistake>) -> bool {
        match parsed {
            Ok(Command::Quit) => false,
            Ok(Command::Hello { .. } | Command::Data) => true,
            _ => !self.pipelines(),
        }
    }

    /// Whether the client was told that it may pipeline.
    fn pipelines(&self) -> bool {
        self.client.helo.is_some() && self.client.protocol != Protocol::Smtp
    }

    /// Reads over a line that is too long, so that its rest is not taken for commands.
    fn skip_line(&mut self) -> Option<Step<T>> {
        let State::LongLine(skipped) = &mut self.state else { return None };
        let (end, length) = find_line(&self.input);
        *skipped += length;
        if *skipped > MAX_SKIPPED {
            return self.hang_up(&reply::LINE_TOO_LONG);
        }
        match end {
            LineEnd::Proper => {
                self.input.advance(length + 2);
                self.state = State::Command;
                self.refuse(reply::LINE_TOO_LONG);
                None
            }
            LineEnd::Bare => self.hang_up(&reply::BARE_LINE_END),
            LineEnd::Missing => {
                self.input.advance(length);
                Some(Step::Read)
            }
        }
    }

    fn hang_up(&mut self, why: &Reply) -> Option<Step<T>> {
        self.close(why);
        None
    }

    fn say(&mut self, reply: &Reply) {
        reply.write(&mut self.output);
    }

    /// Refuses something, and counts it against the client if it is the client's fault.
    fn refuse(&mut self, refusal: Reply) {
        let refusal = refusal.refusing();
        self.say(&refusal);
        if refusal.code() == 421 {
            self.end(true, End::Closed, Some(&refusal));
        } else if refusal.is_temporary() {
            self.count_idle();
        } else {
            self.count_error();
        }
    }

    fn count_error(&mut self) {
        self.errors += 1;
        self.owes_pause = self.errors > PATIENT_ERRORS;
        if self.errors >= MAX_ERRORS {
            self.close(&reply::TOO_MANY_ERRORS);
        }
    }

    /// Counts a command that brings no message nearer.
    fn count_idle(&mut self) {
        self.idle_commands += 1;
        if self.idle_commands >= MAX_IDLE_COMMANDS {
            self.close(&reply::TOO_MANY_COMMANDS);
        }
    }

    /// Closes the record of the transaction, if there is one.
    fn conclude(&mut self, end: End, reply: Option<&Reply>) {
        let Some(mut record) = self.record.take() else { return };
        record.end = end;
        record.reply = reply.cloned().or(record.reply);
        record.size = record.size.or_else(|| self.transfer.as_ref().map(Transfer::total));
        self.ended.push(*record);
    }

    /// Forgets the message that was being announced or sent.
    fn reset(&mut self) {
        self.transaction = None;
        self.transfer = None;
    }
}

/// How a line ends.
enum LineEnd {
    /// With CRLF.
    Proper,
    /// With a CR or LF alone.
    Bare,
    /// Not yet.
    Missing,
}

/// The end of the first line, and how long the line is without it.
fn find_line(input: &[u8]) -> (LineEnd, usize) {
    let Some(at) = memchr2(b'\r', b'\n', input) else { return (LineEnd::Missing, input.len()) };
    let end = match (input.get(at), input.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => LineEnd::Proper,
        (Some(b'\r'), None) => LineEnd::Missing,
        _ => LineEnd::Bare,
    };
    (end, at)
}
