//! One message over a connection: its envelope, its content, and the outcome for each recipient.

use std::fmt::Write as _;
use std::time::Duration;

use crate::address::Address;

use super::content::{InvalidMessage, check_content, ended, has_utf8_headers, stuffed};
use super::error::{Error, Phase};
use super::reply::Reply;
use super::wire::BLOCK_BYTES;
use super::{Connection, Extension};

/// RCPT commands that are sent before their replies are read, so that no buffer fills up.
pub(super) const MAX_UNANSWERED_RECIPIENTS: usize = 50;

/// A message with its envelope: the "mail object" of RFC 5321, section 2.3.1.
#[derive(Clone, Copy, Debug)]
pub struct MailObject<'a> {
    /// The reverse-path; nothing for the null sender.
    pub from: Option<&'a str>,
    /// The recipients.
    pub recipients: &'a [String],
    /// The message, with CRLF at the end of each line.
    pub content: &'a [u8],
}

/// The outcome for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has accepted it, and is responsible for it now.
    Accepted(Reply),
    /// The server has refused it, for good or for now: see [`Reply::is_permanent`].
    Refused(Reply),
    /// The connection failed before the server could accept it: a retry is safe.
    Failed(Error),
    /// The whole content was sent, and then no reply came: the server may have accepted it or not. A retry may
    /// deliver it twice; no retry may lose it.
    Uncertain(Error),
}

/// A 421 reply: the server is about to close the connection. Some mean it for one recipient only and go on.
pub(super) struct ClosingReply(Reply);

impl ClosingReply {
    fn outcome(&self) -> Outcome {
        Outcome::Refused(self.0.clone())
    }

    /// The outcome of the content: after 421 only an acceptance is trusted.
    pub(super) fn instead_of(self, outcome: Result<Outcome, Error>) -> Outcome {
        match outcome {
            Ok(accepted @ Outcome::Accepted(_)) => accepted,
            _ => self.outcome(),
        }
    }
}

/// The outcome of each recipient, where it is known.
pub(super) struct Decisions(Vec<Option<Outcome>>);

impl Decisions {
    fn into_outcomes(mut self, outcome: &Outcome) -> Vec<Outcome> {
        self.0.drain(..).map(|decided| decided.unwrap_or_else(|| outcome.clone())).collect()
    }

    pub(super) fn open(&self) -> Vec<usize> {
        self.0.iter().enumerate().filter(|(_, decided)| decided.is_none()).map(|(index, _)| index).collect()
    }

    /// The first outcome counts: after a refused sender the other replies only repeat that.
    pub(super) fn decide(&mut self, index: usize, outcome: Outcome) {
        if let Some(slot @ None) = self.0.get_mut(index) {
            *slot = Some(outcome);
        }
    }

    pub(super) fn decide_open(&mut self, outcome: &Outcome) {
        for slot in self.0.iter_mut().filter(|decided| decided.is_none()) {
            *slot = Some(outcome.clone());
        }
    }
}

/// The paths of a message as they go over the wire.
pub(super) struct Paths {
    from: String,
    recipients: Vec<String>,
    /// Whether the message itself needs SMTPUTF8, independent of its recipients.
    utf8: bool,
}

impl Paths {
    fn read(mail: &MailObject<'_>) -> Result<Self, InvalidMessage> {
        let parse = |text: &str| {
            Address::parse(text).map(String::from).map_err(|_| InvalidMessage::Address(text.to_owned()))
        };
        let from = mail.from.filter(|from| !from.is_empty()).map(parse).transpose()?.unwrap_or_default();
        let recipients: Vec<String> = mail.recipients.iter().map(|to| parse(to)).collect::<Result<_, _>>()?;
        if recipients.is_empty() {
            return Err(InvalidMessage::NoRecipients);
        }
        Ok(Self { utf8: !from.is_ascii() || has_utf8_headers(mail.content), from, recipients })
    }

    pub(super) fn recipient_commands(&self, group: &[usize]) -> impl Iterator<Item = String> {
        let names = group.iter().filter_map(|index| self.recipients.get(*index));
        names.map(|name| format!("RCPT TO:<{name}>"))
    }
}

impl Connection {
    /// Sends a message and returns the outcome for each recipient, in their order.
    ///
    /// After a failure the connection may not be usable any more: see [`Connection::is_usable`].
    pub async fn send(&mut self, mail: &MailObject<'_>) -> Result<Vec<Outcome>, InvalidMessage> {
        check_content(mail.content)?;
        let paths = Paths::read(mail)?;
        self.wire.set_total(self.timeouts.total);
        let mut decisions = Decisions(vec![None; paths.recipients.len()]);
        if let Some(refusal) = self.cannot_take(mail, &paths) {
            return Ok(decisions.into_outcomes(&Outcome::Refused(refusal)));
        }
        if let Err(error) = self.deliver(mail, &paths, &mut decisions).await {
            self.broken = true;
            let outcome = match error {
                Error::Refused(_, reply) => Outcome::Refused(reply),
                error => Outcome::Failed(error),
            };
            return Ok(decisions.into_outcomes(&outcome));
        }
        let open = Outcome::Failed(Error::Closed(Phase::Recipient));
        Ok(decisions.into_outcomes(&open))
    }

