//! File names: what the message declares, made safe for any file system and any screen.

/// The longest name in bytes.
const MAX_NAME: usize = 255;

/// Device names that Windows reserves, with any extension.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
    "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Cleans a declared name; nothing when nothing is left of it.
pub(super) fn clean(declared: &str) -> Option<String> {
    let last = declared.rsplit(['/', '\\']).find(|part| !part.trim_matches(['.', ' ']).is_empty())?;
    let visible: String = last
        .chars()
        .filter(|c| !is_hidden(*c))
        .map(|c| if matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*') { '_' } else { c })
        .collect();
    let mut name = super::encoded_words::one_line(&visible);
    name = name.trim_start_matches([' ', '~']).trim_end_matches(['.', ' ']).to_owned();
    let stem = name.split('.').next().unwrap_or_default().trim().to_ascii_lowercase();
    if DEVICES.contains(&stem.as_str()) {
        name.insert(0, '_');
    }
    let name = shorten(&name, MAX_NAME);
    let is_nothing = name.trim_matches(['.', ' ']).is_empty();
    (!is_nothing).then_some(name)
}

/// Whether a character is invisible or changes the text direction.
pub(crate) fn is_hidden(c: char) -> bool {
    let is_format = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    is_format || (c.is_control() && !c.is_whitespace())
}

/// Shortens a name but keeps its extension.
pub(crate) fn shorten(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    let ending = name
        .rfind('.')
        .and_then(|dot| name.get(dot..))
        .filter(|ending| ending.len() <= 20)
        .unwrap_or_default();
    let mut end = most - ending.len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ending}", name.get(..end).unwrap_or_default().trim_end())
}

/// A name for a part that has none.
pub(super) fn invent(media_type: &str, number: usize) -> String {
    let (kind, sub) = media_type.split_once('/').unwrap_or(("file", ""));
    let ending = match media_type {
        "text/plain"
        | "message/delivery-status"
        | "message/disposition-notification"
        | "message/feedback-report"
        | "text/rfc822-headers" => "txt",
        "text/html" => "html",
        "text/calendar" => "ics",
        "text/csv" => "csv",
        "text/vcard" | "text/x-vcard" => "vcf",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "image/png" | "image/gif" | "image/webp" | "image/bmp" | "image/tiff" | "application/pdf"
        | "application/zip" | "application/json" => sub,
        "application/pkcs7-signature" | "application/x-pkcs7-signature" => "p7s",
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => "p7m",
        "application/pgp-signature" | "application/pgp-encrypted" => "asc",
        "application/ms-tnef" => "dat",
        "message/rfc822" | "message/global" => "eml",
        _ => "bin",
    };
    let stem = match kind {
        "image" | "audio" | "video" | "message" => kind,
        _ if ending == "ics" => "invite",
        _ => "file",
    };
    format!("{stem}-{number}.{ending}")
}
