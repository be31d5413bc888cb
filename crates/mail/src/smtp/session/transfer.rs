//! Receiving a message: by DATA, whose end must be found, or by BDAT, whose size is known.

use bytes::Buf;

use super::{
    super::content::DataProgress, Chunk, IncomingMessage, Protocol, Reply, Session, State, Step,
    TransactionEnd, reply,
};

impl<T> Session<T> {
    pub(super) fn take_data(&mut self) -> Option<Step<T>> {
        let (State::Data(scanner), Some(transfer)) = (&mut self.state, &mut self.transfer) else {
            return self.hang_up(&reply::LOCAL_FAULT);
        };
        let (used, found) = scanner.scan(&self.input, |piece| transfer.keep(piece));
        self.input.advance(used);
        match found {
            _ if transfer.is_hopeless() => self.hang_up(&reply::TOO_LARGE),
            DataProgress::BareLineEnd => self.hang_up(&reply::BARE_LINE_END),
            DataProgress::End => self.finish(),
            DataProgress::More => Some(Step::Read),
        }
    }

    pub(super) fn take_chunk(&mut self) -> Option<Step<T>> {
        let State::Chunk(chunk) = &mut self.state else { return None };
        let length = usize::try_from(chunk.left).unwrap_or(usize::MAX).min(self.input.len());
        let piece = self.input.get(..length).unwrap_or_default();
        chunk.left -= length as u64;
        let mut sound = true;
        if let (None, Some(transfer)) = (&chunk.stray, &mut self.transfer) {
            let binary = self.transaction.as_ref().is_some_and(|transaction| transaction.binary);
            let complete = chunk.last && chunk.left == 0;
            sound = binary || (transfer.lines.sound(piece) && (!complete || transfer.lines.ended()));
            transfer.keep(piece);
        }
        self.input.advance(length);
        if !sound {
            return self.hang_up(&reply::BARE_LINE_END);
        }
        if chunk.left > 0 {
            return Some(Step::Read);
        }
        match std::mem::replace(&mut self.state, State::Command) {
            State::Chunk(Chunk { stray: Some(stray), .. }) => {
                self.refuse_content(stray);
                None
            }
            State::Chunk(Chunk { last: true, .. }) => self.finish(),
            _ => {
                self.end_chunk();
                None
            }
        }
    }

    /// Answers a piece that is not the last one.
    fn end_chunk(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        match transfer.refusal().cloned() {
            Some(_) if transfer.is_hopeless() => self.close(&reply::TOO_LARGE),
            Some(refusal) => self.refuse(refusal),
            None => self.say(&reply::OK),
        }
    }

    /// Passes on the complete message, or replies why it was not kept.
    fn finish(&mut self) -> Option<Step<T>> {
        self.state = State::Command;
        let (Some(transaction), Some(transfer)) = (self.transaction.take(), self.transfer.take()) else {
            return self.hang_up(&reply::LOCAL_FAULT);
        };
        let recipients = transaction.recipients.len();
        let total = transfer.total();
        match transfer.finish() {
            Ok((message, lease)) => {
                self.storing = Some(lease);
                if let Some(record) = &mut self.record {
                    record.size = Some(message.len());
                }
                self.state = State::Asking(recipients);
                Some(Step::Message(IncomingMessage {
                    from: transaction.from,
                    recipients: transaction.recipients,
                    message,
                }))
            }
            Err(refusal) => {
                let further_replies = if self.is_lmtp() { recipients.saturating_sub(1) } else { 0 };
                for _ in 0..further_replies {
                    self.say(&refusal);
                }
                if let Some(record) = &mut self.record {
                    record.size = Some(total);
                }
                self.conclude(TransactionEnd::Refused, Some(&refusal));
                self.refuse(refusal);
                None
            }
        }
    }

    fn is_lmtp(&self) -> bool {
        self.client.protocol == Protocol::Lmtp
    }

    /// The answers to [`Step::Message`], one for each recipient.
    pub fn answer_message(&mut self, mut answers: Vec<Result<String, Reply>>) {
        self.storing = None;
        let State::Asking(recipients) = std::mem::replace(&mut self.state, State::Command) else { return };
        answers.resize(recipients, Err(reply::LOCAL_FAULT));
        if let Some(record) = &mut self.record {
            record.answer(&answers);
        }
        let answers = if self.is_lmtp() { answers } else { vec![fold(answers)] };
        let mut accepted = false;
        let mut refused = None;
        let mut last = None;
        for answer in answers {
            match answer {
                Ok(text) => {
                    accepted = true;
                    let taken = reply::OK.with_text(text);
                    self.say(&taken);
                    last = Some(taken);
                }
                Err(refusal) => {
                    let refusal = refusal.refusing();
                    self.say(&refusal);
                    last = Some(refusal.clone());
                    refused = Some(refusal);
                }
            }
        }
        self.conclude(if accepted { TransactionEnd::Stored } else { TransactionEnd::Refused }, last.as_ref());
        self.count_message(accepted, refused);
    }

    /// An accepted message resets the counters; a refused one counts as an error.
    fn count_message(&mut self, accepted: bool, refused: Option<Reply>) {
        match refused {
            _ if accepted => (self.errors, self.idle_commands) = (0, 0),
            Some(refusal) if refusal.code() == 421 => self.end(true, TransactionEnd::Closed, None),
            Some(refusal) if refusal.is_temporary() => self.count_idle(),
            Some(_) => self.count_error(),
            None => {}
        }
    }
}

/// One answer for all recipients, so that a message is not acknowledged while a recipient is deferred.
fn fold(answers: Vec<Result<String, Reply>>) -> Result<String, Reply> {
    let mut accepted = None;
    let mut refused = None;
    for answer in answers {
        match answer.map_err(Reply::refusing) {
            Err(refusal) if refusal.is_temporary() => return Err(refusal),
            Err(refusal) => refused = refused.or(Some(refusal)),
            Ok(text) => accepted = accepted.or(Some(text)),
        }
    }
    match (accepted, refused) {
        (Some(text), _) => Ok(text),
        (None, refusal) => Err(refusal.unwrap_or(reply::LOCAL_FAULT)),
    }
}
