//! Outgoing mail: what sending takes, what it answers, what becomes of a mail for each recipient.

mod checks;

use std::{collections::BTreeMap, fmt, str::FromStr};

use garde::Validate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

pub use self::checks::{RecipientFault, answered_id, bare_content_id, is_inline_type};
pub(crate) use self::checks::{valid_answered_id, valid_references, valid_subject};
use crate::{AttachmentId, EmailId, ThreadId, Timestamp, emails::named};

/// Files of one message.
pub const MAX_FILES: usize = 20;
/// Bytes of one file.
pub const MAX_FILE_BYTES: usize = 10 << 20;
/// Bytes of all files of a message.
pub const MAX_FILES_BYTES: usize = 25 << 20;
/// Bytes of an encoded message from a hosted address.
pub const MAX_HOSTED_MESSAGE: usize = 5 << 20;
/// Bytes of an encoded message from an address of a custom domain.
pub const MAX_CUSTOM_MESSAGE: usize = 40_000_000;
/// Recipients of one message, whatever the plan.
pub const MAX_RECIPIENTS: usize = 500;
/// Extra headers of a message.
pub const MAX_HEADERS: usize = 20;

named! {
    /// The way mail leaves this server.
    OutboundMode {
        /// To mailboxes of this server only.
        Local "local",
        /// By way of a smarthost.
        Relay "relay",
        /// To the MX hosts of each domain.
        Direct "direct",
        /// Nowhere: mail for others is taken, kept and shown.
        Sandbox "sandbox",
    }
}

named! {
    /// What became of a mail for one recipient.
    RecipientState {
        /// It waits for its next attempt.
        Queued "queued",
        /// The next host has taken it.
        Sent "sent",
        /// A report says that it arrived.
        Delivered "delivered",
        /// It will never arrive.
        Bounced "bounced",
        /// The recipient complained about it.
        Complained "complained",
        /// It was taken by the sandbox and goes nowhere.
        Sandboxed "sandboxed",
    }
}

named! {
    /// What became of a mail as a whole.
    DeliveryStatus {
        /// Some recipient still waits.
        Queued "queued",
        /// Every next host has taken it.
        Sent "sent",
        /// Reports say that it arrived everywhere.
        Delivered "delivered",
        /// It went to some recipients and not to others.
        Partial "partial",
        /// It went to nobody.
        Bounced "bounced",
        /// Somebody complained about it.
        Complained "complained",
        /// The sandbox has it.
        Sandboxed "sandboxed",
    }
}

impl DeliveryStatus {
    /// The status of a mail from those of its recipients.
    pub fn of(states: &[RecipientState]) -> Self {
        use RecipientState as State;
        let any = |wanted: State| states.contains(&wanted);
        let all = |wanted: State| !states.is_empty() && states.iter().all(|state| *state == wanted);
        if any(State::Queued) {
            Self::Queued
        } else if any(State::Complained) {
            Self::Complained
        } else if all(State::Bounced) {
            Self::Bounced
        } else if any(State::Bounced) {
            Self::Partial
        } else if all(State::Delivered) {
            Self::Delivered
        } else if all(State::Sandboxed) {
            Self::Sandboxed
        } else {
            Self::Sent
        }
    }
}

named! {
    /// What a send came to in the time that it waits.
    SendStatus {
        /// The next host of every recipient has taken the mail.
        Sent "sent",
        /// It is in the queue and will be tried again.
        Queued "queued",
    }
}

named! {
    /// A line of a mail that names recipients.
    RecipientLine {
        /// To.
        To "to",
        /// Cc.
        Cc "cc",
        /// Bcc.
        Bcc "bcc",
    }
}

/// Recipients: one text, or a list of them. Each is an address, or a name and an address as in
/// `Name <name@example.com>`; one text may hold several with commas between them, an element of a list holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// One text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for Recipients {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Recipients;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address or a list of addresses")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Recipients, E> {
                Ok(Recipients::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Recipients, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    if all.len() >= MAX_RECIPIENTS {
                        return Err(de::Error::custom(format!("more than {MAX_RECIPIENTS} recipients")));
                    }
                    all.push(one);
                }
                Ok(Recipients::List(all))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Recipients {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Recipients".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An address, or a name and an address as in `Name <name@example.com>`; or a list of them.",
            "oneOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "maxItems": MAX_RECIPIENTS }
            ]
        })
    }
}

/// Who a mail is from: an address of the mailbox, with a name if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// `a@b` or `Name <a@b>`.
    Text(String),
    /// The address and the name apart.
    Parts(SenderParts),
}

/// An address and a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SenderParts {
    /// The address.
    pub email: String,
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
}

