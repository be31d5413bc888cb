//! Charsets: any bytes become valid text, with a replacement character for what cannot be decoded.
//!
//! UTF-7 is not decoded: it hides markup from programs that inspect the bytes.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Decodes bytes by the charset that the message names.
pub(super) fn decode(bytes: &[u8], label: Option<&str>) -> String {
    let label = label.map(|label| label.trim().trim_matches('\'').to_ascii_lowercase()).unwrap_or_default();
    let text = match label.as_str() {
        "" | "us-ascii" | "ascii" | "ansi_x3.4-1968" | "unknown" | "unknown-8bit" | "x-unknown"
        | "default" => guess(bytes),
        "utf-16" | "utf16" | "ucs-2" | "iso-10646-ucs-2" => utf_16(bytes),
        "cp850" | "ibm850" | "ibm-850" => by_table(bytes, b"ibm850"),
        _ => match Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(encoding) => encoding.decode_with_bom_removal(bytes).0.into_owned(),
            None => String::from_utf8_lossy(bytes).into_owned(),
        },
    };
    without_nul(text)
}

/// Text without a declared charset: UTF-8 if it is valid, else Windows-1252.
pub(super) fn guess(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => without_nul(text.to_owned()),
        Err(_) => without_nul(WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()),
    }
}

/// The charset that a page names at its beginning, where the message names none.
pub(super) fn of_page(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes)).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset=")?;
    let label: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .collect();
    // A page that could be read bytewise up to here is not UTF-16, whatever it declares.
    Some(label).filter(|label| !label.is_empty() && !label.starts_with("utf-16"))
}

/// UTF-16 in the byte order of its BOM; without one, in the order that gives Latin text.
fn utf_16(bytes: &[u8]) -> String {
    let high_zeros = bytes.iter().step_by(2).take(512).filter(|&&byte| byte == 0).count();
    let low_zeros = bytes.iter().skip(1).step_by(2).take(512).filter(|&&byte| byte == 0).count();
    let encoding = match bytes {
        [0xfe, 0xff, ..] => UTF_16BE,
        [0xff, 0xfe, ..] => UTF_16LE,
        _ if high_zeros > low_zeros => UTF_16BE,
        _ => UTF_16LE,
    };
    encoding.decode_with_bom_removal(bytes).0.into_owned()
}

/// The few single-byte charsets that the web does not know.
fn by_table(bytes: &[u8], label: &[u8]) -> String {
    mail_parser::decoders::charsets::map::charset_decoder(label)
        .map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), |decoder| decoder(bytes))
}

/// PostgreSQL refuses NUL in text.
fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
