//! Limits on the size of tool results, so that one call cannot fill an agent's context.
//!
//! A result that is too long stays valid JSON: long texts are truncated, then lists, and `result_cut` says what is
//! missing.

use serde_json::{Map, Value, json};

/// Limits in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// One body of a message; `None` if only the total counts.
    pub(crate) body: Option<usize>,
    /// The whole result, including both forms of its value.
    pub(crate) result: usize,
}

/// What a result has around its value: figures, flags and punctuation.
const FRAME_CHARS: usize = 1_500;
/// The lengths that texts are truncated to, step by step, before lists are.
const TEXT_LIMITS_CHARS: [usize; 5] = [8_000, 4_000, 2_000, 1_000, 400];
/// A truncated cursor would be useless.
const UNCUT_FIELDS: [&str; 4] = ["cursor", "next_cursor", "nextCursor", "confirmationToken"];

/// The value within the budget, as JSON and as text.
pub(crate) fn fit(mut value: Value, budget: Budget) -> (Value, String) {
    if let Some(max) = budget.body {
        cut_bodies(&mut value, max);
    }
    let max = budget.result.saturating_sub(FRAME_CHARS);
    let text = value.to_string();
    if length(&text) <= max {
        return (value, text);
    }
    let value = cut(value, max);
    let text = value.to_string();
    (value, text)
}

/// The characters of a value: once as JSON, once as a string inside JSON.
fn length(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
    2 * text.chars().count() + escapes
}

fn cut(mut value: Value, max: usize) -> Value {
    let before = value.to_string().chars().count();
    let mut shortest = None;
    for bound in TEXT_LIMITS_CHARS {
        let texts = cut_texts(&mut value, bound);
        if texts > 0 {
            shortest = Some(bound);
        }
        let noted = with_note(&value, before, shortest, &[]);
        if length(&noted.to_string()) <= max {
            return noted;
        }
    }
    let mut lists: Vec<(String, usize, usize)> = Vec::new();
    while let Some(path) = largest_list(&value) {
        let Some(items) = value.pointer_mut(&path).and_then(Value::as_array_mut) else { break };
        let had = items.len();
        items.truncate(had / 2);
        match lists.iter_mut().find(|(known, ..)| *known == path) {
            Some((_, kept, _)) => *kept = had / 2,
            None => lists.push((path, had / 2, had)),
        }
        let noted = with_note(&value, before, shortest, &lists);
        if length(&noted.to_string()) <= max {
            return noted;
        }
    }
    // An object with thousands of short fields; none of ours looks like that.
    with_note(&json!({}), before, None, &[(String::new(), 0, 1)])
}

/// The value with a note about what is missing.
fn with_note(value: &Value, before: usize, texts: Option<usize>, lists: &[(String, usize, usize)]) -> Value {
    let mut note = json!({
        "original_characters": before,
        "fix": "Ask for less: a smaller limit, metadata_only, max_body_chars, or single items by their id.",
    });
    if let Some(texts) = texts {
        note["texts_cut_at"] = texts.into();
    }
    if !lists.is_empty() {
        let lists = lists.iter();
        note["lists"] =
            lists.map(|(path, kept, of)| json!({ "path": path, "kept": kept, "of": of })).collect();
    }
    let mut object = match value {
        Value::Object(object) => object.clone(),
        other => Map::from_iter([("items".to_owned(), other.clone())]),
    };
    object.insert("result_cut".to_owned(), note);
    Value::Object(object)
}

/// Truncates the bodies of messages, with the same flags as the API.
fn cut_bodies(value: &mut Value, max: usize) {
    match value {
        Value::Object(object) => {
            cut_body(object, max);
            object.values_mut().for_each(|inner| cut_bodies(inner, max));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_bodies(item, max)),
        _ => {}
    }
}

