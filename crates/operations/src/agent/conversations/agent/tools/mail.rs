//! Tools that read the mailbox: clean mail only, as bounded safe text.

use model::{EmailId, FolderId, ThreadId, emails::Email};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::toolbox::{MAX_RESULT_CHARS, Toolbox};
use crate::{
    core::error::{Error, Result},
    inbox::{emails, threads},
    mailbox::{folders, labels},
    recall::search,
};

/// Messages in one answer, unless the model asks for another number.
const DEFAULT_LISTED: i64 = 10;
/// Maximum messages in one answer.
const MAX_LISTED: i64 = 25;
/// Characters of a message that is read alone.
const MAX_EMAIL_CHARS: u32 = 12_000;
/// Characters of a message in its thread, and how many messages.
const MAX_THREAD_EMAIL_CHARS: u32 = 4_000;
const MAX_THREAD_EMAILS: usize = 20;

/// Which mails to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListEmails {
    /// The id of a folder, such as inbox, sent, draft, archive; without it all but trash and spam.
    #[serde(default)]
    folder: Option<FolderId>,
    /// Only unread mails.
    #[serde(default)]
    unread_only: bool,
    /// Only the newest mail of each thread.
    #[serde(default)]
    threads: bool,
    /// The slug of a custom label.
    #[serde(default)]
    label: Option<String>,
    /// How many, at most 25.
    #[serde(default)]
    limit: Option<i64>,
    /// The `next_cursor` of the answer before, for older mails.
    #[serde(default)]
    cursor: Option<String>,
}

/// What to search for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchEmails {
    /// The query.
    query: String,
    /// The id of a folder; without it all but trash and spam.
    #[serde(default)]
    folder: Option<FolderId>,
    /// How many, at most 25.
    #[serde(default)]
    limit: Option<i64>,
    /// The `next_cursor` of the answer before, for older mails.
    #[serde(default)]
    cursor: Option<String>,
}

/// Which mail to read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadEmail {
    /// Its id.
    email_id: EmailId,
}

/// Which thread to read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadThread {
    /// Its id.
    thread_id: ThreadId,
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

impl Toolbox<'_> {
    pub(super) async fn list_emails(&self, wanted: ListEmails) -> Result<Value> {
        let query = input(json!({
            "folder": wanted.folder,
            "is_read": wanted.unread_only.then_some(false),
            "threaded": wanted.threads,
            "custom_label": wanted.label,
            "limit": limit(wanted.limit),
            "cursor": wanted.cursor,
            "agent_safe_content": true,
            "require_scan_status": "clean",
        }))?;
        let call = self.call.follow(&emails::LIST, self.app.now())?;
        let page = emails::list(self.app, &call, self.mailbox(), query).await?;
        Ok(json!({
            "emails": fitting(page.emails.iter().map(brief).collect(), false),
            "total_count": page.total_count,
            "next_cursor": page.next_cursor,
        }))
    }

    pub(super) async fn search_emails(&self, wanted: SearchEmails) -> Result<Value> {
        let query = input(json!({
            "query": wanted.query,
            "folder": wanted.folder,
            "limit": limit(wanted.limit),
            "cursor": wanted.cursor,
            "agent_safe_content": true,
            "require_scan_status": "clean",
        }))?;
        let call = self.call.follow(&search::SEARCH, self.app.now())?;
        let page = search::search(self.app, &call, self.mailbox(), query).await?;
        Ok(json!({
            "emails": fitting(page.emails.iter().map(brief).collect(), false),
            "total_count": page.total_count,
            "next_cursor": page.next_cursor,
        }))
    }

    pub(super) async fn read_email(&self, wanted: ReadEmail) -> Result<Value> {
        Ok(json!({ "email": whole(&self.email(wanted.email_id).await?) }))
    }

    /// A message as safe text.
    pub(super) async fn email(&self, id: EmailId) -> Result<Email> {
        let query = input(json!({
            "agent_safe_content": true, "require_scan_status": "clean", "max_body_chars": MAX_EMAIL_CHARS,
        }))?;
        let call = self.call.follow(&emails::GET, self.app.now())?;
        emails::get(self.app, &call, self.mailbox(), id, query).await
    }

    pub(super) async fn read_thread(&self, wanted: ReadThread) -> Result<Value> {
        let query = input(json!({
            "agent_safe_content": true, "require_scan_status": "clean", "max_body_chars": MAX_THREAD_EMAIL_CHARS,
        }))?;
        let call = self.call.follow(&threads::GET, self.app.now())?;
        let all = threads::get(self.app, &call, self.mailbox(), wanted.thread_id, query).await?;
        let newest = &all[all.len().saturating_sub(MAX_THREAD_EMAILS)..];
        Ok(json!({
            "emails": fitting(newest.iter().map(whole).collect(), true),
            "total_count": all.last().and_then(|email| email.thread_count).unwrap_or_default(),
        }))
    }

    pub(super) async fn list_folders(&self, _: NoArguments) -> Result<Value> {
        let call = self.call.follow(&folders::LIST, self.app.now())?;
        let all = folders::list(self.app, &call, self.mailbox()).await?;
        Ok(json!({ "folders": all }))
    }

    pub(super) async fn list_labels(&self, _: NoArguments) -> Result<Value> {
        let call = self.call.follow(&labels::LIST, self.app.now())?;
        let all = labels::list(self.app, &call, self.mailbox()).await?;
        let shown: Vec<Value> =
            all.iter().map(|label| json!({ "name": label.name, "slug": label.slug })).collect();
        Ok(json!({ "labels": shown }))
    }

    /// The mailbox of the conversation, the only one there is.
    pub(super) fn mailbox(&self) -> &str {
        self.turn.mailbox.as_str()
    }
}

