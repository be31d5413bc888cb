//! Outgoing mail: what sending takes, what it answers, what becomes of an email for each recipient.

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
use crate::{
    AttachmentId, EmailId, ReviewId, ThreadId, Timestamp, emails::named, object::optional_object,
    suppressions::Unsubscribe,
};

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
    /// How outgoing mail is sent.
    OutboundMode {
        /// Only to mailboxes on this server.
        Local "local",
        /// Through a relay (smarthost).
        Relay "relay",
        /// To the MX hosts of each domain.
        Direct "direct",
        /// Nowhere: outgoing mail is accepted and kept, but not delivered.
        Sandbox "sandbox",
    }
}

named! {
    /// The delivery status of an email for one recipient.
    RecipientState {
        /// It is queued for the next attempt.
        Queued "queued",
        /// The next server accepted it.
        Sent "sent",
        /// Delivery was confirmed.
        Delivered "delivered",
        /// It could not be delivered.
        Bounced "bounced",
        /// The recipient complained about it.
        Complained "complained",
        /// The sandbox kept it; it goes nowhere.
        Sandboxed "sandboxed",
        /// It was not sent to this address, which is suppressed.
        Suppressed "suppressed",
    }
}

named! {
    /// Why a delivery failed, or is late.
    FailureClass {
        /// The address does not exist, or takes no mail for good. It is suppressed.
        Hard "hard",
        /// Something that passes.
        Soft "soft",
        /// The reputation of this server or of the sender's domain.
        Block "block",
        /// What the recipient's server does not accept: the message itself, its size, its files.
        Policy "policy",
        /// The mailbox is full.
        Full "full",
        /// The reply does not say.
        Unknown "unknown",
    }
}

named! {
    /// The delivery status of an email as a whole.
    DeliveryStatus {
        /// Some recipients are still queued.
        Queued "queued",
        /// The next server of every recipient accepted it.
        Sent "sent",
        /// Delivery to all recipients was confirmed.
        Delivered "delivered",
        /// Some recipients got it, others bounced.
        Partial "partial",
        /// It bounced for all recipients.
        Bounced "bounced",
        /// A recipient complained about it.
        Complained "complained",
        /// The sandbox kept it; it goes nowhere.
        Sandboxed "sandboxed",
    }
}

impl DeliveryStatus {
    /// The status of an email from those of its recipients.
    pub fn of(states: &[RecipientState]) -> Self {
        use RecipientState as State;
        let any = |wanted: State| states.contains(&wanted);
        let all = |wanted: State| !states.is_empty() && states.iter().all(|state| *state == wanted);
        let got_nothing = |state: &State| matches!(state, State::Bounced | State::Suppressed);
        if any(State::Queued) {
            Self::Queued
        } else if any(State::Complained) {
            Self::Complained
        } else if !states.is_empty() && states.iter().all(got_nothing) {
            Self::Bounced
        } else if states.iter().any(got_nothing) {
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
    /// The outcome of a send.
    SendStatus {
        /// The next server of every recipient accepted the email.
        Sent "sent",
        /// It is queued and will be retried.
        Queued "queued",
        /// A person decides whether it is sent. It must not be sent again.
        InReview "in_review",
        /// It leaves when the quiet hours of the send policy end.
        Scheduled "scheduled",
    }
}

named! {
    /// A header of an email that lists recipients.
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

/// Who an email is from: an address of the mailbox, with a name if one is given.
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
            "description": "An address of the mailbox, optionally with a name.",
            "oneOf": [{ "type": "string" }, parts]
        })
    }
}

/// An attachment of an outgoing email: a new file with its content, or an existing one by its id.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// The whole file as base64; not a path, a URL or a `data:` URL.
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
    /// The Content-ID of an inline image, which the HTML refers to as `cid:` and this.
    #[serde(default, rename = "contentId")]
    pub content_id: Option<String>,
    /// The id of an attachment in the same mailbox, instead of `content`.
    #[serde(default)]
    pub attachment_id: Option<AttachmentId>,
}

named! {
    /// How an attachment belongs to an email.
    Disposition {
        /// A separate file.
        Attachment "attachment",
        /// An image shown in the text.
        Inline "inline",
    }
}

