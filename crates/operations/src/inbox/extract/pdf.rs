//! The text of a PDF, page by page. A PDF is untrusted: nesting, decompressed size, pages, text and time are bounded,
//! and a panic in the parser fails the document, not the process.

use std::{
    collections::BTreeMap,
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use lopdf::{Document, Encoding, LoadOptions, Object, content::Content};

/// Pages that are read.
const MAX_PAGES: usize = 5_000;
/// Bytes that one stream may decompress to.
const MAX_UNPACKED_BYTES: usize = 16 << 20;
/// Bytes of the content stream of one page.
const MAX_DRAWING_BYTES: usize = 4 << 20;
/// Bytes of one string: what the format allows.
const MAX_STRING_BYTES: usize = 32 << 10;
/// Maximum time for a document.
const PARSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer to wait for a parser that does not return.
const PARSE_GRACE: Duration = Duration::from_secs(10);
/// The stack of the parser, which is recursive.
const STACK_BYTES: usize = 32 << 20;
/// A gap between characters of at least this width, in thousandths of the font size, is a space.
const MIN_SPACE_WIDTH: f32 = 180.0;

/// Why a document has no text, for its owner.
pub(crate) type ExtractError = String;

/// The text of a PDF; reading stops at most one page after the limit.
pub(super) fn text(bytes: &Bytes, max_bytes: usize) -> Result<String, ExtractError> {
    let beginning = &bytes[..bytes.len().min(1024)];
    if memchr::memmem::find(beginning, b"%PDF-").is_none() {
        return Err("This is not a PDF.".to_owned());
    }
    let (answer, answered) = mpsc::channel();
    let bytes = bytes.clone();
    let run = move || {
        // The receiver may be gone.
        let _ = answer.send(read(&bytes, max_bytes));
    };
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(run).map_err(|error| error.to_string())?;
    let text = match answered.recv_timeout(PARSE_TIMEOUT + PARSE_GRACE) {
        Ok(read) => read?,
        // The parser panicked, because of the document.
        Err(RecvTimeoutError::Disconnected) => return Err("The PDF is damaged.".to_owned()),
        Err(RecvTimeoutError::Timeout) => return Err("The PDF takes too long to read.".to_owned()),
    };
    if text.trim().is_empty() {
        return Err("This PDF has no text; scanned pages are not read.".to_owned());
    }
    Ok(text)
}

fn read(bytes: &[u8], max_bytes: usize) -> Result<String, ExtractError> {
    let deadline = Instant::now() + PARSE_TIMEOUT;
    let options = LoadOptions { max_decompressed_size: Some(MAX_UNPACKED_BYTES), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("The PDF cannot be read: {}.", short(&error)))?;
    if document.is_encrypted() {
        return Err("The PDF is protected by a password.".to_owned());
    }
    let mut text = String::new();
    for (number, page) in document.page_iter().take(MAX_PAGES).enumerate() {
        if Instant::now() > deadline {
            return Err(format!("The PDF takes too long to read; page {} was reached.", number + 1));
        }
        // An unreadable page does not spoil the others.
        if let Ok(of_page) = page_text(&document, page, max_bytes, deadline) {
            text.push_str(&of_page);
            text.push('\n');
        }
        if text.len() > max_bytes {
            // The caller refuses it for that.
            break;
        }
    }
    // Whatever a font maps to, the text gets no control characters.
    Ok(mail::safe_text::SafeText::from_plain(&text).into_string())
}

fn short(error: &lopdf::Error) -> String {
    error.to_string().chars().filter(|character| !character.is_control()).take(120).collect()
}

fn page_text(
    document: &Document,
    page: lopdf::ObjectId,
    max_bytes: usize,
    deadline: Instant,
) -> lopdf::Result<String> {
    let fonts = document.get_page_fonts(page)?;
    let encodings: BTreeMap<Vec<u8>, Encoding<'_>> = fonts
        .into_iter()
        .filter_map(|(name, font)| {
            Some((name, font.get_font_encoding_with_limit(document, MAX_UNPACKED_BYTES).ok()?))
        })
        .collect();
    let drawing = document.get_page_content_with_limit(page, MAX_DRAWING_BYTES)?;
    let content = Content::decode(&drawing)?;
    let mut writer = Writer { encodings: &encodings, font: None, text: String::new(), line: 0.0 };
    for (number, operation) in content.operations.iter().enumerate() {
        let is_late = number % 1000 == 0 && Instant::now() > deadline;
        if is_late || writer.text.len() > max_bytes {
            break;
        }
        writer.draw(&operation.operator, &operation.operands);
    }
    Ok(writer.text)
}

/// Follows the content stream of a page as far as its text goes.
struct Writer<'a> {
    encodings: &'a BTreeMap<Vec<u8>, Encoding<'a>>,
    font: Option<&'a Encoding<'a>>,
    text: String,
    /// The vertical position of the current line.
    line: f32,
}

impl Writer<'_> {
    fn draw(&mut self, operator: &str, operands: &[Object]) {
        let number =
            |at: usize| operands.get(at).and_then(|object| object.as_float().ok()).unwrap_or_default();
        match operator {
            "Tf" => {
                let name = operands.first().and_then(|object| object.as_name().ok());
                self.font = name.and_then(|name| self.encodings.get(name));
            }
            "Td" | "TD" if number(1).abs() > f32::EPSILON => self.end_line(),
            "Td" | "TD" => self.space(),
            "Tm" => {
                if (number(5) - self.line).abs() > 1.0 {
                    self.end_line();
                } else {
                    self.space();
                }
                self.line = number(5);
            }
            "T*" | "ET" => self.end_line(),
            "Tj" => operands.iter().for_each(|object| self.show(object)),
            "'" | "\"" => {
                self.end_line();
                operands.last().into_iter().for_each(|object| self.show(object));
            }
            "TJ" => {
                for object in operands.iter().filter_map(|object| object.as_array().ok()).flatten() {
                    if object.as_float().is_ok_and(|gap| gap < -MIN_SPACE_WIDTH) {
                        self.space();
                    } else {
                        self.show(object);
                    }
                }
            }
            _ => {}
        }
    }

    fn show(&mut self, object: &Object) {
        if let (Some(font), Ok(bytes)) = (self.font, object.as_str())
            // A font can map a byte to many characters.
            && let Ok(text) = Document::decode_text(font, &bytes[..bytes.len().min(MAX_STRING_BYTES)])
        {
            self.text.push_str(&text);
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}
