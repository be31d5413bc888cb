//! The form of a triager: how one is shown in it, and how it is read back.

use model::triagers::{Triager, TriagerTaskKind, TriggerKind, USUALLY_FOUND};
use serde_json::{Value, json};

use super::fields::Fields;

/// Maximum triggers of a triager.
const MAX_TRIGGERS: usize = 10;
/// Empty lines for further triggers.
const SPARE: usize = 2;

const TRIGGERS: [(TriggerKind, &str); 6] = [
    (TriggerKind::MailReceived, "Mail received"),
    (TriggerKind::MailSent, "Mail sent"),
    (TriggerKind::MailReceivedOrSent, "Mail received or sent"),
    (TriggerKind::CalendarCreated, "Calendar invitation received"),
    (TriggerKind::CalendarUpdated, "Calendar invitation changed"),
    (TriggerKind::CalendarCanceled, "Calendar invitation canceled"),
];

const TASKS: [TriagerTaskKind; 4] = [
    TriagerTaskKind::DraftResponse,
    TriagerTaskKind::ExtractTasks,
    TriagerTaskKind::Label,
    TriagerTaskKind::Notify,
];

/// A task in words.
pub(super) const fn task_name(kind: TriagerTaskKind) -> &'static str {
    match kind {
        TriagerTaskKind::DraftResponse => "draft a reply",
        TriagerTaskKind::ExtractTasks => "find tasks",
        TriagerTaskKind::Label => "add labels",
        TriagerTaskKind::Notify => "notify you",
    }
}

/// The heading of a task in the form, and its description.
const fn task_text(kind: TriagerTaskKind) -> (&'static str, &'static str) {
    match kind {
        TriagerTaskKind::DraftResponse => ("Draft a reply", "Saved in Drafts for you to send."),
        TriagerTaskKind::ExtractTasks => ("Find tasks", "Listed on the Triage page with their due dates."),
        TriagerTaskKind::Label => ("Add labels", "Chosen from the labels of this mailbox."),
        TriagerTaskKind::Notify => ("Notify you", "A short note in the summary of the run and in its event."),
    }
}

/// A line of the form for a trigger.
pub(super) struct TriggerLine {
    pub(super) number: usize,
    pub(super) id: String,
    /// The kinds to choose from: value, name, whether chosen.
    pub(super) kinds: Vec<(&'static str, &'static str, bool)>,
    pub(super) enabled: bool,
    pub(super) domains: String,
    pub(super) only_inbox: bool,
    pub(super) filter: String,
}

/// A part of the form for a task.
pub(super) struct TaskPart {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    /// Its name as a heading, and its description.
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) id: String,
    pub(super) enabled: bool,
    pub(super) instructions: String,
    pub(super) labels: String,
    pub(super) limit: String,
}

/// A triager in its form.
pub(super) struct Form {
    /// Empty for a new one.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) instructions: String,
    pub(super) enabled: bool,
    pub(super) triggers: Vec<TriggerLine>,
    pub(super) tasks: Vec<TaskPart>,
}

fn line(number: usize, kind: Option<&str>) -> TriggerLine {
    let kinds = TRIGGERS.iter().map(|(one, name)| (one.as_str(), *name, Some(one.as_str()) == kind));
    TriggerLine {
        number,
        id: String::new(),
        kinds: kinds.collect(),
        enabled: true,
        domains: String::new(),
        only_inbox: true,
        filter: String::new(),
    }
}

fn part(kind: TriagerTaskKind) -> TaskPart {
    TaskPart {
        kind: kind.as_str(),
        name: task_name(kind),
        title: task_text(kind).0,
        about: task_text(kind).1,
        id: String::new(),
        enabled: false,
        instructions: String::new(),
        labels: String::new(),
        limit: USUALLY_FOUND.to_string(),
    }
}

