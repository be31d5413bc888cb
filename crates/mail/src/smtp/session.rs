//! The protocol without I/O: bytes go in, replies and requests come out.
//!
//! This file has line handling and error counting; commands are in `session/commands.rs`, message transfer is in
//! `session/transfer.rs`.

mod commands;
mod transfer;

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

use super::{
    Client, Encryption, Protocol, Settings,
    budget::Lease,
    command::{self, Command, CommandError, NamedPath},
    content::{DataDecoder, Transfer},
    path::{ForwardPath, ReversePath},
    reply::{self, Reply},
    transaction_record::{TransactionEnd, TransactionRecord},
};

/// Errors after which the connection is closed.
const MAX_ERRORS: u32 = 20;
/// Errors after which each further one is delayed.
const FREE_ERRORS: u32 = 10;
/// That delay.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// Commands without a message after which the connection is closed; a message resets the count.
const MAX_IDLE_COMMANDS: u32 = 1000;
/// The longest line that is read to its end only to be refused.
const MAX_SKIPPED_LINE_BYTES: usize = 64 * 1024;

/// What the session needs to continue.
#[derive(Debug)]
pub enum Step<T> {
    /// More input; the output must be sent first.
    Read,
    /// A delay, because the client makes many errors.
    Pause(Duration),
    /// An answer for [`Session::answer_mail`]: may [`Session::sender`] send a message of this size?
    Mail(Option<u64>),
    /// An answer for [`Session::answer_rcpt`]: is there such a recipient?
    Rcpt(ForwardPath),
    /// An answer for [`Session::answer_message`]: has it been stored?
    Message(IncomingMessage<T>),
    /// The output must be sent; then the TLS handshake, after which [`Session::secured`] continues.
    StartTls,
    /// The output must be sent and the connection closed. Input of a client that may still be sending should be drained
    /// for a while, or it will not see the reply.
    Close {
        /// Whether it may still be sending.
        linger: bool,
    },
}

/// A whole message with its envelope.
#[derive(Debug)]
pub struct IncomingMessage<T> {
    /// The sender.
    pub from: ReversePath,
    /// The state of each accepted recipient; at least one.
    pub recipients: Vec<T>,
    /// The content as it was sent, without the dots that SMTP adds.
    pub message: Bytes,
}

/// The state of one client's session.
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
    /// The memory lease of the message that is being stored.
    storing: Option<Lease>,
    /// The record of the current transaction.
    record: Option<Box<TransactionRecord>>,
    /// The recipient of the pending RCPT.
    asked: String,
    /// Finished transactions that are not reported yet.
    ended: Vec<TransactionRecord>,
    errors: u32,
    idle_commands: u32,
    owes_pause: bool,
}

/// What the next input is.
#[derive(Debug)]
enum State {
    /// A command.
    Command,
    /// The rest of an overlong line, with the bytes skipped so far.
    LongLine(usize),
    /// The content after DATA.
    Data(DataDecoder),
    /// Content after BDAT.
    Chunk(Chunk),
    /// Nothing before an answer, with the number of recipients of the message being stored.
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

    /// Greets the client, or refuses it if it sent something before the greeting.
    pub fn greet(&mut self) {
        if !self.input.is_empty() {
            return self.close(&reply::TALKED_FIRST);
        }
        let service = if self.client.protocol == Protocol::Lmtp { "LMTP" } else { "ESMTP" };
        let text = format!("{} {service}", self.settings.hostname);
        Reply::new(220, "", "").with_text(text).write(&mut self.output);
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The sender of the current transaction.
    pub fn sender(&self) -> Option<&ReversePath> {
        self.transaction.as_ref().map(|transaction| &transaction.from)
    }

    /// Where received bytes are to be appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Replies to be sent; the caller clears this after sending.
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
        self.end(true, TransactionEnd::Closed, Some(why));
    }

    /// Ends the session because the connection is lost.
    pub fn abandon(&mut self) {
        self.end(false, TransactionEnd::Lost, None);
    }

    /// The transactions finished since the last call.
    pub fn take_finished(&mut self) -> Vec<TransactionRecord> {
        std::mem::take(&mut self.ended)
    }

    fn end(&mut self, linger: bool, how: TransactionEnd, why: Option<&Reply>) {
        self.conclude(how, why);
        self.reset();
        self.input.clear();
        self.owes_pause = false;
        self.state = State::Closed { linger };
    }

    /// Continues as far as the input allows.
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
        if length > command::MAX_PATH_LINE_BYTES {
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
        let names = if parsed.is_err() { command::names(line) } else { NamedPath::None };
        self.input.advance(length + 2);
        if !self.input.is_empty() && self.must_wait(&parsed) {
            return self.hang_up(&reply::OUT_OF_STEP);
        }
        match parsed {
            Ok(command) => self.execute(command),
            Err(CommandError::Fatal(reply)) => self.hang_up(&reply),
            Err(CommandError::Refused(reply)) => {
                self.refuse_line(names, reply);
                None
            }
        }
    }

    /// Refuses an invalid line, which may still name a sender or a recipient.
    fn refuse_line(&mut self, names: NamedPath, refusal: Reply) {
        match (names, &mut self.record) {
            (NamedPath::Sender(from), None) => self.refuse_sender(&from, refusal),
            (NamedPath::Recipient(to), Some(record)) if self.transfer.is_none() => {
                record.refuse(&to, &refusal);
                self.refuse(refusal);
            }
            _ => self.refuse(refusal),
        }
    }

    /// Whether the client must have our reply before it sends more (RFC 2920).
    ///
    /// Input after STARTTLS and QUIT is discarded anyway.
    fn must_wait(&self, parsed: &Result<Command, CommandError>) -> bool {
        match parsed {
            Ok(Command::Quit) => false,
            Ok(Command::Hello { .. } | Command::Data) => true,
            _ => !self.pipelines(),
        }
    }

    /// Whether PIPELINING was offered to the client.
    fn pipelines(&self) -> bool {
        self.client.helo.is_some() && self.client.protocol != Protocol::Smtp
    }

    /// Skips an overlong line, so that its rest is not parsed as commands.
    fn skip_line(&mut self) -> Option<Step<T>> {
        let State::LongLine(skipped) = &mut self.state else { return None };
        let (end, length) = find_line(&self.input);
        *skipped += length;
        if *skipped > MAX_SKIPPED_LINE_BYTES {
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
            self.end(true, TransactionEnd::Closed, Some(&refusal));
        } else if refusal.is_temporary() {
            self.count_idle();
        } else {
            self.count_error();
        }
    }

    fn count_error(&mut self) {
        self.errors += 1;
        self.owes_pause = self.errors > FREE_ERRORS;
        if self.errors >= MAX_ERRORS {
            self.close(&reply::TOO_MANY_ERRORS);
        }
    }

    /// Counts a command that does not advance a transaction.
    fn count_idle(&mut self) {
        self.idle_commands += 1;
        if self.idle_commands >= MAX_IDLE_COMMANDS {
            self.close(&reply::TOO_MANY_COMMANDS);
        }
    }

    /// Closes the record of the transaction, if there is one.
    fn conclude(&mut self, end: TransactionEnd, reply: Option<&Reply>) {
        let Some(mut record) = self.record.take() else { return };
        record.end = end;
        record.reply = reply.cloned().or(record.reply);
        record.size = record.size.or_else(|| self.transfer.as_ref().map(Transfer::total));
        self.ended.push(*record);
    }

    /// Resets the transaction and its content.
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