fn cut_body(object: &mut Map<String, Value>, max: usize) -> bool {
    let Some(Value::String(body)) = object.get_mut("body") else { return false };
    let Some((end, _)) = body.char_indices().nth(max) else { return false };
    let count = body.chars().count();
    body.truncate(end);
    object.insert("content_truncated".to_owned(), true.into());
    object.entry("body_original_char_count").or_insert_with(|| count.into());
    true
}

/// Truncates every longer text, and returns how many there were.
fn cut_texts(value: &mut Value, max: usize) -> usize {
    match value {
        Value::String(text) => match text.char_indices().nth(max) {
            Some((end, _)) => {
                text.truncate(end);
                text.push('…');
                1
            }
            None => 0,
        },
        Value::Array(items) => items.iter_mut().map(|item| cut_texts(item, max)).sum(),
        Value::Object(object) => {
            let body = usize::from(cut_body(object, max));
            let fields = object.iter_mut().filter(|(name, _)| !UNCUT_FIELDS.contains(&name.as_str()));
            body + fields.map(|(_, inner)| cut_texts(inner, max)).sum::<usize>()
        }
        _ => 0,
    }
}

/// The path of the largest list that has items to drop.
fn largest_list(value: &Value) -> Option<String> {
    let mut largest: Option<(usize, String)> = None;
    note_larger_list(value, String::new(), &mut largest);
    largest.map(|(_, path)| path)
}

fn note_larger_list(value: &Value, path: String, largest: &mut Option<(usize, String)>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let size = value.to_string().len();
            if largest.as_ref().is_none_or(|(other, _)| size > *other) {
                *largest = Some((size, path));
            }
        }
        Value::Object(object) => {
            for (name, inner) in object {
                let name = name.replace('~', "~0").replace('/', "~1");
                note_larger_list(inner, format!("{path}/{name}"), largest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emails(count: usize, body: usize) -> Value {
        let email = json!({ "id": "eml_1", "subject": "S", "body": "ä".repeat(body) });
        json!({ "emails": vec![email; count], "next_cursor": "c".repeat(900), "totalCount": count })
    }

    fn size(value: &Value, text: &str) -> usize {
        value.to_string().chars().count() + json!(text).to_string().chars().count()
    }

    /// rules: MCP-3
    #[test]
    fn bodies_and_results_keep_their_bounds() {
        let budget = Budget { body: Some(12_000), result: 128_000 };
        for (count, body) in [(0, 0), (3, 100), (1, 50_000), (30, 50_000), (2_000, 10), (100_000, 0)] {
            let (value, text) = fit(emails(count, body), budget);
            assert!(size(&value, &text) <= 128_000, "{count} of {body}: {}", size(&value, &text));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            assert_eq!(value["next_cursor"], "c".repeat(900), "cursors stay whole");
            if let Some(first) = value["emails"].get(0) {
                let kept = first["body"].as_str().unwrap().chars().count();
                assert!(kept <= 12_000 && (body > 12_000 || count > 3 || kept == body));
                if kept < body {
                    assert_eq!(
                        (&first["content_truncated"], &first["body_original_char_count"]),
                        (&json!(true), &json!(body))
                    );
                }
            }
            let cut = value.get("result_cut").is_some();
            assert_eq!(cut, count > 3, "{count} of {body}: {}", value["result_cut"]);
        }
    }

    #[test]
    fn truncation_is_reported() {
        let (value, _) = fit(emails(2_000, 10), Budget { body: None, result: 20_000 });
        let list = &value["result_cut"]["lists"][0];
        assert_eq!((&list["path"], &list["of"]), (&json!("/emails"), &json!(2_000)));
        assert_eq!(list["kept"], value["emails"].as_array().unwrap().len());
        let (value, text) =
            fit(json!({ "text": "\"\\\n".repeat(9_000) }), Budget { body: None, result: 20_000 });
        assert!(value["result_cut"]["texts_cut_at"].is_number());
        assert!(size(&value, &text) <= 20_000);
    }
}
