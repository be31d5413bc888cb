//! An outgoing message before it is encoded, and how it is composed.

use bytes::Bytes;
use mail::{
    address::Mailbox,
    compose::{self, AutoSubmitted, ComposeError, Person, UnencodedMessage},
};
use model::{
    ThreadId, Timestamp,
    emails::BodyFormat,
    mailboxes::MailboxSettings,
    sending::{Headers, MAX_CUSTOM_MESSAGE, MAX_HOSTED_MESSAGE, Recipients, References, Sender},
};

use super::{attachments::OutgoingAttachment, origin::Origin};
use crate::core::{
    app::App,
    compute::compute,
    error::{Detail, Error, ErrorKind, Result},
};

/// The maximum size of a composed message, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit(usize);

impl SizeLimit {
    /// For sending from an address, which may be less than can be stored.
    pub(crate) fn for_sending(app: &App, origin: &Origin) -> Self {
        Self(if origin.is_hosted(app) { MAX_HOSTED_MESSAGE } else { MAX_CUSTOM_MESSAGE })
    }

    /// For a draft: the largest allowed attachments fit.
    pub(crate) const fn for_draft() -> Self {
        Self(MAX_CUSTOM_MESSAGE)
    }
}

/// An outgoing message, before it is composed into bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutgoingMessage {
    pub(crate) from: Person,
    pub(crate) to: Vec<Mailbox>,
    pub(crate) cc: Vec<Mailbox>,
    pub(crate) bcc: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) in_reply_to: Option<String>,
    pub(crate) references: Vec<String>,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) attachments: Vec<OutgoingAttachment>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) message_id: String,
    pub(crate) auto_submitted: Option<AutoSubmitted>,
    /// The body before the signature of the mailbox was appended, if one was.
    pub(crate) unsigned: Option<(String, BodyFormat)>,
}

impl OutgoingMessage {
    /// The body as it was written, not as it is encoded.
    pub(crate) fn body(&self) -> (&str, BodyFormat) {
        match (&self.html, &self.text) {
            (Some(html), _) => (html, BodyFormat::Html),
            (None, Some(text)) => (text, BodyFormat::Text),
            (None, None) => ("", BodyFormat::Text),
        }
    }

    /// The body without the signature of the mailbox.
    pub(crate) fn unsigned_body(&self) -> (&str, BodyFormat) {
        match &self.unsigned {
            Some((body, format)) => (body, *format),
            None => self.body(),
        }
    }

    /// The number of addresses, repeated ones included.
    pub(crate) fn recipient_count(&self) -> usize {
        self.to.len() + self.cc.len() + self.bcc.len()
    }

    /// Appends the mailbox's signature.
    pub(crate) fn sign(&mut self, settings: &MailboxSettings) {
        let signature = settings.signature.text.trim_end();
        if !settings.signature.enabled || signature.is_empty() {
            return;
        }
        let (body, format) = self.body();
        self.unsigned = Some((body.to_owned(), format));
        if let Some(text) = &mut self.text {
            *text = format!("{}\n\n-- \n{signature}\n", text.trim_end());
        }
        if let Some(html) = &mut self.html {
            let lines: Vec<String> = signature.lines().map(escape).collect();
            let block = format!("<br><br>-- <br>{}", lines.join("<br>"));
            match html.to_ascii_lowercase().rfind("</body>") {
                Some(end) => html.insert_str(end, &block),
                None => html.push_str(&block),
            }
        }
    }

    /// Composes the message, within its size limit.
    pub(crate) async fn compose(&self, bound: SizeLimit, now: Timestamp) -> Result<Bytes> {
        let outgoing = UnencodedMessage {
            message_id: self.message_id.clone(),
            date: now.as_micros(),
            from: self.from.clone(),
            reply_to: Vec::new(),
            to: self.to.iter().map(person).collect(),
            cc: self.cc.iter().map(person).collect(),
            subject: self.subject.clone(),
            in_reply_to: self.in_reply_to.clone(),
            references: self.references.clone(),
            text: self.text.clone(),
            html: self.html.clone(),
            files: self.attachments.iter().map(|source| source.file.clone()).collect(),
            headers: self.headers.clone(),
            auto_submitted: self.auto_submitted,
        };
        let lengths = [&outgoing.text, &outgoing.html].map(|body| body.as_ref().map_or(0, String::len));
        let size = lengths.into_iter().chain(outgoing.files.iter().map(|file| file.bytes.len())).sum();
        let composed = compute(size, move || compose::compose(&outgoing)).await?;
        let bytes = composed.map_err(|error| refused(&error))?;
        let SizeLimit(max_bytes) = bound;
        if bytes.len() > max_bytes {
            let fix = format!(
                "The message can have {max_bytes} bytes, with its encoded attachments, and has {}.",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::MessageTooLarge).with_fix(fix));
        }
        Ok(Bytes::from(bytes))
    }
}

