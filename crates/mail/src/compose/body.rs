//! The body of a composed message: text and HTML, inline images, attachments, and the encoding of each.

use bytes::Bytes;
use mail_builder::encoders::{Base64Encoder, QuotedPrintableEncoder};
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::raw::Raw;
use mail_builder::mime::{BodyPart, MimePart};
use memchr::memmem;
use sha2::{Digest, Sha256};

use super::checks::{check_text, is_id};
use super::error::ComposeError;
use super::unencoded::{File, UnencodedMessage};
use crate::message::shorten;

/// The longest line of text that is sent as it is.
const MAX_TEXT_LINE_BYTES: usize = 76;

/// The longest line of an attached message that is sent as it is.
const MAX_LINE_BYTES: usize = 998;

/// The longest file name in bytes.
const MAX_FILENAME_BYTES: usize = 255;

/// The whole body of a message.
pub(super) fn build(mail: &UnencodedMessage) -> Result<MimePart<'static>, ComposeError> {
    check_files(&mail.files)?;
    let boundaries = Boundaries::of(&mail.message_id);
    let mut shown = Vec::new();
    if let Some(text) = mail.text.as_deref() {
        shown.push(text_part("text", "text/plain", text, &boundaries)?);
    }
    // Without HTML nothing refers to an inline image, so it becomes an ordinary attachment.
    let (pictures, mut attached): (Vec<&File>, Vec<&File>) =
        mail.files.iter().partition(|file| file.content_id.is_some());
    match mail.html.as_deref() {
        Some(html) => {
            let html = text_part("html", "text/html", html, &boundaries)?;
            shown.push(with_pictures(html, &pictures, &boundaries)?);
        }
        None => attached = mail.files.iter().collect(),
    }
    if shown.is_empty() {
        shown.push(text_part("text", "text/plain", "", &boundaries)?);
    }
    let body = match shown.len() {
        1 => shown.remove(0),
        _ => multipart("alternative", shown, boundaries.name(1)),
    };
    if attached.is_empty() {
        return Ok(body);
    }
    let mut parts = vec![body];
    for file in attached {
        parts.push(file_part(file, &boundaries)?);
    }
    Ok(multipart("mixed", parts, boundaries.name(0)))
}

fn check_files(files: &[File]) -> Result<(), ComposeError> {
    for (index, file) in files.iter().enumerate() {
        check_text("file name", &file.filename)?;
        check_text("media type", &file.media_type)?;
        let Some(id) = &file.content_id else { continue };
        if !is_id(id) {
            return Err(ComposeError::Id { field: "content id".to_owned() });
        }
        let earlier = files.iter().take(index);
        if earlier.into_iter().any(|other| other.content_id.as_ref() == Some(id)) {
            return Err(ComposeError::RepeatedContentId(id.clone()));
        }
    }
    Ok(())
}

/// HTML with its inline images (RFC 2387).
fn with_pictures(
    html: MimePart<'static>,
    pictures: &[&File],
    boundaries: &Boundaries,
) -> Result<MimePart<'static>, ComposeError> {
    if pictures.is_empty() {
        return Ok(html);
    }
    let mut parts = vec![html];
    for file in pictures {
        parts.push(file_part(file, boundaries)?);
    }
    let mut related = multipart("related", parts, boundaries.name(2));
    if let Some((_, mail_builder::headers::HeaderType::ContentType(value))) = related.headers.first_mut() {
        value.attributes.push(("type".into(), "text/html".into()));
    }
    Ok(related)
}

/// One form of the text.
pub(crate) fn text_part(
    field: &str,
    media_type: &'static str,
    text: &str,
    boundaries: &Boundaries,
) -> Result<MimePart<'static>, ComposeError> {
    if text.contains('\0') {
        return Err(ComposeError::Control { field: field.to_owned(), character: '\0' });
    }
    let content = normalise_lines(text).into_bytes();
    let (encoding, encoded) = encode_text(content, boundaries);
    let content_type = ContentType::new(media_type).attribute("charset", "utf-8");
    Ok(leaf(content_type, encoding, encoded))
}

/// Normalises line ends to CRLF.
fn normalise_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + text.len() / 32 + 2);
    let mut rest = text;
    while let Some(end) = rest.find(['\r', '\n']) {
        let (line, tail) = rest.split_at(end);
        lines.push_str(line);
        lines.push_str("\r\n");
        rest = tail.strip_prefix("\r\n").or_else(|| tail.get(1..)).unwrap_or_default();
    }
    if !rest.is_empty() {
        lines.push_str(rest);
        lines.push_str("\r\n");
    }
    lines
}

/// Encodes text as is or as quoted-printable while that is short, else as base64.
pub(crate) fn encode_text(content: Vec<u8>, boundaries: &Boundaries) -> (&'static str, Vec<u8>) {
    let quotes_parts = quotes_parts(&content);
    if is_plain_text(&content) && !quotes_parts && !boundaries.occur_in(&content) {
        return ("7bit", content);
    }
    let escaped = content.iter().filter(|byte| !byte.is_ascii() || **byte == b'=').count();
    let has_controls = content.iter().any(|byte| byte.is_ascii_control() && !b"\r\n\t".contains(byte));
    let mut encoded = Vec::new();
    if escaped > content.len() / 6 || has_controls || quotes_parts {
        Base64Encoder::new().wrap_lines().encode_into(&content, &mut encoded);
        return ("base64", encoded);
    }
    QuotedPrintableEncoder::new().preserve_line_breaks().encode_into(&content, &mut encoded);
    ("quoted-printable", protect_from_lines(encoded))
}

