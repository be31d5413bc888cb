//! The effect of each SMTP command on the session.

use std::io::Write;

use super::{
    super::{
        MAX_RECIPIENTS,
        command::{Command, Hello, Mail},
        content::DataDecoder,
    },
    Chunk, Encryption, ForwardPath, Protocol, Reply, Session, State, Step, Transaction, TransactionEnd,
    TransactionRecord, Transfer, reply,
};

impl<T> Session<T> {
    pub(super) fn execute(&mut self, command: Command) -> Option<Step<T>> {
        match command {
            Command::Hello { verb, name } => self.hello(verb, name),
            Command::Mail(mail) => return self.mail(mail),
            Command::Rcpt(path) => return self.rcpt(path),
            Command::Data => self.data(),
            Command::Bdat { size, last } => self.bdat(size, last),
            Command::StartTls => return self.start_tls(),
            Command::Quit => {
                self.say(&reply::GOODBYE);
                self.end(false, TransactionEnd::Quit, None);
            }
            Command::Rset => {
                self.conclude(TransactionEnd::Reset, None);
                self.reset();
                self.acknowledge(&reply::OK);
            }
            Command::Noop => self.acknowledge(&reply::OK),
            Command::Vrfy => self.acknowledge(&reply::CANNOT_VERIFY),
            Command::Help => self.acknowledge(&reply::HELP),
            Command::Expn => self.refuse(reply::NO_LISTS),
        }
        None
    }

    /// Accepts a command that does not advance a transaction.
    fn acknowledge(&mut self, reply: &Reply) {
        self.say(reply);
        self.count_idle();
    }

    fn hello(&mut self, verb: Hello, name: String) {
        let lmtp = self.client.protocol == Protocol::Lmtp;
        if lmtp != (verb == Hello::Lhlo) {
            return self.refuse(reply::UNKNOWN);
        }
        self.conclude(TransactionEnd::Reset, None);
        self.reset();
        self.client.helo = Some(name);
        self.client.protocol = match verb {
            Hello::Helo => Protocol::Smtp,
            Hello::Ehlo => Protocol::Esmtp,
            Hello::Lhlo => Protocol::Lmtp,
        };
        if verb == Hello::Helo {
            let hostname = Reply::new(250, "", "").with_text(self.settings.hostname.as_str());
            return self.acknowledge(&hostname);
        }
        let starttls = if self.offers_tls() { "250-STARTTLS\r\n" } else { "" };
        // Writing to a vector cannot fail.
        let _ = write!(
            self.output,
            "250-{}\r\n250-PIPELINING\r\n250-SIZE {}\r\n{starttls}250-ENHANCEDSTATUSCODES\r\n250-8BITMIME\r\n\
             250-SMTPUTF8\r\n250-CHUNKING\r\n250 BINARYMIME\r\n",
            self.settings.hostname, self.settings.max_message_bytes,
        );
        self.count_idle();
    }

    fn offers_tls(&self) -> bool {
        self.settings.starttls && self.client.tls.is_none()
    }

    fn start_tls(&mut self) -> Option<Step<T>> {
        let refusal = if self.client.tls.is_some() {
            reply::HAS_TLS
        } else if !self.settings.starttls {
            reply::NO_TLS
        } else if !self.pipelines() {
            reply::SAY_HELLO
        } else {
            self.say(&reply::TLS_READY);
            self.state = State::Tls;
            return Some(Step::StartTls);
        };
        self.refuse(refusal);
        None
    }

    /// Continues under TLS: all earlier state is discarded (RFC 3207, section 4.2).
    pub fn secured(&mut self, encryption: Encryption) {
        self.conclude(TransactionEnd::Reset, None);
        self.reset();
        // Input after STARTTLS may have been injected in plaintext.
        self.input.clear();
        self.client.tls = Some(encryption);
        self.client.helo = None;
        if self.client.protocol != Protocol::Lmtp {
            self.client.protocol = Protocol::Smtp;
        }
        self.state = State::Command;
    }

    fn mail(&mut self, mail: Mail) -> Option<Step<T>> {
        let limit = self.settings.max_message_bytes;
        let size = usize::try_from(mail.size.unwrap_or(1)).unwrap_or(usize::MAX);
        if self.transaction.is_some() {
            self.refuse(reply::NESTED_MAIL);
            return None;
        }
        let from = mail.from.as_str().unwrap_or_default();
        let refusal = if self.client.helo.is_none() {
            reply::SAY_HELLO
        } else if size > limit {
            reply::TOO_LARGE
        } else if size > self.settings.budget.free() {
            reply::NO_MEMORY
        } else {
            self.record = Some(Box::new(TransactionRecord::new(from)));
            self.transaction = Some(Transaction {
                from: mail.from,
                binary: mail.binary,
                utf8: mail.utf8,
                recipients: Vec::new(),
                refused: false,
            });
            self.state = State::Asking(0);
            return Some(Step::Mail(mail.size));
        };
        self.refuse_sender(from, refusal);
        None
    }