fn limit(wanted: Option<i64>) -> i64 {
    wanted.unwrap_or(DEFAULT_LISTED).clamp(1, MAX_LISTED)
}

/// The input of an operation, validated.
fn input<T: DeserializeOwned + garde::Validate<Context = ()>>(value: Value) -> Result<T> {
    let input: T =
        serde_json::from_value(value).map_err(|error| Error::invalid("arguments", error.to_string()))?;
    input.validate().map_err(|report| Error::invalid("arguments", report.to_string().trim().to_owned()))?;
    Ok(input)
}

/// A message in a list.
fn brief(email: &Email) -> Value {
    json!({
        "id": email.id,
        "thread_id": email.thread_id,
        "thread_count": email.thread_count,
        "date": email.date,
        "sender": email.sender,
        "to": email.to,
        "subject": email.subject,
        "snippet": email.snippet,
        "read": email.read,
        "starred": email.starred,
        "is_urgent": email.is_urgent,
        "category": email.category,
        "labels": email.custom_labels,
        "folder": email.folder_id,
        "attachment_count": email.attachment_count,
        "scan_status": email.scan_status,
        "content_omitted": email.content_omitted,
    })
}

/// A message with its text.
pub(super) fn whole(email: &Email) -> Value {
    let mut shown = brief(email);
    shown["snippet"] = Value::Null;
    shown["cc"] = json!(email.cc);
    shown["body"] = json!(email.body);
    shown["content_truncated"] = json!(email.content_truncated);
    shown["sender_authentication"] = json!(email.sender_authentication.status);
    shown["delivery_status"] = json!(email.delivery_status);
    shown
}

/// As many as fit: the first ones, or the last.
fn fitting(all: Vec<Value>, keep_last: bool) -> Vec<Value> {
    let mut room = MAX_RESULT_CHARS;
    let mut kept = Vec::with_capacity(all.len());
    let ordered: Box<dyn Iterator<Item = Value>> =
        if keep_last { Box::new(all.into_iter().rev()) } else { Box::new(all.into_iter()) };
    for one in ordered {
        let Some(left) = room.checked_sub(one.to_string().chars().count()) else { break };
        room = left;
        kept.push(one);
    }
    if keep_last {
        kept.reverse();
    }
    kept
}
