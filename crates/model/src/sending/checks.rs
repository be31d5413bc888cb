//! What an outgoing message is checked for as soon as it is read, so that a caller hears of all that is wrong at once.
//!
//! Operations read the same values by the same functions, also where nothing came over the wire.

use std::collections::BTreeMap;

use garde::{Path, Report, Validate};
use mail::{
    address::{Address, AddressError, Mailbox},
    compose::{self, quote::MAX_REFERENCES},
};

use super::{Disposition, FileInput, Headers, MAX_HEADERS, MAX_RECIPIENTS, Recipients, References, Sender};
use crate::EmailId;

/// The media types of images that HTML may show from within a message.
const INLINE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Bytes of the longest name of a file.
const MAX_FILE_NAME: usize = 255;

/// What is wrong with recipients: which element of a list, if it is one, and why.
pub type RecipientFault = (Option<usize>, String);

impl Recipients {
    /// Reads the recipients. An element of a list is one address; one text holds as many as it has commas between them.
    pub fn people(&self) -> Result<Vec<Mailbox>, Vec<RecipientFault>> {
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        let mut take = |place, read: Result<Mailbox, String>| match read {
            Ok(mailbox) => all.push(mailbox),
            Err(message) => faults.push((place, message)),
        };
        match self {
            Self::Text(text) => split(text).into_iter().for_each(|one| take(None, parse(one))),
            Self::List(list) => {
                list.iter().enumerate().for_each(|(index, text)| take(Some(index), one_of_list(text)));
            }
        }
        if all.len() > MAX_RECIPIENTS {
            faults.push((None, format!("more than {MAX_RECIPIENTS} recipients")));
        }
        if faults.is_empty() { Ok(all) } else { Err(faults) }
    }
}

fn parse(text: &str) -> Result<Mailbox, String> {
    Mailbox::parse(text).map_err(|error| error.to_string())
}

fn one_of_list(text: &str) -> Result<Mailbox, String> {
    parse(text).map_err(|message| {
        let pieces = split(text);
        let several = pieces.len() > 1 && pieces.into_iter().all(|piece| Mailbox::parse(piece).is_ok());
        if several { "is one address; give each an element of its own".to_owned() } else { message }
    })
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

impl Validate for Recipients {
    type Context = ();
    fn validate_into(&self, (): &(), parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        for (place, message) in self.people().err().into_iter().flatten() {
            let line = parent();
            let path = place.map_or_else(|| line.clone(), |index| line.join(index));
            report.append(path, garde::Error::new(message));
        }
    }
}

impl Sender {
    /// Reads the address and the name.
    pub fn mailbox(&self) -> Result<Mailbox, AddressError> {
        match self {
            Self::Text(text) => Mailbox::parse(text),
            Self::Parts(parts) => Mailbox::new(parts.name.as_deref(), Address::parse(&parts.email)?),
        }
    }
}

impl Validate for Sender {
    type Context = ();
    fn validate_into(&self, (): &(), parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        if let Err(error) = self.mailbox() {
            report.append(parent(), garde::Error::new(error.to_string()));
        }
    }
}

/// Refuses a subject that would end its header, or that is too long.
pub(crate) fn valid_subject(text: &str, (): &()) -> garde::Result {
    compose::check_subject(text).map_err(|error| garde::Error::new(error.to_string()))
}

/// Reads a Message-ID, with or without its angle brackets.
fn message_id(text: &str) -> Result<String, String> {
    let bare = text.trim_matches(' ');
    let bare = bare.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')).unwrap_or(bare);
    if compose::is_id(bare) {
        return Ok(bare.to_owned());
    }
    Err("expected a Message-ID such as <id@example.com>".to_owned())
}

/// Reads the Message-ID of the message that is answered. An id of this service is none: other servers know nothing of it.
pub fn answered_id(text: &str) -> Result<String, String> {
    let id = message_id(text)?;
    if id.contains('@') || !EmailId::looks_like(&id) {
        return Ok(id);
    }
    Err("expected a Message-ID such as <id@example.com>; to answer an email by its id, use POST …/emails/{id}/reply".to_owned())
}

pub(crate) fn valid_answered_id(text: &str, (): &()) -> garde::Result {
    answered_id(text).map(|_| ()).map_err(garde::Error::new)
}

impl References {
    /// Reads the Message-IDs.
    pub fn ids(&self) -> Result<Vec<String>, String> {
        let texts: Vec<&str> = match self {
            Self::Text(text) => text.split(' ').filter(|one| !one.is_empty()).collect(),
            Self::List(list) => list.iter().map(String::as_str).collect(),
        };
        if texts.len() > MAX_REFERENCES {
            return Err(format!("at most {MAX_REFERENCES} ids are taken"));
        }
        texts.into_iter().map(message_id).collect()
    }
}

pub(crate) fn valid_references(references: &References, (): &()) -> garde::Result {
    references.ids().map(|_| ()).map_err(garde::Error::new)
}

impl Headers {
    /// The headers, unless there are too many of them; what each is must be looked at when the message is written.
    pub fn into_list(self) -> Result<Vec<(String, String)>, String> {
        if self.0.len() > MAX_HEADERS {
            return Err(format!("at most {MAX_HEADERS} headers can be set"));
        }
        Ok(self.0.into_iter().collect())
    }
}

impl From<BTreeMap<String, String>> for Headers {
    fn from(headers: BTreeMap<String, String>) -> Self {
        Self(headers)
    }
}

impl Validate for Headers {
    type Context = ();
    fn validate_into(&self, (): &(), parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        if self.0.len() > MAX_HEADERS {
            let message = format!("at most {MAX_HEADERS} headers can be set");
            return report.append(parent(), garde::Error::new(message));
        }
        for (name, value) in &self.0 {
            if let Err(error) = compose::check_header(name, value) {
                report.append(parent().join(name.as_str()), garde::Error::new(error.to_string()));
            }
        }
    }
}

impl FileInput {
    /// What is wrong with the file by itself: the name of the field, or none, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut find = |field, fault: Option<String>| faults.extend(fault.map(|message| (field, message)));
        let is_new = self.attachment_id.is_none();
        let missing = |is_given: bool| (is_new && !is_given).then(|| "is required".to_owned());
        if !is_new && self.content.is_some() {
            find("", Some("give either content or attachment_id, not both".to_owned()));
        }
        let name = self.filename.as_deref();
        find("filename", missing(name.is_some()).or_else(|| name.and_then(name_fault)));
        let kind = self.media_type.as_deref();
        find("type", missing(kind.is_some()).or_else(|| kind.and_then(|kind| self.type_fault(kind))));
        find("content", missing(self.content.is_some()));
        find("contentId", self.content_id_fault(is_new));
        faults
    }

    fn is_inline(&self) -> bool {
        self.disposition == Some(Disposition::Inline)
    }

    fn type_fault(&self, kind: &str) -> Option<String> {
        if let Err(error) = compose::check_media_type(kind) {
            return Some(error.to_string());
        }
        (self.is_inline() && !is_inline_type(kind))
            .then(|| "an inline image is PNG, JPEG, GIF or WebP".to_owned())
    }

    fn content_id_fault(&self, is_new: bool) -> Option<String> {
        let message = match self.content_id.as_deref() {
            None if self.is_inline() && is_new => "is required",
            Some(_) if !self.is_inline() && is_new => "only a file whose disposition is inline has one",
            Some(id) if self.is_inline() && !compose::is_id(bare_content_id(id)) => {
                "must be one word of visible ASCII without angle brackets"
            }
            _ => return None,
        };
        Some(message.to_owned())
    }
}

