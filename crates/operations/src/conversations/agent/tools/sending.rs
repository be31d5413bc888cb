//! Tools that write: drafts always, and one mail when the message was approved.

use std::collections::HashSet;

use mail::{address::Address, compose::quote::reply_subject};
use model::{
    EmailId,
    conversations::Speaker,
    drafts::NewDraft,
    emails::{Email, ScanStatus},
    sending::{NewMail, NewReply, Recipients, SentMail},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Done, Toolbox};
use crate::{
    Call, Error, ErrorKind, Idempotency, IdempotencyClaim, Operation, Result, assistant::inert, drafts,
    sending,
};

/// Drafts that are saved for one message.
const MOST_DRAFTS: usize = 5;
/// Recipients of a draft or mail of the agent.
const MOST_RECIPIENTS: usize = 20;
/// Characters of a text of the agent.
const LONGEST_TEXT: usize = 50_000;

/// A draft.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveDraft {
    /// Addresses of the recipients.
    #[serde(default)]
    to: Option<Vec<String>>,
    /// Addresses of those who get a copy.
    #[serde(default)]
    cc: Option<Vec<String>>,
    /// The subject.
    #[serde(default)]
    subject: Option<String>,
    /// The text, plain.
    body: String,
    /// The mail that it answers.
    #[serde(default)]
    reply_to_email_id: Option<EmailId>,
    /// A draft that was saved in this conversation, to be replaced.
    #[serde(default)]
    draft_id: Option<EmailId>,
}

/// A new mail.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendEmail {
    /// Addresses that the user wrote in this conversation.
    to: Vec<String>,
    /// The same, for a copy.
    #[serde(default)]
    cc: Option<Vec<String>>,
    /// The subject.
    subject: String,
    /// The text, plain.
    text: String,
}

/// An answer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyToEmail {
    /// The mail that is answered.
    email_id: EmailId,
    /// The text, plain.
    text: String,
}