impl Form {
    /// A form for a new triager.
    pub(super) fn empty() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            instructions: String::new(),
            enabled: true,
            triggers: vec![line(0, Some(TriggerKind::MailReceived.as_str())), line(1, None)],
            tasks: TASKS.into_iter().map(part).collect(),
        }
    }

    /// The form of a triager.
    pub(super) fn of(triager: &Triager) -> Self {
        let present = triager.triggers.iter().enumerate().map(|(number, trigger)| TriggerLine {
            id: trigger.id.as_str().to_owned(),
            enabled: trigger.enabled,
            domains: trigger.mail_domains.join(", "),
            only_inbox: trigger.only_inbox,
            filter: trigger.filter.clone(),
            ..line(number, Some(trigger.kind.as_str()))
        });
        let mut triggers: Vec<_> = present.collect();
        let all = (triggers.len() + SPARE).min(MAX_TRIGGERS);
        triggers.extend((triggers.len()..all).map(|number| line(number, None)));
        let tasks = TASKS.into_iter().map(|kind| {
            let Some(task) = triager.tasks.iter().find(|task| task.kind == kind) else { return part(kind) };
            TaskPart {
                id: task.id.as_str().to_owned(),
                enabled: task.enabled,
                instructions: task.config.instructions.clone().unwrap_or_default(),
                labels: task.config.labels.as_deref().unwrap_or_default().join(", "),
                limit: task.config.limit.unwrap_or(USUALLY_FOUND).to_string(),
                ..part(kind)
            }
        });
        Self {
            id: triager.id.as_str().to_owned(),
            name: triager.name.clone(),
            instructions: triager.instructions.clone(),
            enabled: triager.enabled,
            triggers,
            tasks: tasks.collect(),
        }
    }

    /// The same form again, as filled in.
    pub(super) fn again(id: &str, fields: &Fields) -> Self {
        let triggers =
            (0..MAX_TRIGGERS).filter(|number| *number < 2 || has_line(fields, *number)).map(|number| {
                let field = |name: &str| fields.get(&format!("t{number}_{name}")).to_owned();
                TriggerLine {
                    id: field("id"),
                    enabled: !field("enabled").is_empty(),
                    domains: field("domains"),
                    only_inbox: !field("inbox").is_empty(),
                    filter: field("filter"),
                    ..line(number, Some(&field("kind")))
                }
            });
        let tasks = TASKS.into_iter().map(|kind| {
            let field = |name: &str| fields.get(&format!("{}_{name}", kind.as_str())).to_owned();
            TaskPart {
                id: field("id"),
                enabled: !field("on").is_empty(),
                instructions: field("instructions"),
                labels: field("labels"),
                limit: field("limit"),
                ..part(kind)
            }
        });
        Self {
            id: id.to_owned(),
            name: fields.get("name").to_owned(),
            instructions: fields.get("instructions").to_owned(),
            enabled: fields.ticked("enabled"),
            triggers: triggers.collect(),
            tasks: tasks.collect(),
        }
    }
}

/// The field of an input of the API, and its label. Triggers are counted without the empty lines of the form.
pub(super) fn field_of(fields: &Fields, path: &str) -> Option<(String, String)> {
    let of = |field: String, label: &str| Some((field, label.to_owned()));
    match path {
        "name" => return of("name".to_owned(), "Name"),
        "instructions" => return of("instructions".to_owned(), "Instructions"),
        _ => {}
    }
    let (index, rest) = path.strip_prefix("triggers[")?.split_once(']')?;
    let index: usize = index.parse().ok()?;
    let line = (0..MAX_TRIGGERS).filter(|number| has_line(fields, *number)).nth(index)?;
    match rest.trim_start_matches('.') {
        "filter" => of(format!("t{line}_filter"), "Only mail matching"),
        domains if domains.starts_with("mailDomains") => {
            of(format!("t{line}_domains"), "Only from these domains")
        }
        _ => None,
    }
}

fn has_line(fields: &Fields, number: usize) -> bool {
    fields.given(&format!("t{number}_kind")).is_some()
}

fn words(text: &str) -> Vec<&str> {
    text.split([',', '\n', ' ']).map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// The filled-in form, as the API takes it.
pub(super) fn filled(fields: &Fields) -> Value {
    let triggers: Vec<Value> = (0..MAX_TRIGGERS)
        .filter(|number| has_line(fields, *number))
        .map(|number| {
            let name = |field: &str| format!("t{number}_{field}");
            json!({
                "id": fields.given(&name("id")),
                "kind": fields.get(&name("kind")),
                "enabled": fields.ticked(&name("enabled")),
                "mailDomains": words(fields.get(&name("domains"))),
                "onlyInbox": fields.ticked(&name("inbox")),
                "filter": fields.get(&name("filter")),
            })
        })
        .collect();
    let tasks: Vec<Value> = TASKS.into_iter().filter_map(|kind| task(fields, kind)).collect();
    json!({
        "name": fields.get("name"),
        "instructions": fields.get("instructions").replace("\r\n", "\n"),
        "enabled": fields.ticked("enabled"),
        "triggers": triggers,
        "tasks": tasks,
    })
}

/// A task that is enabled, or existed before.
fn task(fields: &Fields, kind: TriagerTaskKind) -> Option<Value> {
    let name = |field: &str| format!("{}_{field}", kind.as_str());
    let (id, on) = (fields.given(&name("id")), fields.ticked(&name("on")));
    if id.is_none() && !on {
        return None;
    }
    let mut config = serde_json::Map::new();
    if let Some(text) = fields.given(&name("instructions")) {
        config.insert("instructions".to_owned(), text.replace("\r\n", "\n").into());
    }
    let labels = words(fields.get(&name("labels")));
    if kind == TriagerTaskKind::Label && !labels.is_empty() {
        config.insert("labels".to_owned(), json!(labels));
    }
    if let Some(limit) = fields.given(&name("limit")).filter(|_| kind == TriagerTaskKind::ExtractTasks) {
        // The API's checks refuse what is not a number.
        config.insert("limit".to_owned(), limit.parse::<i64>().map_or_else(|_| limit.into(), Into::into));
    }
    Some(json!({ "id": id, "kind": kind, "enabled": on, "config": config }))
}
