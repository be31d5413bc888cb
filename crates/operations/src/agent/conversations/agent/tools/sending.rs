//! Tools that write: drafts always, and one message to recipients that the person named, when that was approved.

use mail::{
    address::{Address, Mailbox},
    compose::quote::reply_subject,
};
use model::{
    EmailId,
    drafts::NewDraft,
    emails::{Email, ScanStatus},
    sending::{NewMail, NewReply, Recipients, SendStatus, SentMail},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::toolbox::{ToolResult, Toolbox};
use crate::{
    core::{
        admission::Idempotency,
        assistant::{inert, inert_line, inert_subject},
        call::{Call, IdempotencyClaim},
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::emails::present,
    outbox::{
        drafts,
        sending::{self, people},
    },
};

/// Drafts that are saved for one message.
const MAX_DRAFTS: usize = 5;
/// Recipients of a draft or message of the agent.
const MAX_RECIPIENTS: usize = 20;
/// Characters of a text of the agent.
const MAX_TEXT_CHARS: usize = 50_000;
/// Characters of the subject, and of the addresses, in a note to the person.
const MAX_NOTE_CHARS: usize = 200;

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
    pub(super) async fn save_draft(&mut self, wanted: SaveDraft) -> Result<ToolResult> {
        check_text("body", &wanted.body)?;
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
        let default_subject = original.as_ref().map(|email| answer_subject(&email.subject));
        let subject = wanted.subject.as_deref().map(inert_subject).or(default_subject);
        let draft = NewDraft {
            to: recipients("to", wanted.to.or(default_to))?,
            cc: recipients("cc", wanted.cc)?,
            draft_id: wanted.draft_id,
            ..plain_draft(subject, &wanted.body, original.as_ref())
        };
        self.save(draft).await
    }

    async fn save(&mut self, draft: NewDraft) -> Result<ToolResult> {
        if self.drafts_saved >= MAX_DRAFTS {
            return Err(Error::invalid("", "no more drafts for this message"));
        }
        let call = self.call.follow(&drafts::SAVE, self.app.now())?;
        let saved = drafts::save(self.app, &call, self.mailbox(), draft).await?;
        self.drafts_saved += 1;
        self.own_drafts.insert(saved.id.clone());
        let data = json!({ "status": "saved", "draft_id": saved.id, "subject": saved.subject });
        Ok(ToolResult { data, email: Some(saved.id), drafted: false })
    }

    /// Saves the message as a draft instead of sending it, and tells the model and the person why.
    async fn save_instead(&mut self, draft: NewDraft, unnamed: &[String]) -> Result<ToolResult> {
        let mut saved = self.save(draft).await?;
        let why = "the user did not write all of these addresses in this conversation";
        saved.data["status"] = json!("saved as a draft");
        saved.data["sent"] = json!(false);
        saved.data["reason"] = json!(why);
        saved.data["addresses"] = json!(unnamed);
        saved.drafted = true;
        let subject = saved.data["subject"].as_str().map(|text| inert_line(text, MAX_NOTE_CHARS));
        let note = format!(
            "Not sent, but saved as a draft: \u{201c}{}\u{201d}. You did not write {} in this conversation.",
            subject.unwrap_or_default(),
            inert_line(&unnamed.join(", "), MAX_NOTE_CHARS),
        );
        self.notes.push(note);
        Ok(saved)
    }

    pub(super) async fn send_email(&mut self, wanted: SendEmail) -> Result<ToolResult> {
        check_text("text", &wanted.text)?;
        let to = people("to", recipients("to", Some(wanted.to.clone()))?.as_ref())?;
        let cc = people("cc", recipients("cc", wanted.cc.clone())?.as_ref())?;
        let subject = Some(inert_subject(&wanted.subject));
        let unnamed = self.named.missing(to.iter().chain(&cc));
        let (to, cc) = (addresses(&to), addresses(&cc));
        if !unnamed.is_empty() {
            let draft = NewDraft { to, cc, ..plain_draft(subject, &wanted.text, None) };
            return self.save_instead(draft, &unnamed).await;
        }
        let mail = NewMail {
            to,
            cc,
            bcc: None,
            from: None,
            subject,
            html: None,
            text: Some(inert(&wanted.text)),
            attachments: None,
            in_reply_to: None,
            references: None,
            thread_id: None,
            source_draft_id: None,
            headers: std::collections::BTreeMap::new().into(),
            unsubscribe: None,
        };
        let call = self.once(&sending::SEND, &wanted)?;
        let outcome = sending::send(self.app, &call, self.mailbox(), mail, false).await;
        self.record_sent(&call, outcome).await
    }

    pub(super) async fn reply_to_email(&mut self, wanted: ReplyToEmail) -> Result<ToolResult> {
        check_text("text", &wanted.text)?;
        let original = self.clean_email(wanted.email_id.clone()).await?;
        let to = self.answered(&wanted.email_id).await?;
        let subject = Some(answer_subject(&original.subject));
        let unnamed = self.named.missing(to.iter());
        let to = addresses(&to);
        if !unnamed.is_empty() {
            let draft = NewDraft { to, ..plain_draft(subject, &wanted.text, Some(&original)) };
            return self.save_instead(draft, &unnamed).await;
        }
        let reply = NewReply {
            to,
            cc: None,
            bcc: None,
            from: None,
            subject,
            html: None,
            text: Some(inert(&wanted.text)),
            attachments: None,
            reply_all: false,
            source_draft_id: None,
            headers: std::collections::BTreeMap::new().into(),
        };
        let call = self.once(&sending::REPLY, &wanted)?;
        let id = wanted.email_id;
        let outcome = sending::reply(self.app, &call, self.mailbox(), id, reply, false).await;
        self.record_sent(&call, outcome).await
    }

    /// The recipients of a reply: the From address, whatever Reply-To says, or the recipients of one's own message.
    async fn answered(&self, id: &EmailId) -> Result<Vec<Mailbox>> {
        let (mailbox, wanted) = (self.turn.mailbox.clone(), id.clone());
        let record = self
            .app
            .read(self.call, async move |tx| {
                store::emails::find(tx, &mailbox, &wanted).await?.ok_or_else(present::missing)
            })
            .await?;
        if record.outgoing {
            return people("to", Some(&Recipients::Text(record.to_line)));
        }
        let nobody = || Error::invalid("email_id", "this email has no address to reply to");
        Ok(vec![Address::parse(&record.sender_address).map_err(|_| nobody())?.into()])
    }

    /// A call that happens once for this message, also when the message is repeated after a crash.
    fn once<T: Serialize>(&self, operation: &'static Operation, wanted: &T) -> Result<Call> {
        if self.sent {
            return Err(Error::invalid("", "an email was already sent for this message"));
        }
        let mut call = self.call.follow(operation, self.app.now())?;
        let text = serde_json::to_vec(&(operation.id, wanted)).map_err(Error::internal)?;
        call.idempotency = Some(IdempotencyClaim {
            // A caller's key cannot contain a tab, so the two never collide.
            key: format!("agent\t{}\t{}", self.turn.conversation.id, self.turn.message.id),
            fingerprint: Sha256::digest(&text).into(),
            data_key: self.turn.key.clone(),
        });
        Ok(call)
    }

    async fn record_sent(&mut self, call: &Call, outcome: Result<SentMail>) -> Result<ToolResult> {
        let data = match outcome {
            Ok(sent) => json!(sent),
            Err(error) if error.kind() == ErrorKind::AlreadyAnswered => self.earlier(call).await?,
            Err(error) => return Err(error),
        };
        self.sent = true;
        if data["status"] == SendStatus::InReview.as_str() {
            self.notes.push("Not sent yet: a person decides about the message first.".to_owned());
        }
        let email = data["id"].as_str().map(EmailId::from);
        Ok(ToolResult { data, email, drafted: false })
    }

    /// The result of the message that an earlier attempt sent.
    async fn earlier(&self, call: &Call) -> Result<serde_json::Value> {
        let already = || Error::invalid("", "an email was already sent for this message");
        let claim = call.idempotency.as_ref().ok_or_else(already)?;
        let kept = self.app.check_idempotency(&call.workspace, &claim.key, claim.fingerprint).await;
        match kept {
            Ok(Idempotency::Replay(replay)) => serde_json::from_slice(&replay.body).map_err(Error::internal),
            _ => Err(already()),
        }
    }

    /// A message that the agent may work with.
    async fn clean_email(&self, id: EmailId) -> Result<Email> {
        let email = self.email(id).await?;
        if email.content_omitted
            || (email.scan_status != Some(ScanStatus::Clean) && email.delivery_status.is_none())
        {
            return Err(Error::invalid("email_id", "no scanner has found this email clean"));
        }
        Ok(email)
    }
}

/// A plain text draft without recipients, which replies to an email if one is given.
fn plain_draft(subject: Option<String>, body: &str, original: Option<&Email>) -> NewDraft {
    NewDraft {
        to: None,
        cc: None,
        bcc: None,
        subject,
        body: inert(body),
        body_format: None,
        in_reply_to: original.and_then(|email| email.message_id.clone()),
        thread_id: original.and_then(|email| email.thread_id.clone()),
        draft_id: None,
        attachments: None,
    }
}

/// The subject of a reply; it comes from a stranger.
fn answer_subject(original: &str) -> String {
    reply_subject(&inert_subject(original))
}

/// Recipients as bare addresses: a display name could pretend to be another person.
fn addresses(people: &[Mailbox]) -> Option<Recipients> {
    let list: Vec<String> = people.iter().map(|one| one.address().to_string()).collect();
    Some(list).filter(|list| !list.is_empty()).map(Recipients::List)
}

fn recipients(field: &str, given: Option<Vec<String>>) -> Result<Option<Recipients>> {
    match given {
        Some(list) if list.len() > MAX_RECIPIENTS => {
            Err(Error::invalid(field, format!("at most {MAX_RECIPIENTS} recipients")))
        }
        Some(list) => Ok(Some(list).filter(|list| !list.is_empty()).map(Recipients::List)),
        None => Ok(None),
    }
}

fn check_text(field: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(Error::invalid(field, format!("at most {MAX_TEXT_CHARS} characters")));
    }
    Ok(())
}
