//! A mail as its writer means it, and how it becomes bytes.

use bytes::Bytes;
use mail::{
    address::{Address, Mailbox},
    compose::{self, AutoSubmitted, ComposeError, Outgoing, Person},
};
use model::{
    EmailId, ThreadId, Timestamp,
    emails::BodyFormat,
    mailboxes::MailboxSettings,
    sending::{
        MAX_CUSTOM_MESSAGE, MAX_HEADERS, MAX_HOSTED_MESSAGE, MAX_RECIPIENTS, Recipients, References, Sender,
    },
};

use super::{Origin, files::SourceFile};
use crate::{App, Detail, Error, ErrorKind, Result};

/// Everything about a mail but its bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Letter {
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
    pub(crate) files: Vec<SourceFile>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) message_id: String,
    pub(crate) auto_submitted: Option<AutoSubmitted>,
}

impl Letter {
    /// The body for people: what was written, not how it is encoded.
    pub(crate) fn body(&self) -> (&str, BodyFormat) {
        match (&self.html, &self.text) {
            (Some(html), _) => (html, BodyFormat::Html),
            (None, Some(text)) => (text, BodyFormat::Text),
            (None, None) => ("", BodyFormat::Text),
        }
    }

    /// How many addresses it goes to, each as often as it is named.
    pub(crate) fn recipient_count(&self) -> usize {
        self.to.len() + self.cc.len() + self.bcc.len()
    }

    /// Puts the mailbox's signature under what was written.
    pub(crate) fn sign(&mut self, settings: &MailboxSettings) {
        let signature = settings.signature.text.trim_end();
        if !settings.signature.enabled || signature.is_empty() {
            return;
        }
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

    /// Writes the mail, at most as large as its sender's address allows.
    pub(crate) async fn compose(&self, app: &App, origin: &Origin, now: Timestamp) -> Result<Bytes> {
        let outgoing = Outgoing {
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
            files: self.files.iter().map(|source| source.file.clone()).collect(),
            headers: self.headers.clone(),
            auto_submitted: self.auto_submitted,
        };
        let composed = tokio::task::spawn_blocking(move || compose::compose(&outgoing)).await;
        let bytes = composed.map_err(Error::internal)?.map_err(|error| refused(&error))?;
        let most = if origin.is_hosted(app) { MAX_HOSTED_MESSAGE } else { MAX_CUSTOM_MESSAGE };
        if bytes.len() > most {
            let fix =
                format!("Send at most {most} bytes from this address, files and their encoding included.");
            return Err(Error::new(ErrorKind::MessageTooLarge).with_fix(fix));
        }
        Ok(Bytes::from(bytes))
    }
}

pub(crate) fn person(mailbox: &Mailbox) -> Person {
    Person { name: mailbox.name().map(ToOwned::to_owned), address: mailbox.address().to_string() }
}

/// What is wrong with a mail that cannot be written, at the field that is to blame.
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

/// The field of a request that a value of a mail comes from.
fn path_of(value: &str) -> String {
    match value.strip_prefix("header ") {
        Some(name) => format!("headers.{name}"),
        None => value.strip_prefix("name in ").unwrap_or(value).to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Reads the recipients of one line of a mail.
pub(crate) fn people(path: &str, given: Option<&Recipients>) -> Result<Vec<Mailbox>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let (mut all, mut details) = (Vec::new(), Vec::new());
    for (index, text) in given.texts().iter().enumerate() {
        let place = match given {
            Recipients::Text(_) => path.to_owned(),
            Recipients::List(_) => format!("{path}[{index}]"),
        };
        for one in split(text) {
            match Mailbox::parse(one) {
                Ok(mailbox) => all.push(mailbox),
                Err(error) => details.push(Detail { path: place.clone(), message: error.to_string() }),
            }
        }
    }
    if all.len() > MAX_RECIPIENTS {
        details.push(Detail {
            path: path.to_owned(),
            message: format!("more than {MAX_RECIPIENTS} recipients"),
        });
    }
    if details.is_empty() {
        return Ok(all);
    }
    Err(Error::new(ErrorKind::ValidationFailed).with_details(details))
}

/// The addresses of one text: it is cut at commas outside quotation marks.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Who a mail is from: an address of the mailbox, with or without a tag.
pub(crate) fn sender(origin: &Origin, given: Option<&Sender>) -> Result<Person> {
    let configured = Some(origin.mailbox.settings.from_name.trim()).filter(|name| !name.is_empty());
    let Some(given) = given else {
        return Ok(Person { name: configured.map(ToOwned::to_owned), address: origin.mailbox.email.clone() });
    };
    let wrong = |error: mail::address::AddressError| Error::invalid("from", error.to_string());
    let mailbox = match given {
        Sender::Text(text) => Mailbox::parse(text).map_err(wrong)?,
        Sender::Parts(parts) => {
            let address = Address::parse(&parts.email).map_err(wrong)?;
            Mailbox::new(parts.name.as_deref(), address).map_err(wrong)?
        }
    };
    let address = mailbox.address();
    if address.as_str() != origin.mailbox.email && address.without_tag().as_str() != origin.mailbox.email {
        let fix = format!("Send from {}, or leave `from` out.", origin.mailbox.email);
        return Err(Error::new(ErrorKind::SenderNotAllowed).with_fix(fix));
    }
    let name = mailbox.name().or(configured).map(ToOwned::to_owned);
    Ok(Person { name, address: address.to_string() })
}

/// Reads a Message-ID, with or without its angle brackets.
pub(crate) fn message_id(path: &str, text: &str) -> Result<String> {
    let bare = text.trim_matches(' ');
    let bare = bare.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')).unwrap_or(bare);
    if compose::is_id(bare) {
        return Ok(bare.to_owned());
    }
    Err(Error::invalid(path, "expected a Message-ID such as <id@example.com>"))
}

/// Reads the Message-ID of the mail that is answered. An id of this service is none: other servers know nothing of it.
pub(crate) fn answered_id(text: &str) -> Result<String> {
    let id = message_id("in_reply_to", text)?;
    if id.contains('@') || !EmailId::looks_like(&id) {
        return Ok(id);
    }
    let message = "expected a Message-ID such as <id@example.com>; to answer an email by its id, use POST …/emails/{id}/reply";
    Err(Error::invalid("in_reply_to", message))
}

/// Reads the Message-IDs of a conversation.
pub(crate) fn references(given: Option<&References>) -> Result<Vec<String>> {
    let texts: Vec<&str> = match given {
        None => Vec::new(),
        Some(References::Text(text)) => text.split(' ').filter(|one| !one.is_empty()).collect(),
        Some(References::List(list)) => list.iter().map(String::as_str).collect(),
    };
    if texts.len() > compose::quote::MAX_REFERENCES {
        let message = format!("at most {} ids are taken", compose::quote::MAX_REFERENCES);
        return Err(Error::invalid("references", message));
    }
    texts.into_iter().map(|text| message_id("references", text)).collect()
}

/// Refuses more headers than a mail may have; the rest is checked when it is written.
pub(crate) fn headers(given: std::collections::BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    if given.len() > MAX_HEADERS {
        return Err(Error::invalid("headers", format!("at most {MAX_HEADERS} headers can be set")));
    }
    Ok(given.into_iter().collect())
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