/// Whether text looks like the beginning of a MIME part, which a lenient parser would read as one.
fn quotes_parts(content: &[u8]) -> bool {
    let mut after_dashes = false;
    content.split(|byte| *byte == b'\n').any(|line| {
        let is_header = line.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"));
        std::mem::replace(&mut after_dashes, line.starts_with(b"--")) && is_header
    })
}

/// Whether text survives every server unencoded: short lines of visible ASCII without trailing blanks, and no mbox
/// "From " line.
fn is_plain_text(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').all(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.len() <= MAX_TEXT_LINE_BYTES
            && line.iter().all(|byte| *byte == b'\t' || *byte == b' ' || byte.is_ascii_graphic())
            && !line.ends_with(b" ")
            && !line.ends_with(b"\t")
            && !line.starts_with(b"From ")
    })
}

/// Escapes the first character of "From " lines, which some programs change because they separate messages in mbox
/// files.
fn protect_from_lines(encoded: Vec<u8>) -> Vec<u8> {
    if !encoded.starts_with(b"From ") && memmem::find(&encoded, b"\nFrom ").is_none() {
        return encoded;
    }
    let mut output = Vec::with_capacity(encoded.len() + 64);
    for mut line in encoded.split_inclusive(|byte| *byte == b'\n') {
        while let Some(rest) = line.strip_prefix(b"From ") {
            output.extend_from_slice(b"=46rom ");
            // The line has grown by two bytes and may have to be broken again.
            if line.len() > MAX_TEXT_LINE_BYTES {
                output.extend_from_slice(b"=\r\n");
                line = rest;
            } else {
                output.extend_from_slice(rest);
                line = b"";
            }
        }
        output.extend_from_slice(line);
    }
    output
}

/// A file as a part.
fn file_part(file: &File, boundaries: &Boundaries) -> Result<MimePart<'static>, ComposeError> {
    let declared = media_type(&file.media_type)?;
    let (media_type, encoding, encoded) = match declared.split_once('/') {
        // Messages may not be encoded (RFC 2046, section 5.2.1); one that needs encoding is attached as a plain file.
        Some(("message", _)) if is_plain_message(&file.bytes) && !boundaries.occur_in(&file.bytes) => {
            (declared, "7bit", file.bytes.to_vec())
        }
        Some(("message" | "multipart", _)) => {
            ("application/octet-stream".to_owned(), "base64", base64(&file.bytes))
        }
        _ => (declared, "base64", base64(&file.bytes)),
    };
    let name = shorten(&file.filename, MAX_FILENAME_BYTES);
    let content_type = ContentType::new(media_type).attribute("name", name.clone());
    let kind = if file.content_id.is_some() { "inline" } else { "attachment" };
    let disposition = ContentType::new(kind).attribute("filename", name);
    let mut part = leaf(content_type, encoding, encoded);
    part.headers.push(("Content-Disposition".into(), disposition.into()));
    if let Some(id) = &file.content_id {
        part.headers.push(("Content-ID".into(), Raw::new(format!("<{id}>")).into()));
    }
    Ok(part)
}

fn base64(bytes: &Bytes) -> Vec<u8> {
    let mut encoded = Vec::new();
    Base64Encoder::new().wrap_lines().encode_into(bytes, &mut encoded);
    encoded
}

/// A media type in lower case, without its parameters.
pub(super) fn media_type(text: &str) -> Result<String, ComposeError> {
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |token: &str| {
        (1..=127).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match essence.split_once('/') {
        Some((kind, sub)) if is_token(kind) && is_token(sub) => Ok(essence),
        _ => Err(ComposeError::MediaType(text.to_owned())),
    }
}

/// Whether a message can be attached as it is.
fn is_plain_message(bytes: &[u8]) -> bool {
    let is_ascii = bytes.iter().all(|byte| byte.is_ascii() && *byte != 0);
    is_ascii
        && bytes.split(|byte| *byte == b'\n').all(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            line.len() <= MAX_LINE_BYTES && !line.contains(&b'\r')
        })
        && memchr::memchr_iter(b'\n', bytes).all(|at| at > 0 && bytes.get(at - 1) == Some(&b'\r'))
        && !bytes.ends_with(b"\r")
}

pub(crate) fn leaf(
    content_type: ContentType<'static>,
    encoding: &'static str,
    content: Vec<u8>,
) -> MimePart<'static> {
    MimePart {
        headers: vec![
            ("Content-Type".into(), content_type.into()),
            ("Content-Transfer-Encoding".into(), Raw::new(encoding).into()),
        ],
        contents: BodyPart::Binary(content.into()),
    }
}

pub(crate) fn multipart(kind: &str, parts: Vec<MimePart<'static>>, boundary: String) -> MimePart<'static> {
    let content_type = ContentType::new(format!("multipart/{kind}")).attribute("boundary", boundary);
    MimePart::new(content_type, parts)
}

/// The MIME boundaries, the same for the same message.
///
/// They contain a pair of bytes that neither base64 nor quoted-printable can contain; unencoded content is searched.
pub(crate) struct Boundaries {
    stem: String,
}

impl Boundaries {
    pub(crate) fn of(message_id: &str) -> Self {
        let digest = Sha256::digest(message_id.as_bytes());
        let number = digest.iter().take(12).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        Self { stem: format!("=_{number:024x}") }
    }

    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}_{number}", self.stem)
    }

    fn occur_in(&self, content: &[u8]) -> bool {
        memmem::find(content, self.stem.as_bytes()).is_some()
    }
}
