//! The text of a document: what a reader would see, whatever its format.

mod pdf;

use std::fmt::Write as _;

use bytes::Bytes;
use mail::{
    message,
    safe_text::{self, SafeText},
};
use model::knowledge::DocumentType;

pub(crate) use self::pdf::ExtractError;

/// Bytes of HTML per piece: what the safe-text module takes.
const HTML_PIECE_BYTES: usize = 1 << 20;

/// Maximum bytes of a document's text.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// How many times larger than the document its text may be: more was not written by a person. A small document may
/// have this much in any case, since a page of HTML or PDF can be short and repetitive.
const MAX_GROWTH: usize = 20;
const MIN_TEXT_LIMIT_BYTES: usize = 64 << 10;

/// Extracts the text of a document. Takes as long as the document is large: not for an async thread.
pub(crate) fn text(kind: DocumentType, bytes: &Bytes) -> Result<String, ExtractError> {
    let max_bytes = max_text(bytes.len());
    let text = match kind {
        DocumentType::Text | DocumentType::Markdown => SafeText::from_plain(&decode(bytes)?).into_string(),
        DocumentType::Html => html(&decode(bytes)?, max_bytes),
        DocumentType::Pdf => pdf::text(bytes, max_bytes)?,
        DocumentType::Eml => message_text(bytes)?,
    };
    if text.len() > max_bytes {
        return Err(too_much(max_bytes));
    }
    if text.trim().is_empty() {
        return Err("This document has no text.".to_owned());
    }
    Ok(text)
}

/// Maximum bytes of text for a document of this size.
fn max_text(size: usize) -> usize {
    size.saturating_mul(MAX_GROWTH).clamp(MIN_TEXT_LIMIT_BYTES, MAX_TEXT_BYTES)
}

/// The error for more text than that.
fn too_much(max_bytes: usize) -> ExtractError {
    if max_bytes == MAX_TEXT_BYTES {
        return format!("The document has more than {} MB of text.", MAX_TEXT_BYTES >> 20);
    }
    format!("The document has more text than {MAX_GROWTH} times its size.")
}

/// UTF-8, or UTF-16 where a byte order mark says so.
fn decode(bytes: &[u8]) -> Result<String, ExtractError> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let (units, _) = bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|unit| read(*unit)).collect();
        String::from_utf16(&units).map_err(|_| "The text is not valid UTF-16.".to_owned())
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                format!(
                    "The text is not valid UTF-8: byte {} is not part of a character.",
                    error.valid_up_to()
                )
            })?;
            Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
        }
    }
}

/// The text of HTML, piece by piece, until the limit is exceeded: each piece ends after an element, if one ends
/// there.
fn html(html: &str, max_bytes: usize) -> String {
    let mut text = String::new();
    let mut rest = html;
    while !rest.is_empty() && text.len() <= max_bytes {
        let end = if rest.len() <= HTML_PIECE_BYTES { rest.len() } else { piece_end(rest) };
        let (piece, behind) = rest.split_at(end);
        text.push_str(SafeText::from_html(piece).as_str());
        text.push('\n');
        rest = behind;
    }
    text
}

fn piece_end(html: &str) -> usize {
    let bound = (0..=HTML_PIECE_BYTES).rev().find(|at| html.is_char_boundary(*at)).unwrap_or(html.len());
    let ends = ["</p>", "</div>", "</li>", "</tr>", "\n"];
    let found = ends.iter().filter_map(|end| html[..bound].rfind(end).map(|at| at + end.len())).max();
    found.filter(|at| *at > 0).unwrap_or(bound)
}

fn message_text(bytes: &[u8]) -> Result<String, ExtractError> {
    let read = message::read(bytes);
    let body = safe_text::body(read.text.as_deref(), read.html.as_deref());
    let line = |text: &str| SafeText::line(text).into_string();
    let mut text = String::new();
    for (name, value) in [
        ("Subject", line(&read.subject)),
        (
            "From",
            read.from
                .as_ref()
                .map(|from| line(&crate::inbox::inbound::display_form(from)))
                .unwrap_or_default(),
        ),
        ("To", line(&crate::inbox::inbound::people(read.to.iter()))),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    if text.is_empty() && !body.text.as_str().contains(char::is_alphanumeric) {
        return Err("This is not an email.".to_owned());
    }
    text.push('\n');
    text.push_str(body.text.as_str());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_kinds() {
        let read = |kind, bytes: &[u8]| text(kind, &Bytes::copy_from_slice(bytes));
        assert_eq!(read(DocumentType::Text, "\u{feff}Grüße".as_bytes()).unwrap(), "Grüße");
        assert_eq!(read(DocumentType::Text, &[0xff, 0xfe, b'h', 0, b'i', 0]).unwrap(), "hi");
        let page = b"<html><style>p{}</style><p>One</p><p hidden>two</p><p>three</p>";
        let shown = read(DocumentType::Html, page).unwrap();
        assert!(shown.contains("One") && shown.contains("three") && !shown.contains("two"), "{shown}");
        let mail = b"From: Ada <ada@example.org>\r\nSubject: Tea\r\n\r\nAt five.\r\n";
        let shown = read(DocumentType::Eml, mail).unwrap();
        assert_eq!(shown, "Subject: Tea\nFrom: Ada <ada@example.org>\n\nAt five.");
    }

    // rules: MEMORY-13
    #[test]
    fn text_is_bounded_by_its_size_and_by_that_of_the_document() {
        assert_eq!(
            [0, 100, 4 << 10, 50_000, 10 << 20].map(max_text),
            [65_536, 65_536, 81_920, 1_000_000, MAX_TEXT_BYTES]
        );
        let long = Bytes::from("word ".repeat(MAX_TEXT_BYTES / 5 + 1));
        assert_eq!(text(DocumentType::Text, &long).unwrap_err(), "The document has more than 2 MB of text.");
        let fits = Bytes::from("word ".repeat(MAX_TEXT_BYTES / 5 - 1));
        assert!(text(DocumentType::Text, &fits).is_ok());
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (kind, bytes) in [
            (DocumentType::Text, b"\xff\xff\xff".as_slice()),
            (DocumentType::Text, b" \n "),
            (DocumentType::Html, b"<script>x</script>"),
            (DocumentType::Pdf, b"no PDF"),
            (DocumentType::Pdf, b"%PDF-1.4\n%%EOF"),
            (DocumentType::Eml, b"\0\0"),
        ] {
            assert!(!text(kind, &Bytes::copy_from_slice(bytes)).unwrap_err().is_empty());
        }
    }

    #[test]
    fn long_html_is_read_to_its_end() {
        let page = format!("{}<p>the end</p>", "<p>some words of a paragraph</p>\n".repeat(60_000));
        assert!(html(&page, usize::MAX).contains("the end"));
    }
}