/// Whether HTML may show a file of this type from within a message.
pub fn is_inline_type(media_type: &str) -> bool {
    INLINE_TYPES.contains(&media_type.to_ascii_lowercase().as_str())
}

/// A content id without the angle brackets that it may have.
pub fn bare_content_id(id: &str) -> &str {
    id.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')).unwrap_or(id)
}

fn name_fault(filename: &str) -> Option<String> {
    if let Err(error) = compose::check_text("file name", filename) {
        return Some(error.to_string());
    }
    (filename.trim().is_empty() || filename.len() > MAX_FILE_NAME)
        .then(|| format!("must have 1 to {MAX_FILE_NAME} bytes"))
}

impl Validate for FileInput {
    type Context = ();
    fn validate_into(&self, (): &(), parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        for (field, message) in self.faults() {
            let path = if field.is_empty() { parent() } else { parent().join(field) };
            report.append(path, garde::Error::new(message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Recipients {
        Recipients::List(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    /// rules: SEND-2
    #[test]
    fn an_element_is_one_address_and_a_text_may_hold_several() {
        let text = |text: &str| Recipients::Text(text.to_owned());
        assert_eq!(text("a@b.test, \"Doe, J\" <c@d.test>").people().unwrap().len(), 2);
        assert_eq!(list(&["a@b.test", "\"Doe, J\" <c@d.test>"]).people().unwrap().len(), 2);
        for several in ["a@b.test,evil@evil.test", "a@b.test, E <evil@evil.test>", "<a@b.test>,<c@d.test>"] {
            let faults = list(&["x@y.test", several]).people().unwrap_err();
            let message = "is one address; give each an element of its own".to_owned();
            assert_eq!(faults, [(Some(1), message)], "{several}");
        }
        for odd in ["a@b.test,", ",a@b.test", "", "a@b.test;c@d.test", "a@b.test c@d.test"] {
            assert!(list(&[odd]).people().is_err(), "{odd:?}");
        }
        let faults = list(&["", "x@y.test", "z"]).people().unwrap_err();
        assert_eq!(faults.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [Some(0), Some(2)]);
    }
}