    /// Why the server cannot accept a message at all, by its extensions.
    fn cannot_take(&self, mail: &MailObject<'_>, paths: &Paths) -> Option<Reply> {
        let size = u64::try_from(mail.content.len()).unwrap_or(u64::MAX);
        if self.extensions.max_size.is_some_and(|most| size > most) {
            return Some(Reply::own(552, "5.3.4", "The message is too large for the server"));
        }
        if paths.utf8 && !self.extensions.offers(Extension::Utf8) {
            return Some(Reply::own(553, "5.6.7", "The server does not take internationalised addresses"));
        }
        if !mail.content.is_ascii() && !self.extensions.offers(Extension::EightBit) {
            return Some(Reply::own(554, "5.6.3", "The server does not take eight-bit content"));
        }
        None
    }

    async fn deliver(
        &mut self,
        mail: &MailObject<'_>,
        paths: &Paths,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        if self.broken {
            return Err(Error::Closed(Phase::Sender));
        }
        if std::mem::replace(&mut self.unfinished, true) {
            let reply = self.wire.command(Phase::Reset, self.timeouts.command, "RSET").await?;
            super::expect(Phase::Reset, 250, reply)?;
        }
        self.refuse_unwritable(paths, decisions);
        if decisions.open().is_empty() {
            return Ok(());
        }
        if self.can_pipeline_content(mail, decisions) {
            return self.send_pipelined(mail, paths, decisions).await;
        }
        let closing = self.send_envelope(mail, paths, decisions).await?;
        if decisions.open().is_empty() {
            return Ok(());
        }
        let handed = self.send_content(mail.content).await;
        let outcome = match closing {
            Some(closing) => closing.instead_of(handed),
            None => handed?,
        };
        self.unfinished = !matches!(&outcome, Outcome::Accepted(_));
        decisions.decide_open(&outcome);
        Ok(())
    }

    /// Refuses recipients that need SMTPUTF8 where the server lacks it.
    fn refuse_unwritable(&self, paths: &Paths, decisions: &mut Decisions) {
        if self.extensions.offers(Extension::Utf8) {
            return;
        }
        for (index, recipient) in paths.recipients.iter().enumerate() {
            if !recipient.is_ascii() {
                let reply = Reply::own(553, "5.6.7", "The server does not take internationalised addresses");
                decisions.decide(index, Outcome::Refused(reply));
            }
        }
    }

    /// Sends MAIL and a RCPT for each open recipient. Accepted recipients stay open.
    async fn send_envelope(
        &mut self,
        mail: &MailObject<'_>,
        paths: &Paths,
        decisions: &mut Decisions,
    ) -> Result<Option<ClosingReply>, Error> {
        let open = decisions.open();
        let mut lines = vec![self.sender_command(mail, paths, &open)];
        let mut window = MAX_UNANSWERED_RECIPIENTS;
        if !self.extensions.offers(Extension::Pipelining) {
            window = 1;
            self.wire.send_command(Phase::Sender, self.timeouts.command, lines.concat().as_bytes()).await?;
            self.sender_answer(self.timeouts.command, decisions).await?;
            lines.clear();
        }
        for (number, group) in open.chunks(window).enumerate() {
            if decisions.open().is_empty() {
                break;
            }
            let with_sender = !lines.is_empty();
            lines.extend(paths.recipient_commands(group));
            self.wire
                .send_command(Phase::Recipient, self.timeouts.recipient, lines.join("\r\n").as_bytes())
                .await?;
            lines.clear();
            if with_sender {
                self.sender_answer(self.timeouts.command, decisions).await?;
            }
            let closing = self.recipient_answers(self.timeouts.recipient, group, decisions).await?;
            if let Some(closing) = closing {
                // No further RCPT to a server that is closing.
                let unnamed = open.iter().skip((number + 1) * window);
                unnamed.for_each(|index| decisions.decide(*index, closing.outcome()));
                return Ok(Some(closing));
            }
        }
        Ok(None)
    }