pub(crate) fn person(mailbox: &Mailbox) -> Person {
    Person { name: mailbox.name().map(ToOwned::to_owned), address: mailbox.address().to_string() }
}

/// The error for a message that cannot be composed, with the field that is at fault.
fn refused(error: &ComposeError) -> Error {
    let path = match error {
        ComposeError::Control { field, .. }
        | ComposeError::Address { field, .. }
        | ComposeError::Id { field } => path_of(field),
        ComposeError::SubjectTooLong => "subject".to_owned(),
        ComposeError::HeaderName(name) | ComposeError::HeaderValue(name) => format!("headers.{name}"),
        ComposeError::TooManyHeaders => "headers".to_owned(),
        ComposeError::RepeatedContentId(_) | ComposeError::MediaType(_) => "attachments".to_owned(),
        _ => String::new(),
    };
    Error::invalid(path, error.to_string())
}

/// The field of the request that a value comes from.
fn path_of(value: &str) -> String {
    match value.strip_prefix("header ") {
        Some(name) => format!("headers.{name}"),
        None => value.strip_prefix("name in ").unwrap_or(value).to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Parses the recipients of one header.
pub(crate) fn people(path: &str, given: Option<&Recipients>) -> Result<Vec<Mailbox>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    given.people().map_err(|faults| {
        let details = faults.into_iter().map(|(index, message)| Detail {
            path: index.map_or_else(|| path.to_owned(), |index| format!("{path}[{index}]")),
            message,
        });
        Error::new(ErrorKind::ValidationFailed).with_details(details.collect())
    })
}

/// The sender: an address of the mailbox, with or without a tag.
pub(crate) fn sender(origin: &Origin, given: Option<&Sender>) -> Result<Person> {
    let configured = Some(origin.mailbox.settings.from_name.trim()).filter(|name| !name.is_empty());
    let Some(given) = given else {
        return Ok(Person { name: configured.map(ToOwned::to_owned), address: origin.mailbox.email.clone() });
    };
    let mailbox = given.mailbox().map_err(|error| Error::invalid("from", error.to_string()))?;
    let address = mailbox.address();
    if address.as_str() != origin.mailbox.email && address.without_tag().as_str() != origin.mailbox.email {
        let fix = format!("Send from {}, or leave `from` out.", origin.mailbox.email);
        return Err(Error::new(ErrorKind::SenderNotAllowed).with_fix(fix));
    }
    let name = mailbox.name().or(configured).map(ToOwned::to_owned);
    Ok(Person { name, address: address.to_string() })
}

/// Parses the Message-ID of the message that is replied to.
pub(crate) fn answered_id(text: &str) -> Result<String> {
    model::sending::answered_id(text).map_err(|message| Error::invalid("in_reply_to", message))
}

/// Parses the Message-IDs of a conversation.
pub(crate) fn references(given: Option<&References>) -> Result<Vec<String>> {
    let ids = given.map(References::ids).transpose();
    Ok(ids.map_err(|message| Error::invalid("references", message))?.unwrap_or_default())
}

/// Refuses too many headers; the rest is checked when the message is composed.
pub(crate) fn headers(given: Headers) -> Result<Vec<(String, String)>> {
    given.into_list().map_err(|message| Error::invalid("headers", message))
}

/// Refuses a subject that would end its header.
pub(crate) fn subject(text: &str) -> Result<String> {
    compose::check_text("subject", text).map_err(|error| refused(&error))?;
    Ok(text.to_owned())
}

/// A body, unless it is empty.
pub(crate) fn body(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The References of a forward. It has no In-Reply-To.
pub(crate) fn forward_references(message_id: Option<&str>) -> Vec<String> {
    message_id.filter(|id| mail::compose::is_id(id)).map(ToOwned::to_owned).into_iter().collect()
}
