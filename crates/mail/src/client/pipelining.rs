//! Short messages in one round trip: envelope and content are sent together, then all replies are read.
//!
//! On distant servers most of the cost of a short message is waiting. This needs PIPELINING and CHUNKING (RFC 3030):
//! with BDAT the server reads the content even when it refuses the envelope, so both sides stay in step.

use std::time::Duration;

use super::content::ended;
use super::error::{Error, Phase};
use super::transfer::{ClosingReply, Decisions, MAX_UNANSWERED_RECIPIENTS, MailObject, Outcome, Paths};
use super::wire::BLOCK_BYTES;
use super::{Connection, Extension};

/// Maximum age of the server's last reply. A server may have closed an idle connection without reading anything, but
/// once the content is written that cannot be told from a lost reply.
const MAX_REPLY_AGE: Duration = Duration::from_secs(5);

impl Connection {
    /// Whether a message can be sent in one go. A large one waits for the reply to its envelope, which may be a
    /// refusal.
    pub(super) fn can_pipeline_content(&self, mail: &MailObject<'_>, decisions: &Decisions) -> bool {
        self.extensions.offers(Extension::Pipelining)
            && self.extensions.offers(Extension::Chunking)
            && mail.content.len() < BLOCK_BYTES
            && decisions.open().len() <= MAX_UNANSWERED_RECIPIENTS
            && self.wire.replied_within(MAX_REPLY_AGE)
    }

    /// Sends envelope and content. An error means that the server cannot have accepted the message.
    pub(super) async fn send_pipelined(
        &mut self,
        mail: &MailObject<'_>,
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
        // After a failed write the end is missing, so the server cannot have accepted the message.
        if let Err(error) = self.wire.write(Phase::Content, self.timeouts.block, &whole).await {
            return Err(self.with_closing_reply(error).await);
        }
        let closing = match self.envelope_answers(&open, decisions).await {
            Ok(closing) => closing,
            // From here on the message may have been accepted, unless a reply says otherwise.
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
        let outcome = self.read_content_reply().await;
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
    ) -> Result<Option<ClosingReply>, Error> {
        // A timeout here leaves the outcome unknown, so it is as long as the one for the final reply.
        let timeout = self.timeouts.finish;
        self.sender_answer(timeout, decisions).await?;
        self.recipient_answers(timeout, open, decisions).await
    }
}
