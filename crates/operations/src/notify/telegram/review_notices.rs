//! Notices of messages in review: all that a person needs to decide, with buttons if the chat may.

use std::fmt::Write as _;

use model::{ReviewId, events::EventType};
use serde_json::Value;
use store::{Tx, telegram::LinkRecord, vault::DataKey};

use super::{
    decisions::{self, APPROVE, REJECT},
    notice_text::{self, MAX_LINE_CHARS, MAX_TEXT_CHARS, cut, minute, units},
};
use crate::{
    core::{app::App, error::Result},
    outbox::reviews::summary::ReviewSummary,
};

/// What the bot API accepts in one message, with a reserve.
const MAX_UNITS: usize = 4_000;
/// Reasons and files that are named one by one.
const MAX_NAMED: usize = 5;

/// The event that a notice follows.
pub(super) const EVENT: EventType = EventType::ReviewRequested;

/// A message that waits for a decision.
pub(super) struct ReviewNotice {
    pub(super) summary: ReviewSummary,
    may_decide: bool,
}

impl ReviewNotice {
    /// Reads what a notice says, unless it was decided meanwhile.
    pub(super) async fn find(
        tx: &mut Tx,
        app: &App,
        key: &DataKey,
        link: &LinkRecord,
        review: &ReviewId,
    ) -> Result<Option<Self>> {
        let Some(summary) = ReviewSummary::find(tx, key, &link.mailbox_id, review).await? else {
            return Ok(None);
        };
        let may_decide = decisions::may_decide(tx, app, link, &summary.record).await?;
        Ok(Some(Self { summary, may_decide }))
    }

    /// The notice, whose buttons say the id.
    pub(super) fn body(&self, app: &App, chat: i64, address: &str, id: &str) -> Value {
        let head = format!("A message from {address} needs a decision\n");
        let lines = self.lines();
        let tail = self.tail(app);
        let used = units(&head) + units(&lines) + units(&tail);
        let text = shorten(self.summary.text.as_str().trim(), MAX_UNITS.saturating_sub(used));
        let record = &self.summary.record;
        let buttons = if self.may_decide {
            let button = |label, what| (label, decisions::button(what, id, record));
            vec![button("Approve", APPROVE), button("Reject", REJECT)]
        } else {
            Vec::new()
        };
        notice_text::notice(chat, (&head, &format!("{lines}\n{text}"), &tail), &buttons)
    }

    /// Who asks, the recipients, the subject and the files.
    fn lines(&self) -> String {
        let summary = &self.summary;
        let requester = summary.record.request.name.as_deref().unwrap_or(&summary.record.requested_by);
        let mut lines = vec![format!("By: {}", one_line(requester))];
        for (name, people) in &summary.recipients {
            lines.push(counted(name, people, MAX_LINE_CHARS));
        }
        lines.push(format!("Subject: {}", one_line(summary.subject.as_str())));
        if !summary.files.is_empty() {
            lines.push(counted("Files", &summary.files, MAX_LINE_CHARS));
        }
        format!("{}\n", lines.join("\n"))
    }

    /// Why a person is asked, until when, and where there is more to see.
    fn tail(&self, app: &App) -> String {
        let summary = &self.summary;
        let mut tail = String::from("\n");
        if !summary.why.is_empty() {
            let mut named = summary.why.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
            if summary.why.len() > MAX_NAMED {
                named.push_str(" and more");
            }
            let _ = writeln!(tail, "Why: {}.", cut(&named, MAX_LINE_CHARS * 2));
        }
        if summary.divergent {
            tail.push_str("Its plain text and its HTML differ: look at both in the console.\n");
        }
        if !self.may_decide {
            tail.push_str("This chat cannot decide: only one that an admin linked in the console can.\n");
        }
        let ends = minute(summary.record.expires_at);
        let (url, id) = (&app.settings().public_url, &summary.record.id);
        let _ = write!(tail, "Without a decision it is rejected at {ends}.\n{url}/console/reviews/{id}");
        tail
    }
}

fn one_line(text: &str) -> String {
    let clean: String = text.chars().filter(|character| !character.is_control()).collect();
    cut(&clean, MAX_LINE_CHARS)
}

/// A line with several names; if it is too long, with their number, so that none is hidden by others.
fn counted(label: &str, names: &[String], max_chars: usize) -> String {
    let all = names.join(", ");
    let shown = cut(&all, max_chars);
    if shown == all { format!("{label}: {all}") } else { format!("{label} ({}): {shown}", names.len()) }
}

/// The beginning of a text; what is missing is said, since the decision is about all of it.
fn shorten(text: &str, max_units: usize) -> String {
    const MORE: &str = "…\n[More in the console]";
    let room = max_units.saturating_sub(units(MORE));
    let mut end = text.len();
    let mut count = 0;
    for (number, (place, character)) in text.char_indices().enumerate() {
        count += character.len_utf16();
        if number >= MAX_TEXT_CHARS || count > room {
            end = place;
            break;
        }
    }
    if end == text.len() { text.to_owned() } else { format!("{}{MORE}", &text[..end]) }
}
