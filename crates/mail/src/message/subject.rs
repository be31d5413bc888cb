//! The subject that a conversation shares, whatever its mails put around it.

use unicode_normalization::UnicodeNormalization;

/// The longest subject that is looked at, in characters.
const MAX_CHARS: usize = 998;

/// What mail programs put before a subject to say that it answers or passes on, in many languages.
const MARKS: [&str; 51] = [
    "re",
    "r",
    "fw",
    "fwd",
    "aw",
    "antw",
    "wg",
    "sv",
    "vs",
    "vb",
    "vl",
    "vid",
    "bls",
    "tr",
    "rv",
    "res",
    "enc",
    "ref",
    "rif",
    "i",
    "fs",
    "odp",
    "pd",
    "ynt",
    "ilt",
    "yml",
    "atb",
    "bal",
    "továbbítás",
    "válasz",
    "doorst",
    "htg",
    "sv.",
    "απ",
    "πρθ",
    "σχετ",
    "ответ",
    "отв",
    "пересл",
    "回复",
    "回覆",
    "答复",
    "转发",
    "轉寄",
    "轉發",
    "返信",
    "転送",
    "답장",
    "회신",
    "전달",
    "trả lời",
];

/// A subject without `Re:`, `Fwd:`, `AW:`, `[list]` and their like, in one form for comparing; empty when nothing is left.
pub fn base_subject(subject: &str) -> String {
    let folded: String = subject.chars().take(MAX_CHARS).nfkc().collect::<String>().to_lowercase();
    let folded = super::words::one_line(&folded);
    let mut rest = folded.as_str();
    loop {
        let before = rest.len();
        rest = rest.trim();
        rest = without_mark(rest);
        rest = without_tag(rest);
        rest = rest.strip_suffix("(fwd)").unwrap_or(rest).trim();
        if rest.len() == before {
            return rest.to_owned();
        }
    }
}

/// Takes one mark such as `re:` or `re[2]:` away.
fn without_mark(text: &str) -> &str {
    leading_mark(text).map_or(text, |(_, rest)| rest)
}

/// The mark that a subject in lower case begins with, without its count and colon, and what follows it.
pub(crate) fn leading_mark(text: &str) -> Option<(&str, &str)> {
    let (mark, rest) = text.split_once(':')?;
    let mark = mark.trim();
    let mark =
        mark.split_once(['[', '(']).map_or(mark, |(word, count)| if is_count(count) { word } else { mark });
    let mark = mark.split_once('^').map_or(mark, |(word, count)| if is_count(count) { word } else { mark });
    let mark = mark.trim();
    MARKS.contains(&mark).then_some((mark, rest))
}

/// Whether a text is the number behind a mark.
fn is_count(text: &str) -> bool {
    let digits = text.trim_end_matches([']', ')']).trim();
    !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Takes a list's tag such as `[users]` away, unless it is all there is.
fn without_tag(text: &str) -> &str {
    let Some((tag, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else { return text };
    let is_tag = tag.len() <= 60 && !tag.contains('[') && !rest.trim().is_empty();
    if is_tag { rest } else { text }
}
