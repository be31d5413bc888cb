//! A short mail in one go: envelope and content leave together, and all answers are waited for once.
//!
//! Far away servers answer late, and a wait is most of what a short mail costs. It takes a server with PIPELINING and
//! CHUNKING (RFC 3030): it reads the content even when it refuses the envelope, so both sides know where they are.

use std::time::Duration;

use super::content::ended;
use super::error::{Error, Phase};
use super::transfer::{Closing, Decisions, Mail, Outcome, Paths, WINDOW};
use super::wire::BLOCK;
use super::{Connection, Extension};

/// How long ago the server must have been heard. One that has closed a quiet connection would not have read a word, but
/// once the content is on its way nobody could tell.
const HEARD: Duration = Duration::from_secs(5);

impl Connection {
    /// Whether a mail goes to the server in one go. A large one waits for the answer to its envelope, which may well be
    /// that nobody wants it.
    pub(super) fn goes_together(&self, mail: &Mail<'_>, decisions: &Decisions) -> bool {
        self.extensions.offers(Extension::Pipelining)
            && self.extensions.offers(Extension::Chunking)
            && mail.content.len() < BLOCK
            && decisions.open().len() <= WINDOW
            && self.wire.heard_within(HEARD)
    }

    /// Sends envelope and content. An error means that the server cannot have taken the mail.
    pub(super) async fn send_together(
        &mut self,
        mail: &Mail<'_>,
        paths: &Paths,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let open = decisions.open();
        let content = ended(mail.content);
        let mut lines = vec![self.sender_command(mail, paths, &open)];
        lines.extend(paths.recipient_commands(&open));
        lines.push(format!("BDAT {} LAST\r\n", content.len()));
        let whole = [lines.join("\r\n").as_bytes(), &content].concat();
        self.wire.expect_open(Phase::Sender).await?;
        // Whatever could not be written includes the end, so that a failure here leaves no doubt.
        if let Err(error) = self.wire.write(Phase::Content, self.timeouts.block, &whole).await {
            return Err(self.told_why(error).await);
        }
        let closing = match self.envelope_answers(&open, decisions).await {
            Ok(closing) => closing,
            // From here on the mail may have been taken, unless the server says otherwise.
            Err(error @ Error::Refused(..)) => return Err(error),
            Err(error) => {
                self.broken = true;
                decisions.decide_open(&Outcome::Uncertain(error));
                return Ok(());
            }
        };
        if closing.is_some() && decisions.open().is_empty() {
            return Ok(());
        }
        let outcome = self.judge_content().await;
        let outcome = match closing {
            Some(closing) => closing.instead_of(Ok(outcome)),
            None => outcome,
        };
        self.unfinished = !matches!(&outcome, Outcome::Accepted(_));
        decisions.decide_open(&outcome);
        Ok(())
    }

    async fn envelope_answers(
        &mut self,
        open: &[usize],
        decisions: &mut Decisions,
    ) -> Result<Option<Closing>, Error> {
        // Whoever gives up now does not know what becomes of the content, so there is as much patience as for that.
        let patience = self.timeouts.finish;
        self.sender_answer(patience, decisions).await?;
        self.recipient_answers(patience, open, decisions).await
    }
}
