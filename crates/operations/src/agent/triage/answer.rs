//! A model's answer, read strictly: what does not match the request is dropped, and every text is made inert and
//! short.

use model::{
    Timestamp,
    emails::Category,
    tasks::{MAX_TITLE_CHARS, TaskPriority},
    triagers::MAX_FOUND,
};
use serde_json::Value;

use crate::core::assistant::{inert, inert_line};

/// Characters of a summary, and of a note to the owner.
const MAX_NOTE_CHARS: usize = 500;
/// Characters of a reply to a message.
const MAX_REPLY_CHARS: usize = 10_000;
/// Slugs and triagers that are read from one answer.
const MAX_LISTED: usize = 20;

/// What a model answered about a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) category: Option<Category>,
    pub(super) urgent: Option<bool>,
    /// Slugs of labels with instructions.
    pub(super) labels: Vec<String>,
    pub(super) triagers: Vec<TriagerAnswer>,
}

/// Its answer for one triager.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TriagerAnswer {
    pub(super) id: String,
    pub(super) summary: String,
    pub(super) reply: Option<String>,
    pub(super) tasks: Vec<ExtractedTask>,
    pub(super) labels: Vec<String>,
    pub(super) notify: Option<String>,
}

/// A task that it found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExtractedTask {
    pub(super) title: String,
    pub(super) due_at: Option<Timestamp>,
    pub(super) priority: TaskPriority,
}

impl Answer {
    /// Parses an answer; `None` when it is no JSON object.
    pub(super) fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(bare(text)).ok()?;
        let object = value.as_object()?;
        let all = object.get("triagers").and_then(Value::as_array);
        Some(Self {
            category: string(object.get("category")).and_then(|name| name.parse().ok()),
            urgent: object.get("is_urgent").and_then(Value::as_bool),
            labels: strings(object.get("labels")),
            triagers: all.into_iter().flatten().take(MAX_LISTED).filter_map(TriagerAnswer::read).collect(),
        })
    }
}

impl TriagerAnswer {
    fn read(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let found = object.get("tasks").and_then(Value::as_array);
        Some(Self {
            id: string(object.get("id"))?.to_owned(),
            summary: note(object.get("summary")).unwrap_or_default(),
            reply: string(object.get("reply")).map(reply).filter(|text| !text.is_empty()),
            tasks: found.into_iter().flatten().filter_map(ExtractedTask::read).take(MAX_FOUND).collect(),
            labels: strings(object.get("labels")),
            notify: note(object.get("notify")),
        })
    }
}

impl ExtractedTask {
    fn read(value: &Value) -> Option<Self> {
        let title = inert_line(string(value.get("title"))?, MAX_TITLE_CHARS);
        if title.is_empty() {
            return None;
        }
        let priority = string(value.get("priority")).and_then(|name| name.parse().ok());
        Some(Self {
            title,
            due_at: string(value.get("due_at")).and_then(|text| text.parse().ok()),
            priority: priority.unwrap_or(TaskPriority::Normal),
        })
    }
}

/// The object without the code fence that some models put around it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

fn string(value: Option<&Value>) -> Option<&str> {
    value?.as_str()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str);
    texts.filter(|text| text.len() <= 400).take(MAX_LISTED).map(ToOwned::to_owned).collect()
}

fn note(value: Option<&Value>) -> Option<String> {
    Some(inert_line(string(value)?, MAX_NOTE_CHARS)).filter(|text| !text.is_empty())
}

fn reply(text: &str) -> String {
    inert(text).chars().take(MAX_REPLY_CHARS).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_far_as_it_is_as_asked_for() {
        let text = r#"```json
            {"category":"technical","is_urgent":"yes","labels":["a",3,null],"send":true,"triagers":[
              {"id":"trg_1","summary":"See ![x](https://evil.test)","reply":"  Hi \u003cimg src=x>  ","notify":null,
               "tasks":[{"title":"Pay","due_at":"2026-08-01T00:00:00Z","priority":"high"},{"title":""},
                 {"title":"Look\nhere","due_at":"soon","priority":"!"},5]},
              {"summary":"no id"}, 7]}
            ```"#;
        let answer = Answer::read(text).unwrap();
        assert_eq!((answer.category, answer.urgent), (Some(Category::Technical), None));
        assert_eq!(answer.labels, ["a"]);
        assert_eq!(answer.triagers.len(), 1);
        let one = &answer.triagers[0];
        assert_eq!(one.summary, "See [x] (https://evil.test)");
        assert_eq!(one.reply.as_deref(), Some("Hi < img src=x>"));
        assert_eq!(one.notify, None);
        let titles: Vec<_> = one.tasks.iter().map(|task| task.title.as_str()).collect();
        assert_eq!(titles, ["Pay", "Look here"]);
        assert_eq!(one.tasks[0].due_at, "2026-08-01T00:00:00Z".parse().ok());
        assert_eq!((one.tasks[1].due_at, one.tasks[1].priority), (None, TaskPriority::Normal));
    }

    #[test]
    fn what_is_no_object_is_no_answer() {
        for text in ["", "I cannot do that.", "[]", "\"text\"", "{", "null", "```\n```"] {
            assert_eq!(Answer::read(text), None, "{text}");
        }
        assert_eq!(Answer::read("{}"), Some(Answer::default()));
    }

    #[test]
    fn texts_are_cut() {
        let long = "x".repeat(20_000);
        let answer = serde_json::json!({ "triagers": vec![serde_json::json!({
            "id": "a", "summary": long, "reply": long, "notify": long,
            "tasks": vec![serde_json::json!({ "title": long }); 50], "labels": vec!["l"; 50],
        }); 50] });
        let read = Answer::read(&answer.to_string()).unwrap();
        assert_eq!(read.triagers.len(), MAX_LISTED);
        let one = &read.triagers[0];
        assert_eq!(one.summary.len(), MAX_NOTE_CHARS);
        assert_eq!(one.reply.as_ref().unwrap().len(), MAX_REPLY_CHARS);
        assert_eq!((one.tasks.len(), one.tasks[0].title.len()), (MAX_FOUND, MAX_TITLE_CHARS));
        assert_eq!(one.labels.len(), MAX_LISTED);
    }
}