impl Toolbox<'_> {
    pub(super) async fn save_draft(&mut self, wanted: SaveDraft) -> Result<Done> {
        check_text("body", &wanted.body)?;
        if self.drafts_saved >= MOST_DRAFTS {
            return Err(Error::invalid("", "no more drafts for this message"));
        }
        if let Some(draft) = &wanted.draft_id
            && !self.own_drafts.contains(draft)
        {
            // Overwriting what the person wrote would be a way to delete it.
            return Err(Error::invalid("draft_id", "only drafts that you saved in this conversation"));
        }
        let original = match wanted.reply_to_email_id {
            Some(id) => Some(self.clean_email(id).await?),
            None => None,
        };
        let default_to = original.as_ref().map(|email| vec![email.sender.clone()]);
        let default_subject = original.as_ref().map(|email| reply_subject(&email.subject));
        let draft = NewDraft {
            to: recipients("to", wanted.to.or(default_to))?,
            cc: recipients("cc", wanted.cc)?,
            bcc: None,
            subject: wanted.subject.or(default_subject),
            body: inert(&wanted.body),
            body_format: None,
            in_reply_to: original.as_ref().and_then(|email| email.message_id.clone()),
            thread_id: original.and_then(|email| email.thread_id),
            draft_id: wanted.draft_id,
            attachments: None,
        };
        let call = self.call.follow(&drafts::SAVE, self.app.now())?;
        let saved = drafts::save(self.app, &call, self.mailbox(), draft).await?;
        self.drafts_saved += 1;
        self.own_drafts.insert(saved.id.clone());
        let data = json!({ "status": "saved", "draft_id": saved.id, "subject": saved.subject });
        Ok(Done { data, email: Some(saved.id) })
    }

    pub(super) async fn send_email(&mut self, wanted: SendEmail) -> Result<Done> {
        check_text("text", &wanted.text)?;
        self.require_named("to", &wanted.to)?;
        self.require_named("cc", wanted.cc.as_deref().unwrap_or_default())?;
        let mail = NewMail {
            to: recipients("to", Some(wanted.to.clone()))?,
            cc: recipients("cc", wanted.cc.clone())?,
            bcc: None,
            from: None,
            subject: Some(wanted.subject.clone()),
            html: None,
            text: Some(inert(&wanted.text)),
            attachments: None,
            in_reply_to: None,
            references: None,
            thread_id: None,
            source_draft_id: None,
            headers: std::collections::BTreeMap::new(),
        };
        let call = self.once(&sending::SEND, &wanted)?;
        let outcome = sending::send(self.app, &call, self.mailbox(), mail, false).await;
        self.note_sent(&call, outcome).await
    }

    pub(super) async fn reply_to_email(&mut self, wanted: ReplyToEmail) -> Result<Done> {
        check_text("text", &wanted.text)?;
        self.clean_email(wanted.email_id.clone()).await?;
        let reply = NewReply {
            to: None,
            cc: None,
            bcc: None,
            from: None,
            subject: None,
            html: None,
            text: Some(inert(&wanted.text)),
            attachments: None,
            reply_all: false,
            source_draft_id: None,
            headers: std::collections::BTreeMap::new(),
        };
        let call = self.once(&sending::REPLY, &wanted)?;
        let id = wanted.email_id;
        let outcome = sending::reply(self.app, &call, self.mailbox(), id, reply, false).await;
        self.note_sent(&call, outcome).await
    }

    /// A call that happens once for this message, also when the same message comes again after a crash.
    fn once<T: Serialize>(&self, operation: &'static Operation, wanted: &T) -> Result<Call> {
        if self.sent {
            return Err(Error::invalid("", "one mail was sent for this message already"));
        }
        let mut call = self.call.follow(operation, self.app.now())?;
        let text = serde_json::to_vec(&(operation.id, wanted)).map_err(Error::internal)?;
        call.idempotency = Some(IdempotencyClaim {
            // A tab cannot stand in a key of a caller, so that the two never meet.
            key: format!("agent\t{}\t{}", self.turn.conversation.id, self.turn.message.id),
            fingerprint: Sha256::digest(&text).into(),
            data_key: self.turn.key.clone(),
        });
        Ok(call)
    }

    async fn note_sent(&mut self, call: &Call, outcome: Result<SentMail>) -> Result<Done> {
        let data = match outcome {
            Ok(sent) => json!(sent),
            Err(error) if error.kind() == ErrorKind::AlreadyAnswered => self.earlier(call).await?,
            Err(error) => return Err(error),
        };
        self.sent = true;
        let email = data["id"].as_str().map(EmailId::from);
        Ok(Done { data, email })
    }

    /// What became of the mail that an earlier attempt at this message sent.
    async fn earlier(&self, call: &Call) -> Result<serde_json::Value> {
        let already = || Error::invalid("", "one mail was sent for this message already");
        let claim = call.idempotency.as_ref().ok_or_else(already)?;
        let kept = self.app.check_idempotency(&call.workspace, &claim.key, claim.fingerprint).await;
        match kept {
            Ok(Idempotency::Replay(replay)) => serde_json::from_slice(&replay.body).map_err(Error::internal),
            _ => Err(already()),
        }
    }

    /// A mail that the agent may work with.
    async fn clean_email(&self, id: EmailId) -> Result<Email> {
        let email = self.email(id).await?;
        if email.content_omitted
            || (email.scan_status != Some(ScanStatus::Clean) && email.delivery_status.is_none())
        {
            return Err(Error::invalid("email_id", "no scanner has found this mail clean"));
        }
        Ok(email)
    }

    /// Refuses recipients that the person did not write: a mail must not say where data goes.
    fn require_named(&self, field: &str, recipients: &[String]) -> Result<()> {
        let earlier = self.turn.history.iter().filter(|message| message.role == Speaker::User);
        let said = earlier.chain(std::iter::once(&self.turn.message));
        let named: HashSet<String> = said.flat_map(|message| addresses(&message.content)).collect();
        for (place, recipient) in recipients.iter().enumerate() {
            let known = Address::parse(recipient.trim()).is_ok_and(|one| named.contains(&key_of(&one)));
            if !known {
                let message = "the user did not write this address; ask for it, or save a draft";
                return Err(Error::invalid(format!("{field}[{place}]"), message));
            }
        }
        Ok(())
    }
}

/// The addresses in what a person wrote.
fn addresses(text: &str) -> Vec<String> {
    let edge = |c: char| c.is_whitespace() || "<>()[]{},;:\"'`|".contains(c);
    let words = text.split(edge).filter(|word| word.contains('@'));
    words
        .filter_map(|word| Address::parse(word.trim_matches(['.', '!', '?', '*', '_'])).ok())
        .map(|address| key_of(&address))
        .collect()
}

fn key_of(address: &Address) -> String {
    address.as_str().to_lowercase()
}

fn recipients(field: &str, given: Option<Vec<String>>) -> Result<Option<Recipients>> {
    match given {
        Some(list) if list.len() > MOST_RECIPIENTS => {
            Err(Error::invalid(field, format!("at most {MOST_RECIPIENTS} recipients")))
        }
        Some(list) => Ok(Some(list).filter(|list| !list.is_empty()).map(Recipients::List)),
        None => Ok(None),
    }
}

fn check_text(field: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    if text.chars().count() > LONGEST_TEXT {
        return Err(Error::invalid(field, format!("at most {LONGEST_TEXT} characters")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::addresses;

    #[test]
    fn addresses_are_found_in_what_people_write() {
        let text = "Send it to Bob <bob@example.org>, (Eve@Example.org) and \"x@y.test\". Or ask a@b? mailto:c@d.test!";
        assert_eq!(addresses(text), ["bob@example.org", "eve@example.org", "x@y.test", "a@b", "c@d.test"]);
        assert!(addresses("no address @ all, foo@, @bar").is_empty());
    }
}
