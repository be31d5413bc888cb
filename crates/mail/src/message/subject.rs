//! The base subject of a thread, without the prefixes that mail clients add.

use unicode_normalization::UnicodeNormalization;

/// The longest subject that is read, in characters.
const MAX_CHARS: usize = 998;

/// Prefixes of replies and forwards, in many languages.
const PREFIXES: [&str; 51] = [
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

/// A subject without `Re:`, `Fwd:`, `AW:`, `[list]` and the like, normalised for comparison; may be empty.
pub fn base_subject(subject: &str) -> String {
    let folded: String = subject.chars().take(MAX_CHARS).nfkc().collect::<String>().to_lowercase();
    let folded = super::encoded_words::one_line(&folded);
    let mut rest = folded.as_str();
    loop {
        let before = rest.len();
        rest = rest.trim();
        rest = without_prefix(rest);
        rest = without_tag(rest);
        rest = rest.strip_suffix("(fwd)").unwrap_or(rest).trim();
        if rest.len() == before {
            return rest.to_owned();
        }
    }
}

/// Removes one prefix such as `re:` or `re[2]:`.
fn without_prefix(text: &str) -> &str {
    leading_prefix(text).map_or(text, |(_, rest)| rest)
}

/// The prefix of a subject in lower case, without its count and colon, and what follows it.
pub(crate) fn leading_prefix(text: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = text.split_once(':')?;
    let prefix = prefix.trim();
    let prefix = prefix
        .split_once(['[', '('])
        .map_or(prefix, |(word, count)| if is_count(count) { word } else { prefix });
    let prefix =
        prefix.split_once('^').map_or(prefix, |(word, count)| if is_count(count) { word } else { prefix });
    let prefix = prefix.trim();
    PREFIXES.contains(&prefix).then_some((prefix, rest))
}

/// Whether a text is the count after a prefix.
fn is_count(text: &str) -> bool {
    let digits = text.trim_end_matches([']', ')']).trim();
    !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes a list tag such as `[users]`, unless nothing else is left.
fn without_tag(text: &str) -> &str {
    let Some((tag, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else { return text };
    let is_tag = tag.len() <= 60 && !tag.contains('[') && !rest.trim().is_empty();
    if is_tag { rest } else { text }
}
