//! The MIME parts of a report: few levels, few parts, a bounded prefix.
//!
//! Deliberately no full MIME parser. Attached messages are not opened, so nesting costs nothing.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use memchr::memchr;

use super::fields::{self, Field};

/// Bytes of a message that are read; reports return at most the headers and some text.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Levels of multiparts that are opened.
const MAX_DEPTH: usize = 3;

/// Parts that are read.
const MAX_PARTS: usize = 50;

/// Bytes of one part that are decoded.
const MAX_DECODED_BYTES: usize = 256 * 1024;

/// One part that is no multipart.
pub(super) struct Part<'a> {
    /// Its type in lower case, without parameters.
    pub(super) media_type: String,
    headers: Vec<Field>,
    body: &'a [u8],
}

impl Part<'_> {
    /// The value of a header, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The beginning of the part without its transfer encoding.
    pub(super) fn decoded(&self) -> Vec<u8> {
        let body = self.body.get(..MAX_DECODED_BYTES).unwrap_or(self.body);
        let encoding =
            self.header("content-transfer-encoding").unwrap_or_default().trim().to_ascii_lowercase();
        let decoded = match encoding.as_str() {
            "base64" => base64_decode(body).map(Cow::Owned),
            "quoted-printable" => quoted_printable_decode(body).map(Cow::Owned),
            _ => None,
        };
        // Undecodable content is usually plain text with a wrong label.
        decoded.unwrap_or(Cow::Borrowed(body)).into_owned()
    }
}

/// All parts of a message in their order; the first one also carries the headers of the message.
pub(super) fn of(raw: &[u8]) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let bounded = raw.get(..MAX_BYTES).unwrap_or(raw);
    let (headers, body_start) = fields::headers(bounded);
    let top =
        Part { media_type: String::new(), headers, body: bounded.get(body_start..).unwrap_or_default() };
    let (media_type, boundary) = content_type(&top.headers);
    if let Some(boundary) = boundary.filter(|_| media_type.starts_with("multipart/")) {
        let body = top.body;
        found.push(top);
        add_parts(&mut found, body, &boundary, 1);
    } else {
        found.push(Part { media_type, ..top });
    }
    found
}

fn add_parts<'a>(found: &mut Vec<Part<'a>>, body: &'a [u8], boundary: &str, depth: usize) {
    for piece in split(body, boundary) {
        if found.len() > MAX_PARTS {
            return;
        }
        let (headers, body_start) = fields::headers(piece);
        let inner = piece.get(body_start..).unwrap_or_default();
        match content_type(&headers) {
            (media_type, Some(boundary)) if media_type.starts_with("multipart/") && depth < MAX_DEPTH => {
                add_parts(found, inner, &boundary, depth + 1);
            }
            (media_type, _) => found.push(Part { media_type, headers, body: inner }),
        }
    }
}

/// The pieces between the boundary lines.
fn split<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut begin = None;
    let mut at = 0;
    while at < body.len() && pieces.len() < MAX_PARTS {
        let rest = body.get(at..).unwrap_or_default();
        let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or_default().trim_ascii_end();
        let after = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary.as_bytes()));
        if let Some(after) = after.filter(|after| after.is_empty() || *after == b"--") {
            pieces.extend(begin.and_then(|begin| body.get(begin..at)));
            begin = after.is_empty().then_some(at + length);
            if !after.is_empty() {
                return pieces;
            }
        }
        at += length;
    }
    // A truncated report still has a last part.
    pieces.extend(begin.and_then(|begin| body.get(begin..)));
    pieces
}

fn find<'a>(headers: &'a [Field], name: &str) -> Option<&'a str> {
    headers.iter().find(|field| field.name == name).map(|field| field.value.as_str())
}

/// The type in lower case and the boundary, if there is one.
fn content_type(headers: &[Field]) -> (String, Option<String>) {
    let value = find(headers, "content-type").unwrap_or("text/plain");
    let (media_type, parameters) = value.split_once(';').unwrap_or((value, ""));
    (media_type.trim().to_ascii_lowercase(), boundary(parameters))
}

/// The boundary parameter; semicolons may be quoted.
fn boundary(parameters: &str) -> Option<String> {
    let mut rest = parameters;
    while !rest.is_empty() {
        let (name, value) = rest.trim_start_matches([';', ' ']).split_once('=')?;
        let value = value.trim_start();
        let (text, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            let text = text.trim_end();
            return (!text.is_empty()).then(|| text.to_owned());
        }
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(';') {
            rest = rest.split_once(';').map_or("", |(_, after)| after);
        }
    }
    None
}