    pub(super) fn sender_command(&self, mail: &MailObject<'_>, paths: &Paths, open: &[usize]) -> String {
        let mut command = format!("MAIL FROM:<{}>", paths.from);
        if self.extensions.sizes {
            // Writing to a string cannot fail.
            let _ = write!(command, " SIZE={}", mail.content.len());
        }
        if self.extensions.offers(Extension::EightBit) && !mail.content.is_ascii() {
            command.push_str(" BODY=8BITMIME");
        }
        let mut named = open.iter().filter_map(|index| paths.recipients.get(*index));
        if paths.utf8 || named.any(|name| !name.is_ascii()) {
            command.push_str(" SMTPUTF8");
        }
        command
    }

    /// Reads the reply to MAIL: a refused sender refuses all recipients.
    pub(super) async fn sender_answer(
        &mut self,
        timeout: Duration,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let reply = self.wire.reply(Phase::Sender, timeout).await?;
        if reply.code() == 421 {
            return Err(Error::Refused(Phase::Sender, reply));
        }
        if !reply.is_positive() {
            decisions.decide_open(&Outcome::Refused(reply));
        }
        Ok(())
    }

    /// Reads the replies to the RCPTs of a group. After a 421 only an acceptance counts.
    pub(super) async fn recipient_answers(
        &mut self,
        timeout: Duration,
        group: &[usize],
        decisions: &mut Decisions,
    ) -> Result<Option<ClosingReply>, Error> {
        let mut closing: Option<ClosingReply> = None;
        for index in group {
            let answer = self.wire.reply(Phase::Recipient, timeout).await;
            let reply = match (answer, &closing) {
                (Ok(reply), _) => reply,
                (Err(_), Some(ClosingReply(reply))) => {
                    return Err(Error::Refused(Phase::Recipient, reply.clone()));
                }
                (Err(error), None) => return Err(error),
            };
            if reply.code() == 421 {
                self.broken = true;
                closing.get_or_insert(ClosingReply(reply.clone()));
            }
            if !reply.is_positive() {
                let outcome = closing.as_ref().map(ClosingReply::outcome);
                decisions.decide(*index, outcome.unwrap_or(Outcome::Refused(reply)));
            }
        }
        Ok(closing)
    }

    /// Sends the content and returns its outcome. An error means that the server cannot have accepted it.
    async fn send_content(&mut self, content: &[u8]) -> Result<Outcome, Error> {
        let content = ended(content);
        if self.extensions.offers(Extension::Chunking) {
            let command = format!("BDAT {} LAST", content.len());
            self.wire.send_command(Phase::Content, self.timeouts.data, command.as_bytes()).await?;
            return self.write_content(&content, b"").await;
        }
        let reply = self.wire.command(Phase::Content, self.timeouts.data, "DATA").await?;
        match reply.code() {
            354 => {}
            421 => return Err(Error::Refused(Phase::Content, reply)),
            _ if reply.is_temporary() || reply.is_permanent() => return Ok(Outcome::Refused(reply)),
            _ => return Err(Error::Protocol(Phase::Content, "an answer to DATA that is none")),
        }
        self.write_content(&stuffed(&content), b".\r\n").await
    }

    async fn write_content(&mut self, content: &[u8], end: &[u8]) -> Result<Outcome, Error> {
        // The last piece has the end: until it is sent, the server cannot have the whole message.
        let last_at = content.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES;
        let (body, last) = content.split_at_checked(last_at).unwrap_or((content, b""));
        for block in body.chunks(BLOCK_BYTES) {
            if let Err(error) = self.wire.write(Phase::Content, self.timeouts.block, block).await {
                return Err(self.with_closing_reply(error).await);
            }
        }
        let last = [last, end].concat();
        if let Err(error) = self.wire.write(Phase::Finish, self.timeouts.block, &last).await {
            self.broken = true;
            return Ok(Outcome::Uncertain(error));
        }
        Ok(self.read_content_reply().await)
    }

    /// A server that aborts the transfer often sends the reason before it closes.
    pub(super) async fn with_closing_reply(&mut self, error: Error) -> Error {
        match self.wire.pending_reply().await {
            Some(reply) if !reply.is_positive() => Error::Refused(Phase::Content, reply),
            _ => error,
        }
    }

    /// Reads the reply to the end of the content.
    pub(super) async fn read_content_reply(&mut self) -> Outcome {
        let reply = match self.wire.reply(Phase::Finish, self.timeouts.finish).await {
            Ok(reply) => reply,
            Err(error) => {
                self.broken = true;
                return Outcome::Uncertain(error);
            }
        };
        self.broken |= reply.code() == 421;
        if reply.is_positive() {
            Outcome::Accepted(reply)
        } else if reply.is_permanent() || reply.is_temporary() {
            Outcome::Refused(reply)
        } else {
            self.broken = true;
            Outcome::Uncertain(Error::Protocol(Phase::Finish, "an answer that is none"))
        }
    }
}