impl<'de> Deserialize<'de> for Sender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Sender;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address, or an object with email and name")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sender, E> {
                Ok(Sender::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sender, A::Error> {
                SenderParts::deserialize(MapAccessDeserializer::new(map)).map(Sender::Parts)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Sender {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sender".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = generator.subschema_for::<SenderParts>();
        json_schema!({
            "description": "An address of the mailbox, with a name if one is given.",
            "oneOf": [{ "type": "string" }, parts]
        })
    }
}

/// A file of an outgoing mail: a new one with its content, or one of the mailbox by its id.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// The whole file in base64; not a path, a URL or a `data:` URL.
    #[serde(default)]
    pub content: Option<String>,
    /// Its name.
    #[serde(default)]
    pub filename: Option<String>,
    /// Its media type, such as `application/pdf`.
    #[serde(default, rename = "type")]
    pub media_type: Option<String>,
    /// `attachment`, or `inline` for an image that the HTML shows.
    #[serde(default)]
    pub disposition: Option<Disposition>,
    /// What the HTML calls an inline image: `cid:` and this.
    #[serde(default, rename = "contentId")]
    pub content_id: Option<String>,
    /// The id of a file of the same mailbox, instead of content.
    #[serde(default)]
    pub attachment_id: Option<AttachmentId>,
}

named! {
    /// How a file belongs to a mail.
    Disposition {
        /// Beside its text.
        Attachment "attachment",
        /// In its text.
        Inline "inline",
    }
}

/// A mail to be sent.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewMail {
    /// Who gets it. Required, unless a draft says.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// Who gets a copy.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// Who gets a copy that the others do not know of.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// Who it is from: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject, at most 998 characters once encoded. Required, unless a draft says.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body as HTML. One of `html` and `text` is required, unless a draft says.
    #[serde(default)]
    pub html: Option<String>,
    /// The body as plain text.
    #[serde(default)]
    pub text: Option<String>,
    /// Files. With a draft: left out they stay, an empty list clears them, any other list is the whole new set.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// The Message-ID that it answers.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the conversation, oldest first: one text, or a list.
    #[garde(inner(custom(valid_references)))]
    #[serde(default)]
    pub references: Option<References>,
    /// The thread of the mailbox that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// A draft whose content is used where the request says nothing, and which is gone once the mail is sent.
    #[serde(default)]
    pub source_draft_id: Option<EmailId>,
    /// Extra headers, at most 20, whose names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
}

/// Headers that the sender sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Headers(BTreeMap<String, String>);

/// Message-IDs: one text with spaces between them, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum References {
    /// With spaces between them.
    Text(String),
    /// One by one.
    List(Vec<String>),
}

/// An answer to a mail. What is left out comes from the mail that is answered.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewReply {
    /// Who gets it; the sender of the original, if left out.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// Who gets a copy.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// Who gets a copy that the others do not know of.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// Who it is from: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject; `Re:` and that of the original, if left out.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body as HTML. One of `html` and `text` is required.
    #[serde(default)]
    pub html: Option<String>,
    /// The body as plain text.
    #[serde(default)]
    pub text: Option<String>,
    /// Files.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// Also answers everybody who got the original.
    #[serde(default)]
    pub reply_all: bool,
    /// A draft whose content is used where the request says nothing, and which is gone once the mail is sent.
    #[serde(default)]
    pub source_draft_id: Option<EmailId>,
    /// Extra headers, at most 20, whose names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
}

/// A mail that is passed on to others.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewForward {
    /// Who gets it.
    #[garde(dive)]
    pub to: Recipients,
    /// Who gets a copy.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// Who gets a copy that the others do not know of.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// Who it is from: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject; `Fwd:` and that of the original, if left out.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// HTML before the original.
    #[serde(default)]
    pub html: Option<String>,
    /// Plain text before the original.
    #[serde(default)]
    pub text: Option<String>,
    /// Files; those of the original, if left out.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// Extra headers, at most 20, whose names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
}

/// A mail that was sent or queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SentMail {
    /// Its email.
    pub id: EmailId,
    /// Whether every next host has taken it already.
    pub status: SendStatus,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its Message-ID.
    pub message_id: String,
}

/// What became of a mail, recipient by recipient.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Delivery {
    /// The email.
    pub email_id: EmailId,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// What became of it as a whole; null for an inbound mail.
    pub delivery_status: Option<DeliveryStatus>,
    /// Until when it is tried.
    pub expires_at: Option<Timestamp>,
    /// Its recipients.
    pub recipients: Vec<RecipientDelivery>,
}

/// What became of a mail for one recipient.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecipientDelivery {
    /// The address.
    pub recipient: String,
    /// The line that names it.
    pub line: RecipientLine,
    /// What became of it.
    pub state: RecipientState,
    /// How often it was tried.
    pub attempts: i64,
    /// What the other server said last. Untrusted.
    pub last_reply: Option<String>,
    /// When it was tried last.
    pub last_attempt_at: Option<Timestamp>,
    /// When it will be tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// When its state became final.
    pub finished_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: SEND-8
    #[test]
    fn the_status_of_a_mail_is_made_from_its_recipients() {
        use DeliveryStatus as Status;
        use RecipientState::{Bounced, Complained, Delivered, Queued, Sandboxed, Sent};
        for (states, status) in [
            (&[Queued, Sent, Bounced][..], Status::Queued),
            (&[Sent, Sent], Status::Sent),
            (&[Sent, Delivered], Status::Sent),
            (&[Delivered, Delivered], Status::Delivered),
            (&[Sent, Bounced], Status::Partial),
            (&[Bounced], Status::Bounced),
            (&[Sent, Complained, Bounced], Status::Complained),
            (&[Sandboxed, Sandboxed], Status::Sandboxed),
            (&[Sandboxed, Sent], Status::Sent),
        ] {
            assert_eq!(Status::of(states), status, "{states:?}");
        }
    }
}
