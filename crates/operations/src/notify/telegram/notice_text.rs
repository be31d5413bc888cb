//! What notices look like: a line by the service, what others wrote in a block in which nothing can be tapped, and buttons.

use model::Timestamp;
use serde_json::{Value, json};

/// Characters of a message's text, and of its sender and subject, in a notice.
pub(super) const MAX_TEXT_CHARS: usize = 1_500;
pub(super) const MAX_LINE_CHARS: usize = 200;

/// A notice as the bot API takes it.
///
/// What comes from messages is quoted in a preformatted block: nothing in it can be tapped, neither a link nor one of the
/// bot's commands. `buttons` are pairs of a label and what pressing says.
pub(super) fn notice(
    chat: i64,
    (head, quoted, tail): (&str, &str, &str),
    buttons: &[(&str, String)],
) -> Value {
    let mut entities = Vec::new();
    if !quoted.is_empty() {
        entities.push(json!({ "type": "pre", "offset": units(head), "length": units(quoted) }));
    }
    let mut body = json!({
        "chat_id": chat,
        "text": format!("{head}{quoted}{tail}"),
        "entities": entities,
        "link_preview_options": { "is_disabled": true },
    });
    if !buttons.is_empty() {
        let button = |(label, data): &(&str, String)| json!({ "text": label, "callback_data": data });
        let row: Vec<Value> = buttons.iter().map(button).collect();
        body["reply_markup"] = json!({ "inline_keyboard": [row] });
    }
    body
}

/// The length of a text as the bot API counts it.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// At most so many characters, with an ellipsis for the rest.
pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A time to the minute, in UTC.
pub(super) fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}