    /// Refuses a sender, which is a transaction of its own in the record.
    pub(super) fn refuse_sender(&mut self, from: &str, refusal: Reply) {
        self.record.get_or_insert_with(|| Box::new(TransactionRecord::new(from)));
        self.conclude(TransactionEnd::Refused, Some(&refusal));
        self.refuse(refusal);
    }

    /// The answer to [`Step::Mail`].
    pub fn answer_mail(&mut self, answer: Result<(), Reply>) {
        self.state = State::Command;
        match answer {
            Ok(()) => self.say(&reply::SENDER_OK),
            Err(refusal) => {
                let refusal = refusal.refusing();
                self.conclude(TransactionEnd::Refused, Some(&refusal));
                self.reset();
                self.refuse(refusal);
            }
        }
    }

    fn rcpt(&mut self, path: ForwardPath) -> Option<Step<T>> {
        let refusal = match &self.transaction {
            None => reply::NEED_MAIL,
            Some(_) if self.transfer.is_some() => reply::WITHIN_BDAT,
            Some(transaction) if transaction.recipients.len() >= MAX_RECIPIENTS => reply::TOO_MANY_RECIPIENTS,
            Some(_) => {
                self.asked = path.to_string();
                self.state = State::Asking(0);
                return Some(Step::Rcpt(path));
            }
        };
        if let Some(record) = &mut self.record {
            record.refuse(&path.to_string(), &refusal);
        }
        self.refuse(refusal);
        None
    }

    /// The answer to [`Step::Rcpt`].
    pub fn answer_rcpt(&mut self, answer: Result<T, Reply>) {
        self.state = State::Command;
        let asked = std::mem::take(&mut self.asked);
        if let Some(record) = &mut self.record {
            match &answer {
                Ok(_) => record.accept(&asked),
                Err(refusal) => record.refuse(&asked, refusal),
            }
        }
        match (answer, &mut self.transaction) {
            (Ok(recipient), Some(transaction)) => {
                transaction.recipients.push(recipient);
                self.say(&reply::RECIPIENT_OK);
            }
            (Ok(_), None) => self.refuse(reply::LOCAL_FAULT),
            (Err(refusal), transaction) => {
                if let Some(transaction) = transaction {
                    transaction.refused = true;
                }
                self.refuse(refusal);
            }
        }
    }

    /// Why no content can come now.
    fn content_refusal(&self) -> Option<Reply> {
        match &self.transaction {
            None => Some(reply::NEED_MAIL),
            Some(transaction) if !transaction.recipients.is_empty() => None,
            Some(transaction) if transaction.refused && self.client.protocol != Protocol::Lmtp => {
                Some(reply::NO_RECIPIENTS)
            }
            Some(_) => Some(reply::NEED_RCPT),
        }
    }

    fn data(&mut self) {
        let binary = self.transaction.as_ref().is_some_and(|transaction| transaction.binary);
        let refusal = match self.content_refusal() {
            Some(refusal) => refusal,
            None if self.transfer.is_some() => reply::WITHIN_BDAT,
            None if binary => reply::BINARY_NEEDS_BDAT,
            None => {
                self.transfer = Some(Transfer::new(&self.settings));
                self.state = State::Data(DataDecoder::new());
                return self.say(&reply::GO_AHEAD);
            }
        };
        self.refuse_content(refusal);
    }

    /// Refuses content that is not expected now. The transaction continues; its record has this reply if nothing
    /// follows.
    pub(super) fn refuse_content(&mut self, refusal: Reply) {
        if let Some(record) = &mut self.record {
            record.reply = Some(refusal.clone());
        }
        self.refuse(refusal);
    }

    fn bdat(&mut self, size: u64, last: bool) {
        let limit = self.settings.max_message_bytes;
        let stray = self.content_refusal();
        let whole = usize::try_from(size).unwrap_or(usize::MAX);
        if whole / 2 > limit {
            // It could only be read and discarded, and may be endless.
            return self.close(&reply::TOO_LARGE);
        }
        if stray.is_none() {
            let transfer = self.transfer.get_or_insert_with(|| Transfer::new(&self.settings));
            if transfer.len().saturating_add(whole) > limit {
                transfer.refuse(reply::TOO_LARGE);
            }
        }
        self.state = State::Chunk(Chunk { left: size, last, stray });
        if size == 0 && !last {
            self.count_idle();
        }
    }
}