/// An email to send.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewMail {
    /// The recipients. Required, unless a draft has them.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// The Cc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// The Bcc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The sender: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject, at most 998 characters once encoded. Required, unless a draft has one.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body as HTML. `html` or `text` is required, unless a draft has a body.
    #[serde(default)]
    pub html: Option<String>,
    /// The body as plain text.
    #[serde(default)]
    pub text: Option<String>,
    /// Attachments. With a draft: omitted, the draft's stay; an empty list removes them; any other list replaces
    /// them.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// The Message-ID of the email that it replies to.
    #[garde(inner(custom(valid_answered_id)))]
    #[serde(default)]
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the conversation, oldest first: one string, or a list.
    #[garde(inner(custom(valid_references)))]
    #[serde(default)]
    pub references: Option<References>,
    /// The thread that it belongs to.
    #[serde(default)]
    pub thread_id: Option<ThreadId>,
    /// A draft that fills in what the request omits. It is deleted when the email is sent.
    #[serde(default)]
    pub source_draft_id: Option<EmailId>,
    /// Extra headers, at most 20. Their names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
    /// Lets the recipient unsubscribe. It must be the only one.
    #[serde(default, deserialize_with = "optional_object")]
    pub unsubscribe: Option<Unsubscribe>,
}

/// Headers that the sender sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Headers(BTreeMap<String, String>);

/// Message-IDs: one string, separated by spaces, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum References {
    /// Separated by spaces.
    Text(String),
    /// A list.
    List(Vec<String>),
}

/// A reply to an email. Omitted fields are taken from the original.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewReply {
    /// The recipients; by default the sender of the original.
    #[garde(dive)]
    #[serde(default)]
    pub to: Option<Recipients>,
    /// The Cc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// The Bcc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The sender: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject; by default `Re:` and the subject of the original.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// The body as HTML. `html` or `text` is required.
    #[serde(default)]
    pub html: Option<String>,
    /// The body as plain text.
    #[serde(default)]
    pub text: Option<String>,
    /// Attachments.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// Replies to all recipients of the original.
    #[serde(default)]
    pub reply_all: bool,
    /// A draft that fills in what the request omits. It is deleted when the email is sent.
    #[serde(default)]
    pub source_draft_id: Option<EmailId>,
    /// Extra headers, at most 20. Their names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
}

/// A forward of an email.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewForward {
    /// The recipients.
    #[garde(dive)]
    pub to: Recipients,
    /// The Cc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub cc: Option<Recipients>,
    /// The Bcc recipients.
    #[garde(dive)]
    #[serde(default)]
    pub bcc: Option<Recipients>,
    /// The sender: an address of the mailbox.
    #[garde(dive)]
    #[serde(default)]
    pub from: Option<Sender>,
    /// The subject; by default `Fwd:` and the subject of the original.
    #[garde(inner(custom(valid_subject)))]
    #[serde(default)]
    pub subject: Option<String>,
    /// HTML before the original.
    #[serde(default)]
    pub html: Option<String>,
    /// Plain text before the original.
    #[serde(default)]
    pub text: Option<String>,
    /// Attachments; by default those of the original.
    #[garde(dive)]
    #[serde(default)]
    pub attachments: Option<Vec<FileInput>>,
    /// Extra headers, at most 20. Their names begin with `X-` or `List-`.
    #[garde(dive)]
    #[serde(default)]
    pub headers: Headers,
}

/// An email that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SentMail {
    /// The id of the email.
    pub id: EmailId,
    /// Whether it was sent, is queued, waits for a person's decision, or leaves later.
    pub status: SendStatus,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its Message-ID.
    pub message_id: String,
    /// The review in which a person decides about it, if `status` is `in_review`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_id: Option<ReviewId>,
    /// When it leaves, if `status` is `scheduled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_send_at: Option<Timestamp>,
    /// Recipients that it is not sent to, since their addresses are suppressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<String>,
    /// What to do next, unless it was sent or queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The delivery status of an email, by recipient.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Delivery {
    /// The email.
    pub email_id: EmailId,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// Its delivery status as a whole; null for a received email.
    pub delivery_status: Option<DeliveryStatus>,
    /// Until when delivery is retried.
    pub expires_at: Option<Timestamp>,
    /// Its recipients.
    pub recipients: Vec<RecipientDelivery>,
}

/// The delivery status of an email for one recipient.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecipientDelivery {
    /// The address.
    pub recipient: String,
    /// The line it is on.
    pub line: RecipientLine,
    /// Its status.
    pub state: RecipientState,
    /// Why it failed, or is late; null for what was sent at once.
    pub class: Option<FailureClass>,
    /// Number of attempts.
    pub attempts: i64,
    /// The last reply of the other server. Untrusted.
    pub last_reply: Option<String>,
    /// When the last attempt was.
    pub last_attempt_at: Option<Timestamp>,
    /// When the next attempt is due.
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
